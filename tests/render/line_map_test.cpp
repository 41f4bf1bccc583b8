#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "kernel/kernel_source.hpp"
#include "render/renderer.hpp"

using stof::kernel::KernelSource;
using stof::render::from_json;
using stof::render::Renderer;
using stof::render::TemplateStore;

namespace {

// Each line of the rendered text with where it came from: "file:line text".
std::vector<std::string> traced(const std::map<std::string, std::string>& texts) {
  const Renderer renderer(std::make_shared<const TemplateStore>(TemplateStore::from_texts(texts)));
  const KernelSource source = renderer.render("main", from_json(nlohmann::json::object()));
  std::vector<std::string> lines;
  int number = 1;
  for (std::size_t begin = 0; begin < source.text.size();) {
    const std::size_t end = std::min(source.text.find('\n', begin), source.text.size());
    const auto origin = source.lines.origin(number++);
    lines.push_back(std::string(origin.file) + ':' + std::to_string(origin.line) + ' ' +
                    source.text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("text lines lead to their own lines, tags between them or not") {
  CHECK(traced({{"main", "a\n{# c #}\n{% if true %}\nb\n{% endif %}\nc\n\nd"}}) ==
        Lines{"main:1 a", "main:4 b", "main:6 c", "main:7 ", "main:8 d"});
}

TEST_CASE("each turn of a loop leads to its body") {
  CHECK(traced({{"main", "{% for i in range(2) %}\n  x{{ i }}\n  y\n{% endfor %}\nend"}}) ==
        Lines{"main:2   x0", "main:3   y", "main:2   x1", "main:3   y", "main:5 end"});
}

TEST_CASE("a value of many lines leads to the line that prints it") {
  CHECK(traced({{"main", "{% set v = 'p\\nq\\nr' %}\na\n{{ v }}\nb"}}) ==
        Lines{"main:2 a", "main:3 p", "main:3 q", "main:3 r", "main:4 b"});
}

TEST_CASE("lines of includes, macros and call blocks lead into them") {
  const std::map<std::string, std::string> texts = {
      {"main",
       "top\n{% include 'part' %}\n{% import 'lib' as lib %}\n  {{ lib.f(1) }}\n{% call "
       "lib.g() %}\nbody\n{% endcall %}\nend\n"},
      {"part", "p1\np2\n"},
      {"lib",
       "{% macro f(x) %}\nf1 {{ x }}\nf2\n{% endmacro %}\n\n{% macro g() %}\n[\n{{ caller() "
       "}}]\n{% endmacro %}\n"}};
  CHECK(traced(texts) == Lines{"main:1 top", "part:1 p1", "part:2 p2", "lib:2   f1 1", "lib:3 f2",
                               "main:4 ", "lib:7 [", "main:6 body", "lib:8 ]", "main:8 end"});
}

TEST_CASE("lines survive set blocks, joining by ~ does not, indent and trim do") {
  CHECK(traced({{"main",
                 "{% macro m() %}\na\nb\n{% endmacro %}\n{% set s %}\nx\n{{ m() }}\n{% "
                 "endset %}\n{{ s | trim | indent(2) }}\n{{ m() ~ '' }}"}}) ==
        Lines{"main:6 x", "main:2   a", "main:3   b", "main:10 a", "main:10 b"});
}

TEST_CASE("trimming lines in front shifts the rest") {
  CHECK(traced({{"main", "{% filter trim %}\n\n\n  a\nb\n{% endfilter %}!"}}) ==
        Lines{"main:4 a", "main:5 b!"});
}

TEST_CASE("blocks lead to the template that wrote them") {
  CHECK(
      traced({{"main", "{% extends 'base' %}\n{% block b %}\nchild\n{{ super() }}\n{% endblock %}"},
              {"base", "head\n{% block b %}\nparent\n{% endblock %}\ntail"}}) ==
      Lines{"base:1 head", "main:3 child", "base:3 parent", "main:4 ", "base:5 tail"});
}

TEST_CASE("the map is compact and knows its ends") {
  const Renderer renderer(std::make_shared<const TemplateStore>(
      TemplateStore::from_texts({{"main", "a\nb\nc\nd\n{{ 'x\\ny\\nz' }}\ne\nf\n"}})));
  const KernelSource source = renderer.render("main", from_json(nlohmann::json::object()));
  using stof::kernel::LineRun;
  CHECK(source.lines.files == std::vector<std::string>{"main"});
  CHECK(source.lines.runs.size() <= 3);
  CHECK(source.lines.origin(6).line == 5);
  CHECK(source.lines.origin(9).line == 7);
  CHECK(source.lines.origin(0).line == 0);
  CHECK(stof::kernel::LineMap{}.origin(1).file.empty());
}

TEST_CASE("every template that took part is listed, in order of first use") {
  const Renderer renderer(std::make_shared<const TemplateStore>(TemplateStore::from_texts(
      {{"main", "{% import 'lib' as l %}{% include 'part' %}\n#include \"h.cuh\"\n"},
       {"lib", ""},
       {"part", "x\n"},
       {"unused", ""},
       {"h.cuh", "int h;\n"}})));
  const KernelSource source = renderer.render("main", from_json(nlohmann::json::object()));
  CHECK(source.lines.files == std::vector<std::string>{"main", "lib", "part", "h.cuh"});
}
