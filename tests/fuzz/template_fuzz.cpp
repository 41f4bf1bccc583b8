// Any bytes are a template: it renders or throws stof::Error, within its limits.
#include <cstddef>
#include <cstdint>
#include <string>

#include "render/renderer.hpp"
#include "stof/error.hpp"

namespace {

using stof::render::Dict;
using stof::render::make_list;
using stof::render::Renderer;
using stof::render::RenderLimits;
using stof::render::TemplateStore;
using stof::render::Value;

Value make_variables() {
  auto variables = std::make_shared<Dict>();
  auto node = std::make_shared<Dict>();
  node->set("v", Value(1));
  node->set("kids", make_list({}));
  variables->set("a", Value(4));
  variables->set("x", Value(2.5));
  variables->set("s", Value("hello"));
  variables->set("d", Value(node));
  variables->set("words", make_list({Value("b"), Value("A")}));
  variables->set("tree", make_list({Value(node)}));
  return Value(std::move(variables));
}

const RenderLimits kLimits = {
    .output_bytes = 1U << 16U, .working_bytes = 1U << 22U, .steps = 20'000, .depth = 300};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(data, data + size);
  const Renderer renderer(std::make_shared<const TemplateStore>(TemplateStore::from_texts(
      {{"main", text},
       {"lib", "{% macro f(x) %}<{{ x }}>{% endmacro %}{{ f(1) }}"},
       {"base", "[{% block b %}base{% endblock %}]"},
       {"device/a.cuh", "#pragma once\n#include \"device/b.cuh\"\nint a;\n"},
       {"device/b.cuh", "int b;\n"}})));
  try {
    renderer.render("main", make_variables(), kLimits);
  } catch (const stof::Error&) {
    return 0;
  }
  return 0;
}
