#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/device_profile.hpp"
#include "cache/cache.hpp"
#include "compile/nvrtc_compiler.hpp"
#include "engine/calibration.hpp"
#include "engine/rewrites.hpp"
#include "engine/template_trust.hpp"
#include "engine/tuner.hpp"
#include "fusion/deferred_norms.hpp"
#include "fusion/joined_products.hpp"
#include "fusion/lower.hpp"
#include "fusion/rotated_products.hpp"
#include "graph/ir.hpp"
#include "jit/jit.hpp"
#include "jit/template_jit.hpp"
#include "render/renderer.hpp"
#include "stof/options.hpp"

namespace stof::engine {

// A graph of static shapes as kernels and the launches of them.
struct GpuCode {
  graph::Ir ir;  // that was lowered
  kernel::Program program;
  std::vector<std::string> templates;  // of the kernels
  std::vector<jit::Kernel> kernels;
  // The program's last weights: those that lie one behind the other, then those that are made.
  std::vector<fusion::JoinedWeight> joined_weights;
  std::vector<fusion::FoldedProduct> folded_products;
  std::vector<std::string> deferred_norms;  // names of what is put off
  std::int64_t workspace_bytes = 0;
  std::vector<std::vector<fusion::Option>> options;  // see fusion::Lowered
  std::vector<fusion::LaunchOrigin> origins;         // see fusion::Lowered
  std::optional<fusion::Scheme> scheme;
  std::optional<Tuned> tuned;
};

// What the plans of one engine share: a GPU or a target, templates, cache and compiler. Safe to use
// from several threads.
class GpuBackend {
 public:
  // Throws what Engine's constructor does.
  explicit GpuBackend(const EngineOptions& options);

  // The pipeline behind normalise: join products, defer norms, where the options ask for it and
  // this does, tune, alike, lower, render, compile. Throws what Engine::build does.
  GpuCode compile(const graph::Ir& given, bool may_tune, bool may_defer) const;

  // Fits the rates of the profile to times on the GPU, for engines to come. Throws as calibrate(),
  // and GraphError where this builds for a target.
  Calibration calibrate() const;

  const base::DeviceProfile& profile() const { return profile_; }
  // Templates of the user's, those in quarantine too.
  // In the words of Plan::explain: those of the engine, and why the code has no launch of one.
  std::vector<ForeignTemplate> foreign_templates(const GpuCode& code) const;
  // The index of the GPU. Throws GraphError, in the name of `call`, where this builds for a target.
  int device(std::string_view call) const;

  void report(const Event& event) const;

 private:
  TrustTools trust_tools(const EngineOptions& options);
  fusion::BuildLayout layout_builder() const;
  std::string compiler_build() const;
  std::optional<Tuned> tune(const graph::Ir& ir, bool may_tune) const;
  fusion::JoinedProducts join_products(const graph::Ir& ir, const std::optional<Rewrites>& known,
                                       const fusion::BuildLayout& build_layout) const;
  fusion::DeferredNorms defer_norms(const fusion::JoinedProducts& joined, NormDeferral deferral,
                                    const std::optional<Rewrites>& known,
                                    const fusion::BuildLayout& build_layout) const;
  fusion::RotatedProducts rotate_products(const fusion::DeferredNorms& deferred,
                                          const std::optional<Rewrites>& known,
                                          const fusion::BuildLayout& build_layout) const;
  void report(const jit::Event& event) const;

  std::optional<int> device_;   // nothing: a target alone
  mutable cache::Cache cache_;  // thread-safe
  base::DeviceProfile profile_;
  std::function<void(const Event&)> on_event_;
  std::stop_token stop_;
  TuningRequest tuning_;
  NormDeferral norm_deferral_;
  mutable std::mutex event_mutex_;
  compile::NvrtcCompiler compiler_;
  TrustedTemplates trusted_;
  render::Renderer renderer_;
  jit::Jit jit_;
  jit::TemplateJit template_jit_;
  Tuner tuner_;
};

// What EngineOptions::target is taken to be: the shipped profile that the options name, else the
// first for which it is the native one, else the first on which it runs. Throws GraphError.
base::DeviceProfile profile_of_target(const EngineOptions& options);

// The backend that the options ask for; null for the reference one.
std::shared_ptr<const GpuBackend> open_backend(const EngineOptions& options);

}  // namespace stof::engine
