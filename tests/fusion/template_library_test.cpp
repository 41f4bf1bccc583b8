#include "fusion/template_library.hpp"

#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "error_of.hpp"

namespace stof::fusion {
namespace {

std::string doubles(const std::string& name, const std::string& fields = "") {
  return fmt::format(R"text({{#
{{ "contract": 1, "name": "{}", "version": 1, "summary": "y = x + x", {}
  "ports": {{"x": {{"shape": ["n"], "dtype": "float16"}}, "y": {{"like": "x"}}}},
  "pattern": ["y = add(x, x)"], "dtypes": {{}},
  "resources": {{"threads": "32", "shared_bytes": "0", "registers": "16"}},
  "launch": {{"grid": ["dim.n"], "block": ["32"], "arguments": ["x", "y"]}},
  "cost": {{"flops": "dim.n", "bytes": "dim.n"}}, "deterministic": true, "tests": [{{"n": 8}}] }}
#}})text",
                     name, fields);
}

std::vector<std::string> files(const std::map<std::string, std::string>& texts) {
  std::vector<std::string> files;
  for (const KernelTemplate& one : read_templates(texts)) {
    files.push_back(one.file);
  }
  return files;
}

TEST_CASE("a template takes the place of the one that it replaces") {
  const std::string replacing = R"("replaces": "twice",)";
  CHECK(
      files({{"a.jinja", doubles("twice")}, {"b.jinja", doubles("other")}, {"c.jinja", "text"}}) ==
      std::vector<std::string>{"a.jinja", "b.jinja"});
  CHECK(files({{"a.jinja", doubles("twice")}, {"b.jinja", doubles("other", replacing)}}) ==
        std::vector<std::string>{"a.jinja", "b.jinja"});  // a takes what b does not
  CHECK(files({{"a.jinja", doubles("twice")}, {"b.jinja", doubles("twice", replacing)}}) ==
        std::vector<std::string>{"b.jinja"});
}

TEST_CASE("names are taken once, and what is replaced is there") {
  CHECK(test::error_of<TemplateError>([] {
          read_templates({{"a.jinja", doubles("twice")}, {"b.jinja", doubles("twice")}});
        }) == "b.jinja:1:1: the name 'twice' is that of 'a.jinja' too");
  CHECK(test::error_of<TemplateError>([] {
          read_templates({{"a.jinja", doubles("twice", R"("replaces": "thrice",)")}});
        }) == "a.jinja:1:1: it replaces 'thrice', and no template that ships has that name");
}

}  // namespace
}  // namespace stof::fusion
