#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "kernel/kernel_source.hpp"
#include "render/limits.hpp"
#include "render/template_store.hpp"
#include "render/value.hpp"

namespace stof::render {

struct ParsedTemplate;

// Renders templates of a store. Parses each once; safe to use from many threads at a time.
class Renderer {
 public:
  explicit Renderer(std::shared_ptr<const TemplateStore> store);
  ~Renderer();
  Renderer(const Renderer&) = delete;
  Renderer& operator=(const Renderer&) = delete;

  // A template with its variables, a dict of plain values: the text with its device headers in
  // place. The variables are copied, so a template changes none of them. Throws TemplateError.
  kernel::KernelSource render(std::string_view name, const Value& variables,
                              const RenderLimits& limits = {}) const;

  // As above, but the #include lines stay as they are.
  kernel::KernelSource render_without_headers(std::string_view name, const Value& variables,
                                              const RenderLimits& limits = {}) const;

  const TemplateStore& store() const { return *store_; }

 private:
  std::shared_ptr<const ParsedTemplate> load(std::string_view name) const;

  std::shared_ptr<const TemplateStore> store_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, std::shared_ptr<const ParsedTemplate>, std::less<>> parsed_;
};

}  // namespace stof::render
