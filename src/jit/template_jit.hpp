#pragma once

#include <span>
#include <stop_token>
#include <vector>

#include "base/gpu_target.hpp"
#include "cache/cache.hpp"
#include "compile/compiler.hpp"
#include "jit/jit.hpp"
#include "kernel/kernel_spec.hpp"
#include "render/renderer.hpp"

namespace stof::jit {

// Kernels of templates. One that was rendered before, with the same templates, is found without
// rendering it again, and one that was compiled before opens no compiler. Thread-safe.
class TemplateJit {
 public:
  // All are used for as long as this lives.
  TemplateJit(cache::Cache& cache, const compile::Compiler& compiler,
              const render::Renderer& renderer, Jit& jit)
      : cache_(cache), compiler_(compiler), renderer_(renderer), jit_(jit) {}

  // In the order of the specs; misses are compiled in parallel. Throws what Renderer::render and
  // Jit::get_or_compile throw, of several failures that of the first spec.
  std::vector<Kernel> get_or_compile(std::span<const kernel::KernelSpec> specs,
                                     const base::GpuTarget& target,
                                     const std::stop_token& stop = {}) const;

  // The same, but what one of them throws is its outcome.
  std::vector<Outcome> try_each(std::span<const kernel::KernelSpec> specs,
                                const base::GpuTarget& target,
                                const std::stop_token& stop = {}) const;

  // The digest of the kernel that a spec was rendered to before, compiled or not; nothing where it
  // was not, or with other templates.
  std::optional<base::Digest> known(const kernel::KernelSpec& spec,
                                    const base::GpuTarget& target) const;

 private:
  kernel::Key key(const kernel::KernelSpec& spec, const base::GpuTarget& target) const;
  std::optional<base::Digest> find(const kernel::Key& key) const;

  cache::Cache& cache_;
  const compile::Compiler& compiler_;
  const render::Renderer& renderer_;
  Jit& jit_;
};

}  // namespace stof::jit
