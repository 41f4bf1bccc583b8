#include "engine/gpu_plan.hpp"

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "execute/arena.hpp"
#include "graph/bind_dims.hpp"

namespace stof::engine {

using execute::DeviceProgram;

namespace {

// A length that grows with each token has thousands of values; executions keep what they use.
constexpr std::size_t kMostVariants = 64;

std::span<const std::byte> cubin_of(const jit::Kernel& kernel) {
  return kernel.compiled.cubin;
}

std::string describe_launch(const GpuCode& code, const kernel::LaunchRecord& launch) {
  const auto kernel = static_cast<std::size_t>(launch.kernel);
  const compile::FunctionResources& resources =
      code.kernels[kernel].compiled.entry(code.program.kernels[kernel]);
  const auto extents = [](const std::array<std::int64_t, 3>& sizes) {
    return fmt::format("{}x{}x{}", sizes[0], sizes[1], sizes[2]);
  };
  return fmt::format(
      "{}: {}, grid {}, block {}, cluster {}, shared {} + {} bytes, registers {}, spills {} "
      "bytes{}",
      launch.label, code.templates[kernel], extents(launch.grid), extents(launch.block),
      extents(launch.cluster), resources.shared_bytes, launch.shared_bytes, resources.registers,
      resources.spill_store_bytes, launch.is_programmatic ? ", programmatic" : "");
}

}  // namespace

GpuPlan::GpuPlan(std::shared_ptr<const GpuBackend> backend, graph::Ir primitive)
    : backend_(std::move(backend)), primitive_(std::move(primitive)) {
  code(largest_dims());
}

DimValues GpuPlan::largest_dims() const {
  DimValues dims;
  for (const auto& [name, dim] : primitive_.dims) {
    dims.emplace(name, dim.max());
  }
  return dims;
}

GpuPlan::Variant& GpuPlan::variant(const DimValues& dims) const {
  const auto found = variants_.find(dims);
  if (found != variants_.end()) {
    return found->second;
  }
  auto code =
      std::make_shared<const GpuCode>(backend_->compile(graph::bind_dims(primitive_, dims)));
  if (variants_.size() >= kMostVariants) {
    variants_.clear();
  }
  return variants_[dims] = {.code = std::move(code), .program = nullptr};
}

std::shared_ptr<const GpuCode> GpuPlan::code(const DimValues& dims) const {
  const std::lock_guard lock(mutex_);
  return variant(dims).code;
}

std::shared_ptr<const DeviceProgram> GpuPlan::load(const DimValues& dims) const {
  const int device = backend_->device("bind");
  const std::lock_guard lock(mutex_);
  Variant& variant = this->variant(dims);
  if (!variant.program) {
    std::vector<std::span<const std::byte>> cubins;
    for (const jit::Kernel& kernel : variant.code->kernels) {
      cubins.push_back(cubin_of(kernel));
    }
    variant.program = std::make_shared<const DeviceProgram>(device, variant.code->program, cubins);
  }
  return variant.program;
}

std::int64_t GpuPlan::workspace_bytes(const DimValues& dims) const {
  return execute::lay_out_arena(code(dims)->program.arena).size_bytes;
}

std::string GpuPlan::explain(const DimValues& dims) const {
  const DimValues& used = dims.empty() ? largest_dims() : dims;
  const std::shared_ptr<const GpuCode> code = this->code(used);
  std::string text = fmt::format(
      "gpu backend, {} as {}\n{} launches of {} kernels, workspace {} bytes\n",
      backend_->profile().name, backend_->profile().target, code->program.launches.size(),
      code->kernels.size(), execute::lay_out_arena(code->program.arena).size_bytes);
  for (const auto& [name, value] : used) {
    text += fmt::format("{} = {}\n", name, value);
  }
  if (code->scheme) {
    text += fmt::format("fusion scheme {}: {} segments of {} operators\n", code->scheme->hex(),
                        code->scheme->segments().size(), code->scheme->digits().size());
  }
  for (std::size_t i = 0; i < code->program.launches.size(); ++i) {
    text += describe_launch(*code, code->program.launches[i]) + "\n";
    const char* word = "predicted";
    for (const fusion::Option& option : code->options[i]) {
      text += fmt::format("  {} {}\n", word, option.text());
      word = "instead of";
    }
  }
  return text;
}

}  // namespace stof::engine
