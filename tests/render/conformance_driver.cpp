// Renders templates for conformance_test.py: a JSON object a line in, one a line out.
//   in   {"main": name, "templates": {name: text}, "context": {...}}
//   out  {"text": ...} or {"error": ...}
#include <iostream>
#include <map>
#include <memory>
#include <string>

#include <nlohmann/json.hpp>

#include "render/renderer.hpp"
#include "stof/error.hpp"

namespace {

nlohmann::json answer(const nlohmann::ordered_json& request) {
  using stof::render::from_json;
  using stof::render::Renderer;
  using stof::render::TemplateStore;
  try {
    const auto texts = request.at("templates").get<std::map<std::string, std::string>>();
    const Renderer renderer(
        std::make_shared<const TemplateStore>(TemplateStore::from_texts(texts)));
    const auto source = renderer.render_without_headers(request.at("main").get<std::string>(),
                                                        from_json(request.at("context")));
    return {{"text", source.text}};
  } catch (const stof::Error& error) {
    return {{"error", error.what()}};
  }
}

}  // namespace

int main() {
  std::ios::sync_with_stdio(false);
  for (std::string line; std::getline(std::cin, line);) {
    std::cout << answer(nlohmann::ordered_json::parse(line)).dump() << std::endl;
  }
}
