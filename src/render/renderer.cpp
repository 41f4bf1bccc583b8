#include "render/renderer.hpp"

#include <fmt/format.h>

#include "render/header_expansion.hpp"
#include "render/interpreter.hpp"

namespace stof::render {

Renderer::Renderer(std::shared_ptr<const TemplateStore> store) : store_(std::move(store)) {}
Renderer::~Renderer() = default;

std::shared_ptr<const ParsedTemplate> Renderer::load(std::string_view name) const {
  if (name.ends_with(".cuh")) {
    throw Failure(
        fmt::format("'{}' is a device header, plain CUDA: write #include \"{}\"", name, name));
  }
  const TemplateFile* file = store_->find(name);
  if (file == nullptr) {
    return nullptr;
  }
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = parsed_.find(name); found != parsed_.end()) {
      return found->second;
    }
  }
  std::shared_ptr<const ParsedTemplate> parsed = parse_template(std::string(name), file->text);
  const std::lock_guard lock(mutex_);
  return parsed_.emplace(name, std::move(parsed)).first->second;
}

kernel::KernelSource Renderer::render_without_headers(std::string_view name, const Value& variables,
                                                      const RenderLimits& limits) const {
  const Value copy = [&] {
    try {
      return deep_copy(variables);
    } catch (const Failure& failure) {
      throw TemplateError(std::string(name), 1, 1, failure.what());
    }
  }();
  if (copy.dict() == nullptr) {
    throw TemplateError(std::string(name), 1, 1, "the variables of a template are a dict");
  }
  Interpreter interpreter([this](std::string_view path) { return load(path); }, limits);
  const Text text = interpreter.render(name, *copy.dict());
  return {.text = text.bytes, .lines = {.files = interpreter.files(), .runs = *text.lines}};
}

kernel::KernelSource Renderer::render(std::string_view name, const Value& variables,
                                      const RenderLimits& limits) const {
  return expand_headers(render_without_headers(name, variables, limits), *store_,
                        limits.output_bytes);
}

}  // namespace stof::render
