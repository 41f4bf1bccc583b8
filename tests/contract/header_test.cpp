#include "contract/header.hpp"

#include <fmt/format.h>

#include "contract_support.hpp"

namespace stof::contract {

namespace {

struct Where {
  int line = 0;
  int column = 0;
  std::string text;
};

Where error_in(const std::string& text) {
  try {
    parse_contract("norm.cu.jinja", text);
  } catch (const TemplateError& error) {
    CHECK(error.file() == "norm.cu.jinja");
    return {error.line(), error.column(), error.what()};
  }
  return {};
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("the header is the first comment, with or without whitespace control") {
  const std::string header = kFullHeader;
  for (const std::string& text :
       {fmt::format("{{# {} #}}\ncode", header), fmt::format("{{#{}#}}", header),
        fmt::format("{{#-\n{}\n-#}}", header)}) {
    CHECK(has_contract(text));
    CHECK(parse_contract("f", text).name == "rms_norm_residual");
  }
  for (const char* text :
       {"", "{", "{#", "{# a comment #}", " {# {} #}", "{# {", "{% macro f() %}{% endmacro %}"}) {
    CHECK_FALSE(has_contract(text));
  }
  CHECK(error_in("code").text ==
        "norm.cu.jinja:1:1: a template opens with a comment that holds its JSON header: "
        "{# {\"contract\": 1, …} #}\n  code\n  ^");
}

TEST_CASE("a header behind something else is seen, however many comments are open") {
  CHECK(has_late_header("\n{# { \"contract\": 1 } #}"));
  CHECK(has_late_header("{# a licence #}{#- { \"contract\": 1 } -#}"));
  CHECK_FALSE(has_late_header("{# { \"contract\": 1 } #}{# the contract #}"));
  std::string open;
  for (int i = 0; i < 500000; ++i) {
    open += "{#";
  }
  CHECK_FALSE(has_late_header(open));
  CHECK_FALSE(has_late_header(open + "#}"));
}

TEST_CASE("an error stands at the very value, and in an expression at the very character") {
  const std::string header = fmt::format("{{# {} #}}\n", kFullHeader);

  const Where value = error_in(replaced(header, "\"default\": 128", "\"default\": 100"));
  CHECK(value.line == 8);
  CHECK(value.column == 76);
  CHECK(value.text.find(
            "norm.cu.jinja:8:76: params.threads_per_row.default: 100 is none of the values") == 0);

  const Where name = error_in(replaced(header, "dim.hidden <= 16384", "dim.hidden <= dim.width"));
  CHECK(name.line == 7);
  const std::string line = name.text.substr(name.text.find('\n') + 1);
  CHECK(line[static_cast<std::size_t>(name.column) + 1] == 'd');  // of dim.width, behind two blanks
  CHECK(line.substr(static_cast<std::size_t>(name.column) + 1, 9) == "dim.width");
  CHECK(name.text.find("constraints.1: ") != std::string::npos);
}

TEST_CASE("what is not JSON, or hides something, is refused") {
  const Where comma = error_in("{# {\"contract\": 1,\n  } #}");
  CHECK(comma.line == 2);
  CHECK(comma.text.find("the header is not JSON: ") != std::string::npos);

  CHECK(error_in("{# {\"contract\": 1, \"contract\": 1} #}")
            .text.find("the header has the field 'contract' twice") != std::string::npos);
  CHECK(error_in("{# {\"contract\": 1e999} #}")
            .text.find("the header has a number that no float64 holds") != std::string::npos);
  const std::string deep = std::string(100000, '[') + std::string(100000, ']');
  CHECK(error_in("{# {\"contract\": " + deep + "} #}")
            .text.find("the header nests deeper than 16 levels") != std::string::npos);
}

TEST_CASE("names with escapes and strings with brackets do not confuse positions") {
  const Where error = error_in(
      "{# {\"a\\\"}]\": [\"]}\", {}], \"contract\": 9, \"name\": 1, \"version\": 1, "
      "\"summary\": 1, \"ports\": 1, \"pattern\": 1, \"dtypes\": 1, \"launch\": 1} #}");
  CHECK(error.column == 14);
  CHECK(error.text.find("a\"}]: unknown field") != std::string::npos);
}

}  // namespace stof::contract
