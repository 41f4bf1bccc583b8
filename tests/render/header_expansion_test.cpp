#include "render/header_expansion.hpp"

#include <map>
#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "render/renderer.hpp"
#include "stof/error.hpp"

using stof::render::from_json;
using stof::render::Renderer;
using stof::render::RenderLimits;
using stof::render::TemplateStore;

namespace {

using Texts = std::map<std::string, std::string>;

stof::kernel::KernelSource render(const Texts& texts, const RenderLimits& limits = {}) {
  const Renderer renderer(std::make_shared<const TemplateStore>(TemplateStore::from_texts(texts)));
  return renderer.render("main", from_json(nlohmann::json::object()), limits);
}

std::string error_of(const Texts& texts, const RenderLimits& limits = {}) {
  try {
    render(texts, limits);
  } catch (const stof::TemplateError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("headers stand in for their includes, once, without #pragma once") {
  const auto source = render({{"main",
                               "// k\n#include <cuda_fp16.h>\n#include \"a.cuh\"\n  #  "
                               "include \"b.cuh\"  // again\nint k;\n"},
                              {"a.cuh", "#pragma once\n#include \"b.cuh\"\nint a;"},
                              {"b.cuh", "  #pragma  once\n#include <cuda_bf16.h>\nint b;\n"}});
  CHECK(source.text ==
        "// k\n#include <cuda_fp16.h>\n#include <cuda_bf16.h>\nint b;\nint a;\nint k;\n");
  const auto place = [&](int line) {
    const auto origin = source.lines.origin(line);
    return std::string(origin.file) + ':' + std::to_string(origin.line);
  };
  CHECK(place(2) == "main:2");
  CHECK(place(3) == "b.cuh:2");
  CHECK(place(4) == "b.cuh:3");
  CHECK(place(5) == "a.cuh:3");
  CHECK(place(6) == "main:5");
}

TEST_CASE("no template runs over a header") {
  CHECK(
      render({{"main", "#include \"a.cuh\"\n{{ 1 }}"}, {"a.cuh", "{{ x }} {% if %} {#\n"}}).text ==
      "{{ x }} {% if %} {#\n1");
}

TEST_CASE("a template decides what is included, macros too") {
  CHECK(render({{"main",
                 "{% macro use(n) %}\n#include \"{{ n }}.cuh\"\n{% endmacro %}\n{{ use('a') "
                 "}}{% for n in 'ab' %}\n{{ use(n) }}{% endfor %}end"},
                {"a.cuh", "A\n"},
                {"b.cuh", "B\n"}})
            .text == "A\nB\nend");
}

TEST_CASE("includes in comments are no includes") {
  const std::string text =
      "/* one\n#include \"nope.cuh\"\n*/ int x; // /*\nconst char* s = \"/*\";\n#include "
      "\"a.cuh\"\n";
  CHECK(render({{"main", text}, {"a.cuh", "A\n"}}).text ==
        "/* one\n#include \"nope.cuh\"\n*/ int x; // /*\nconst char* s = \"/*\";\nA\n");
}

TEST_CASE("what cannot be included is an error at the including line") {
  CHECK(error_of({{"main", "{% if true %}\nx\n  #include \"nope.cuh\"\n{% endif %}"}}) ==
        "main:3:3: no device header \"nope.cuh\" in the template folders\n    #include "
        "\"nope.cuh\"\n    ^");
  CHECK(error_of({{"main", "#include \"a.cuh\""}, {"a.cuh", "\n#include \"b.cuh\"\n"}})
            .starts_with("a.cuh:2:1: no device header \"b.cuh\""));
  CHECK(error_of({{"main", "#include \"a.cuh\""},
                  {"a.cuh", "#include \"b.cuh\"\n"},
                  {"b.cuh", "x\n#include \"a.cuh\"\n"}})
            .starts_with("b.cuh:2:1: headers include each other: a.cuh -> b.cuh -> a.cuh\n"));
  CHECK(error_of({{"main", "#include \"part.jinja\""}, {"part.jinja", "x"}})
            .starts_with("main:1:1: no device header \"part.jinja\""));
  CHECK(error_of({{"main", "#include \"../a.cuh\""}})
            .starts_with("main:1:1: template path '../a.cuh' leaves the template folders"));
  CHECK(error_of({{"main", "#ifdef X\n#include \"a.cuh\"\n#endif"}, {"a.cuh", "A"}})
            .starts_with("main:2:1: #include \"a.cuh\" within #if"));
  CHECK(error_of({{"main", "#include \"a.cuh"}})
            .starts_with("main:1:1: #include has no closing quote"));
  CHECK(error_of({{"main", "#include \"a.cuh\""}, {"a.cuh", std::string(200, 'x')}},
                 {.output_bytes = 100}) == "a.cuh:1:1: a text of more than 100 bytes");
}
