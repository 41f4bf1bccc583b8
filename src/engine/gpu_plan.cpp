#include "engine/gpu_plan.hpp"

#include <cstddef>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/text.hpp"
#include "execute/bound_layout.hpp"
#include "graph/bind_dims.hpp"

namespace stof::engine {

using execute::DeviceProgram;

namespace {

// A length that grows with each token has thousands of values; executions keep what they use.
constexpr std::size_t kMostVariants = 64;

std::span<const std::byte> cubin_of(const jit::Kernel& kernel) {
  return kernel.compiled.cubin;
}

LaunchDescription describe_launch(const GpuCode& code, const kernel::LaunchRecord& launch) {
  const auto kernel = static_cast<std::size_t>(launch.kernel);
  const compile::FunctionResources& resources =
      code.kernels[kernel].compiled.entry(code.program.kernels[kernel]);
  return {.label = launch.label,
          .file = code.templates[kernel],
          .grid = launch.grid,
          .block = launch.block,
          .cluster = launch.cluster,
          .static_shared_bytes = resources.shared_bytes,
          .dynamic_shared_bytes = launch.shared_bytes,
          .registers = resources.registers,
          .spill_bytes = resources.spill_store_bytes,
          .is_programmatic = launch.is_programmatic,
          .predicted_us = 0,
          .measured_us = {},
          .options = {}};
}

// What tuning measured of what a launch runs.
std::optional<double> measured(const GpuCode& code, std::size_t launch) {
  if (code.tuned && code.origins[launch].refusal.empty()) {
    const std::string problem = fusion::problem_key(code.origins[launch].problem);
    for (const TunedSegment& segment : code.tuned->segments) {
      if (segment.problem == problem && segment.is_kept) {
        return segment.time_us;
      }
    }
  }
  return std::nullopt;
}

LayoutDescription describe_layout(const GpuCode& code, const kernel::LayoutBuild& build) {
  return {.mask = build.name,
          .first_reader = code.program.launches[static_cast<std::size_t>(build.first_launch)].label,
          .has_runs = build.runs.has_value(),
          .has_tiles = !build.tile_q.empty() || build.has_key_rows,
          .max_part_tiles = build.max_part_tiles,
          .workspace_bytes =
              static_cast<std::int64_t>(execute::run_time_layout(build).workspace_bytes())};
}

}  // namespace

GpuPlan::GpuPlan(std::shared_ptr<const GpuBackend> backend, graph::Ir primitive)
    : backend_(std::move(backend)),
      primitive_(std::move(primitive)),
      weights_together_(fusion::joinable_weights(primitive_)) {
  code(largest_dims(), /*may_tune=*/true);
}

DimValues GpuPlan::largest_dims() const {
  DimValues dims;
  for (const auto& [name, dim] : primitive_.dims) {
    dims.emplace(name, dim.max());
  }
  return dims;
}

LoadedCode& GpuPlan::variant(const DimValues& dims, bool may_tune) const {
  const auto found = variants_.find(dims);
  if (found != variants_.end()) {
    return found->second;
  }
  auto code = std::make_shared<const GpuCode>(
      backend_->compile(graph::bind_dims(primitive_, dims), may_tune, deferral_refusal_.empty()));
  if (variants_.size() >= kMostVariants) {
    variants_.clear();
  }
  return variants_[dims] = {.code = std::move(code), .program = nullptr};
}

std::shared_ptr<const GpuCode> GpuPlan::code(const DimValues& dims, bool may_tune) const {
  const std::lock_guard lock(mutex_);
  return variant(dims, may_tune).code;
}

LoadedCode GpuPlan::load(const DimValues& dims) const {
  const int device = backend_->device("bind");
  const std::lock_guard lock(mutex_);
  LoadedCode& variant = this->variant(dims);
  if (!variant.program) {
    std::vector<std::span<const std::byte>> cubins;
    for (const jit::Kernel& kernel : variant.code->kernels) {
      cubins.push_back(cubin_of(kernel));
    }
    variant.program = std::make_shared<const DeviceProgram>(device, variant.code->program, cubins);
  }
  return variant;
}

void GpuPlan::refuse_deferral(const std::string& reason) const {
  {
    const std::lock_guard lock(mutex_);
    deferral_refusal_ = reason;
    variants_.clear();
  }
  backend_->report({.stage = "fallback", .name = primitive_.name, .detail = reason});
}

std::int64_t GpuPlan::workspace_bytes(const DimValues& dims) const {
  return code(dims)->workspace_bytes;
}

PlanDescription GpuPlan::describe(const DimValues& dims) const {
  const DimValues& used = dims.empty() ? largest_dims() : dims;
  const std::shared_ptr<const GpuCode> code = this->code(used);
  PlanDescription description = {.device = backend_->profile().name,
                                 .target = backend_->profile().target,
                                 .dims = used,
                                 .kernel_count = static_cast<std::int64_t>(code->kernels.size()),
                                 .workspace_bytes = code->workspace_bytes,
                                 .scheme = {},
                                 .tuned = code->tuned,
                                 .deferred_norms = code->deferred_norms,
                                 .deferral_refusal = {},
                                 .foreign_templates = backend_->foreign_templates(*code),
                                 .layouts = {},
                                 .launches = {}};
  {
    const std::lock_guard lock(mutex_);
    description.deferral_refusal = deferral_refusal_;
  }
  for (const kernel::LayoutBuild& build : code->program.layouts) {
    description.layouts.push_back(describe_layout(*code, build));
  }
  if (code->scheme) {
    description.scheme =
        fmt::format("{}: {} of {}", code->scheme->hex(),
                    base::counted(std::ssize(code->scheme->segments()), "segment", "segments"),
                    base::counted(std::ssize(code->scheme->digits()), "operator", "operators"));
  }
  for (std::size_t i = 0; i < code->program.launches.size(); ++i) {
    description.launches.push_back(describe_launch(*code, code->program.launches[i]));
    description.launches.back().measured_us = measured(*code, i);
    description.launches.back().predicted_us = code->options[i].front().time.total_us();
    for (const fusion::Option& option : code->options[i]) {
      description.launches.back().options.push_back(option.text());
    }
  }
  return description;
}

}  // namespace stof::engine
