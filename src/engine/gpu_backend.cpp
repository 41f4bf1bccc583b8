#include "engine/gpu_backend.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <iterator>
#include <map>
#include <system_error>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "base/environment.hpp"
#include "base/gpu_target.hpp"
#include "base/log.hpp"
#include "cache/disk_layer.hpp"
#include "compile/check_entry.hpp"
#include "cuda/read_device_profile.hpp"
#include "engine/explain.hpp"
#include "engine/gpu_layouts.hpp"
#include "execute/arena.hpp"
#include "execute/argument.hpp"
#include "fusion/rotated_products.hpp"
#include "fusion/why_unused.hpp"
#include "stof/error.hpp"

namespace stof::engine {

using base::DeviceProfile;

DeviceProfile profile_of_target(const EngineOptions& options) {
  const base::GpuTarget target = base::parse_gpu_target(options.target);
  const base::GpuTarget native = base::native_target(target.capability);
  if (native.has_wgmma() && !target.has_wgmma()) {
    throw GraphError(
        fmt::format("engine: target {0} leaves out what the kernels for such a GPU use: take {1}, "
                    "which each of them runs",
                    target.text(), native.text()));
  }
  const DeviceProfile* profile = nullptr;
  if (!options.device_profile.empty()) {
    profile = &base::shipped_profile(options.device_profile);
  }
  for (const auto& [name, shipped] : base::shipped_profiles()) {
    if (profile == nullptr && shipped.target == target.text()) {
      profile = &shipped;
    }
  }
  for (const auto& [name, shipped] : base::shipped_profiles()) {
    if (profile == nullptr && target.runs_on(static_cast<int>(shipped.compute_capability))) {
      profile = &shipped;
    }
  }
  if (profile == nullptr || !target.runs_on(static_cast<int>(profile->compute_capability))) {
    throw GraphError(
        fmt::format("engine: target {} does not run on {}", target.text(),
                    profile == nullptr ? "a GPU of a shipped profile" : profile->name));
  }
  DeviceProfile result = *profile;
  result.target = target.text();
  return result;
}

namespace {

std::optional<int> find_device(const EngineOptions& options) {
  return options.target.empty() ? std::optional(options.device) : std::nullopt;
}

DeviceProfile find_profile(const EngineOptions& options, cache::TuningStore& store) {
  if (!options.target.empty()) {
    return profile_of_target(options);
  }
  try {
    const DeviceProfile device = cuda::read_device_profile(options.device);
    return find_calibration(store, device).value_or(device);
  } catch (const CudaError& error) {
    throw CudaError(error.code(),
                    fmt::format("engine: GPU {} cannot be used: {}; Backend::Reference needs none, "
                                "and a target such as \"sm_90a\" builds without one",
                                options.device, error.what()));
  }
}

std::optional<std::string> why_no_gpu(int device) {
  try {
    cuda::read_device_profile(device);
    return std::nullopt;
  } catch (const Error& error) {
    return error.what();
  }
}

std::shared_ptr<const render::TemplateStore> open_templates(const EngineOptions& options) {
  std::vector<std::filesystem::path> folders = options.template_dirs;
  const auto environment = base::read_environment().template_dirs;
  folders.insert(folders.end(), environment.begin(), environment.end());
  return std::make_shared<const render::TemplateStore>(render::TemplateStore::open(folders));
}

// Throws GraphError where a pack is none.
std::unique_ptr<cache::Layer> open_pack(const std::filesystem::path& pack) {
  std::error_code ignored;
  const std::filesystem::path folder = std::filesystem::absolute(pack, ignored) / cache::kLayout;
  if (!std::filesystem::is_directory(folder, ignored)) {
    throw GraphError(
        fmt::format("engine: pack {} has no folder {}, which `stof compile --cache-dir` makes",
                    pack.string(), cache::kLayout));
  }
  const cache::Warn warn = [](const std::string& text) { base::log("{}", text); };
  return std::make_unique<cache::DiskLayer>(folder, false, warn, "pack");
}

cache::CacheOptions cache_options(const EngineOptions& options) {
  cache::CacheOptions result = cache::default_options(base::read_environment());
  if (options.cache_dir) {
    result.directory = options.cache_dir->empty() ? std::nullopt : options.cache_dir;
  }
  result.is_read_only = options.jit == JitMode::ReadOnly;
  std::ranges::transform(options.packs, std::back_inserter(result.packs), open_pack);
  return result;
}

// Throws GraphError where tuning is asked for and cannot be.
void check_tuning(const EngineOptions& options) {
  if (options.tuning == Tuning::None) {
    return;
  }
  if (!options.target.empty()) {
    throw GraphError("engine: tuning times kernels on a GPU, and target " + options.target +
                     " builds without one");
  }
  if (options.jit == JitMode::Off) {
    throw GraphError("engine: tuning compiles kernels, which JitMode::Off forbids");
  }
}

// What holds of all backends.
void check_options(const EngineOptions& options) {
  if (options.device < 0) {
    throw GraphError(fmt::format("engine: device is {}, the least is 0", options.device));
  }
  if (!options.device_profile.empty() && options.target.empty()) {
    throw GraphError("engine: device_profile '" + options.device_profile +
                     "' goes with a target, a device has its own");
  }
  if (!(options.tuning_seconds >= 0)) {
    throw GraphError(
        fmt::format("engine: tuning_seconds is {}, the least is 0", options.tuning_seconds));
  }
}

// An event of the jit in words; its template is known.
struct Wording {
  Event event;

  Event operator()(const jit::HitEvent& hit) { return worded("cache", 0, hit.layer); }
  Event operator()(const jit::WaitEvent& wait) {
    return worded("wait", 0, fmt::format("process {} compiles it", wait.process));
  }
  Event operator()(const jit::CompileBeginEvent& begin) {
    return worded("compile", 0, fmt::format("{} of {}", begin.index + 1, begin.count));
  }
  Event operator()(const jit::CompileEndEvent& end) {
    if (!end.error.empty()) {
      return worded("compiled", end.time_ms, end.error);
    }
    for (const compile::FunctionResources& function : end.functions) {
      if (function.is_entry) {
        return worded("compiled", end.time_ms,
                      fmt::format("registers {}, spills {} bytes", function.registers,
                                  function.spill_store_bytes));
      }
    }
    return worded("compiled", end.time_ms, "");
  }

  Event worded(const char* stage, double milliseconds, std::string detail) {
    event.stage = stage;
    event.milliseconds = milliseconds;
    event.detail = std::move(detail);
    return event;
  }
};

}  // namespace

GpuBackend::GpuBackend(const EngineOptions& options)
    : device_(find_device(options)),
      cache_(cache_options(options)),
      profile_(find_profile(options, cache_.tuning())),
      on_event_(options.on_event),
      stop_(options.stop_token),
      tuning_({.level = options.tuning,
               .seconds = options.tuning_seconds,
               .stop = options.tuning_stop}),
      norm_deferral_(options.norm_deferral),
      trusted_(trusted_templates(trust_tools(options), open_templates(options))),
      renderer_(trusted_.store),
      jit_(cache_, compiler_,
           {.may_compile = options.jit != JitMode::Off,
            .on_event = [this](const jit::Event& event) { report(event); }}),
      template_jit_(cache_, compiler_, renderer_, jit_),
      tuner_({.device = device_,
              .profile = &profile_,
              .templates = &trusted_.library,
              .templates_digest = trusted_.digest,
              .jit = &template_jit_,
              .compiler = [this] { return compiler_build(); },
              .store = &cache_.tuning(),
              .build_layout = layout_builder(),
              .report = [this](const Event& event) { report(event); }}) {
  check_tuning(options);
}

TrustTools GpuBackend::trust_tools(const EngineOptions& options) {
  return {.cache = &cache_,
          .compiler = &compiler_,
          .profile = &profile_,
          .device = device_,
          .trust = options.trust,
          .may_compile = options.jit != JitMode::Off,
          .stop = stop_,
          .report = [this](const Event& event) { report(event); }};
}

std::string GpuBackend::compiler_build() const {
  return compiler_.inputs({.source = {}, .target = base::parse_gpu_target(profile_.target)})
      .compiler;
}

Calibration GpuBackend::calibrate() const {
  const TrialTools tools{.device = device("calibrate"),
                         .profile = &profile_,
                         .jit = &template_jit_,
                         .compiler = compiler_build(),
                         .stop = stop_,
                         .tell = [this](const std::string& name, const std::string& detail) {
                           report({.stage = "calibrate", .name = name, .detail = detail});
                         }};
  return engine::calibrate(tools, trusted_.library, layout_builder(), cache_.tuning());
}

fusion::BuildLayout GpuBackend::layout_builder() const {
  if (device_) {
    return [device = *device_](const Mask& mask, const mask::Extent& extent) {
      return engine::build_layout(device, mask, extent);
    };
  }
  return
      [](const Mask& mask, const mask::Extent& extent) { return mask::build_layout(mask, extent); };
}

std::optional<Tuned> GpuBackend::tune(const graph::Ir& ir, bool may_tune) const {
  std::optional<Tuned> known = tuner_.find(ir);
  if (!may_tune || tuning_.level == Tuning::None || (known && known->level >= tuning_.level)) {
    return known;
  }
  return tuner_.tune(ir, tuning_);
}

fusion::JoinedProducts GpuBackend::join_products(const graph::Ir& ir,
                                                 const std::optional<Rewrites>& known,
                                                 const fusion::BuildLayout& build_layout) const {
  return known ? fusion::join_products(ir, known->joined)
               : fusion::join_products_if_faster(ir, trusted_.library, profile_, build_layout);
}

fusion::DeferredNorms GpuBackend::defer_norms(const fusion::JoinedProducts& joined,
                                              NormDeferral deferral,
                                              const std::optional<Rewrites>& known,
                                              const fusion::BuildLayout& build_layout) const {
  fusion::DeferredNorms deferred{.ir = {}, .scheme = joined.scheme};
  switch (deferral) {
    case NormDeferral::Never:
      deferred.ir = joined.ir;
      break;
    case NormDeferral::IfFaster:
      deferred =
          known ? fusion::defer_norms(joined, known->deferred)
                : fusion::defer_norms_if_faster(joined, trusted_.library, profile_, build_layout);
      break;
    case NormDeferral::Always:
      deferred = fusion::defer_norms(joined.ir, joined.weights);
      break;
  }
  return deferred;
}

fusion::RotatedProducts GpuBackend::rotate_products(const fusion::DeferredNorms& deferred,
                                                    const std::optional<Rewrites>& known,
                                                    const fusion::BuildLayout& build_layout) const {
  if (!known) {
    return fusion::rotate_products_if_faster({.ir = deferred.ir, .scheme = deferred.scheme},
                                             trusted_.library, profile_, build_layout);
  }
  fusion::RotatedProducts rotated = fusion::rotate_products(deferred.ir, known->rotated);
  rotated.scheme = known->scheme;
  return rotated;
}

GpuCode GpuBackend::compile(const graph::Ir& given, bool may_tune, bool may_defer) const {
  if (stop_.stop_requested()) {
    throw CancelledError("build: cancelled");
  }
  const fusion::BuildLayout build_layout = fusion::remembering(layout_builder());
  const NormDeferral deferral = may_defer ? norm_deferral_ : NormDeferral::Never;
  const kernel::Key rewrites = rewrites_key(given, profile_, trusted_.digest, deferral);
  const std::optional<Rewrites> known = find_rewrites(cache_, rewrites);
  fusion::JoinedProducts joined = join_products(given, known, build_layout);
  fusion::DeferredNorms deferred = defer_norms(joined, deferral, known, build_layout);
  const fusion::RotatedProducts rotated = rotate_products(deferred, known, build_layout);
  const graph::Ir& ir = rotated.ir;
  std::optional<Tuned> tuned = tune(ir, may_tune);
  std::optional<fusion::Scheme> models_scheme = rotated.scheme;
  const auto start = std::chrono::steady_clock::now();
  const auto lower = [&] {
    fusion::Decisions decisions = tuned ? tuned->decisions() : fusion::Decisions();
    if (!decisions.scheme) {
      decisions.scheme = models_scheme;  // what lowering would search for once more
    }
    return fusion::lower(ir, trusted_.library, profile_, build_layout, decisions);
  };
  std::optional<fusion::Lowered> lowering;
  while (!lowering) {
    try {
      lowering = lower();
    } catch (const GraphError& error) {
      // What is remembered may be a record of others, for a graph or templates that are not these.
      if (tuned) {
        tuned.reset();
      } else if (known && models_scheme) {
        models_scheme.reset();
      } else {
        throw;
      }
      report({.stage = "tune",
              .name = ir.name,
              .detail = fmt::format("what is remembered does not run: {}", error.what())});
    }
  }
  fusion::Lowered& lowered = *lowering;
  const bool is_models_scheme = !tuned || !tuned->scheme;
  const bool is_new_scheme = is_models_scheme && !models_scheme;
  if (!known || is_new_scheme) {  // where tuning chose the scheme, the entry has none at first
    Rewrites chosen = known.value_or(Rewrites{.joined = joined.kinds,
                                              .deferred = deferred.kinds,
                                              .rotated = rotated.kinds,
                                              .scheme = {}});
    chosen.scheme = is_new_scheme ? lowered.scheme : models_scheme;
    add_rewrites(cache_, rewrites, chosen);
  }
  const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
  report({.stage = "lower",
          .name = ir.name,
          .milliseconds = time.count(),
          .detail = launches_of_kernels(std::ssize(lowered.program.launches),
                                        std::ssize(lowered.specs))});
  GpuCode code;
  code.ir = ir;
  code.joined_weights = std::move(joined.weights);
  code.folded_products = std::move(deferred.products);
  code.deferred_norms = std::move(deferred.norms);
  code.program = std::move(lowered.program);
  code.workspace_bytes = execute::lay_out_arena(code.program).size_bytes;
  code.options = std::move(lowered.options);
  code.origins = std::move(lowered.origins);
  code.tuned = std::move(tuned);
  code.scheme = std::move(lowered.scheme);
  for (const kernel::KernelSpec& spec : lowered.specs) {
    code.templates.push_back(spec.file);
  }
  try {
    code.kernels =
        template_jit_.get_or_compile(lowered.specs, base::parse_gpu_target(profile_.target), stop_);
  } catch (const CacheError& error) {
    throw CacheError(
        fmt::format("{}; what is compiled for one GPU may lack kernels for another: "
                    "this plan is for {}",
                    error.what(), profile_.name));
  }
  for (std::size_t i = 0; i < lowered.specs.size(); ++i) {
    compile::check_entry(code.kernels[i].compiled, lowered.specs[i].file, lowered.specs[i].entry,
                         execute::argument_bytes(code.program, static_cast<int>(i)));
  }
  return code;
}

std::vector<ForeignTemplate> GpuBackend::foreign_templates(const GpuCode& code) const {
  const fusion::BuildLayout build_layout = fusion::remembering(layout_builder());
  std::vector<ForeignTemplate> foreign = trusted_.foreign;
  for (ForeignTemplate& one : foreign) {
    const bool is_launched = std::ranges::find(code.templates, one.file) != code.templates.end();
    const auto found = std::ranges::find(trusted_.library, one.file, &fusion::KernelTemplate::file);
    if (one.is_used && !is_launched && found != trusted_.library.end()) {
      one.detail += "; no launch has it: ";
      one.detail += fusion::why_unused(*found, code.ir, trusted_.library, profile_, build_layout);
    }
  }
  return foreign;
}

int GpuBackend::device(std::string_view call) const {
  if (!device_) {
    throw GraphError(fmt::format(
        "{}: the engine builds for target {} and has no GPU; an engine without a target has one",
        call, profile_.target));
  }
  return *device_;
}

void GpuBackend::report(const Event& event) const {
  if (on_event_) {
    const std::lock_guard lock(event_mutex_);
    on_event_(event);
  }
}

void GpuBackend::report(const jit::Event& event) const {
  Event named;
  named.name = event.source;
  report(std::visit(Wording{std::move(named)}, event.what));
}

std::shared_ptr<const GpuBackend> open_backend(const EngineOptions& options) {
  check_options(options);
  if (options.backend == Backend::Reference) {
    if (!options.target.empty()) {
      throw GraphError("engine: target " + options.target + " is for Backend::Gpu");
    }
    if (options.tuning != Tuning::None) {
      throw GraphError("engine: tuning times kernels on a GPU, which Backend::Reference has not");
    }
    return nullptr;
  }
  if (options.backend == Backend::Auto && options.target.empty()) {
    if (const std::optional<std::string> reason = why_no_gpu(options.device)) {
      if (options.on_event) {
        options.on_event({.stage = "fallback", .name = "reference backend", .detail = *reason});
      }
      return nullptr;
    }
  }
  return std::make_shared<const GpuBackend>(options);
}

}  // namespace stof::engine
