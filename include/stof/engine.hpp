#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "stof/dtype.hpp"
#include "stof/graph.hpp"
#include "stof/options.hpp"
#include "stof/tensor.hpp"

struct CUstream_st;

namespace stof {

namespace engine {
struct PlanData;
struct WeightsData;
struct ExecutionData;
class GpuBackend;
class Memory;
}  // namespace engine

// One line for a bug report: the version, the number of embedded templates, and the GPUs that this
// process may use or why there are none. Never throws CudaError.
std::string describe();

// A tensor at the border of a plan: an input or an output.
struct TensorInfo {
  std::string name;
  Shape shape;
  DType dtype = DType::Float32;
};

// Contiguous memory of the host or a GPU, owned. Moves, does not copy.
class Buffer {
 public:
  // On the host, zeroed. Throws GraphError on a bad shape.
  Buffer(DType dtype, std::vector<std::int64_t> shape);
  Buffer(DType dtype, std::vector<std::int64_t> shape, std::unique_ptr<engine::Memory> memory);
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();

  DType dtype() const { return dtype_; }
  const std::vector<std::int64_t>& shape() const { return shape_; }

  // Copies a host tensor of the same shape in, after everything launched on the buffer has
  // finished; floats are rounded to this dtype. Throws GraphError.
  void upload(const TensorView& host);
  // As many floats as the buffer has elements, row-major; each is rounded to this dtype.
  void upload(std::span<const float> values);
  // As many integers as the buffer has elements of Int32: offsets, lengths.
  void upload(std::span<const std::int32_t> values);
  // Copies out, after everything launched on it has finished.
  HostTensor download() const;
  std::vector<float> download_floats() const;

  TensorView view() const;
  operator TensorView() const { return view(); }  // NOLINT(google-explicit-constructor): {{"x", x}}

 private:
  DType dtype_;
  std::vector<std::int64_t> shape_;
  std::unique_ptr<engine::Memory> memory_;
};

// Weights of a plan as the backend wants them. Copies share them, and they may outlive the engine.
class Weights {
 public:
  explicit Weights(std::shared_ptr<const engine::WeightsData> data) : data_(std::move(data)) {}
  const std::shared_ptr<const engine::WeightsData>& data() const { return data_; }

 private:
  std::shared_ptr<const engine::WeightsData> data_;
};

using Bindings = std::map<std::string, TensorView>;

struct BindOptions {
  DimValues dims = {};  // a value for every symbolic dim of the graph
  // Device memory of Plan::workspace_bytes(dims), aligned to 256 bytes, that nothing else uses as
  // long as the execution lives. Null: the execution has its own.
  void* workspace = nullptr;
};

// A plan whose memory is bound: launch it as often as you like, from one thread at a time. It keeps
// the weights alive; the bound views must stay valid.
class Execution {
 public:
  explicit Execution(std::unique_ptr<engine::ExecutionData> data);
  Execution(Execution&& other) noexcept;
  Execution& operator=(Execution&& other) noexcept;
  ~Execution();

  // Replaces a bound view by one of the same dtype and shape, from the next launch on. Throws
  // GraphError.
  void set(const std::string& name, const TensorView& view);
  // Runs: on the GPU one launch of a CUDA graph, or its kernels where the stream is being captured.
  // The reference backend has finished when this returns, and ignores the stream. Throws as
  // synchronize what is known by then of earlier launches.
  void launch(CUstream_st* stream = nullptr);
  // Waits until the stream has done all that it was given. Throws GraphError where a launch met a
  // mask_input whose values are out of range, or on a GPU one that has more part tiles than
  // max_part_tiles: outputs of that launch are as if nothing could be seen. Key lengths that are no
  // part of a layout are kv_lengths, which never throw. On the reference backend launch itself
  // throws.
  void synchronize(CUstream_st* stream = nullptr);

 private:
  std::unique_ptr<engine::ExecutionData> data_;
};

// How a graph runs. Immutable and safe to share between threads; holds no weights.
class Plan {
 public:
  explicit Plan(std::shared_ptr<const engine::PlanData> data) : data_(std::move(data)) {}

  const std::vector<TensorInfo>& inputs() const;
  const std::vector<TensorInfo>& weights() const;
  const std::vector<TensorInfo>& outputs() const;
  const TensorInfo& input(const std::string& name) const;   // throws GraphError: no such input
  const TensorInfo& output(const std::string& name) const;  // throws GraphError: no such output

  // Every input and output by name, in the dtype and shape of the plan. On the reference backend
  // they lie on the host and may be strided; on a GPU they lie there, contiguous and aligned to 16
  // bytes, and an output shares no memory with another tensor. Throws GraphError; on a GPU also
  // what Engine::build throws, for dims that are new to it.
  Execution bind(const Weights& weights, const Bindings& tensors,
                 const BindOptions& options = {}) const;

  // Device memory that an execution needs beside its tensors. Throws as bind.
  std::int64_t workspace_bytes(const DimValues& dims = {}) const;

  // What runs, in order, for people; with no dims, at the largest ones.
  std::string explain(const DimValues& dims = {}) const;

  const engine::PlanData& data() const { return *data_; }

 private:
  std::shared_ptr<const engine::PlanData> data_;
};

// Turns graphs into plans for one device. Safe to use from several threads.
class Engine {
  enum class Nothing : std::uint8_t {};

 public:
  // Throws CudaError where there is no GPU for Backend::Gpu, TemplateError for a template that is
  // wrong, GraphError for a bad option.
  explicit Engine(EngineOptions options = {});
  explicit Engine(Nothing /*none*/) : Engine(EngineOptions()) {}  // Engine({}): options or a copy?

  const EngineOptions& options() const { return options_; }
  Backend backend() const;  // that runs the plans: Gpu or Reference

  // Throws GraphError where the graph has no output, an output that is called like an input, or an
  // operator that no template takes; TemplateError, CompileError and CudaError where kernels cannot
  // be made, CacheError where they may not, CancelledError after a stop.
  Plan build(const Graph& graph) const;

  // Takes the weights of the plan by name out of a safetensors file, or out of the caller's
  // tensors; others are passed over. Floats are rounded to the dtype of the graph. Throws
  // GraphError that names a tensor that is missing or has another shape.
  Weights load_weights(const Plan& plan, const std::filesystem::path& file) const;
  Weights load_weights(const Plan& plan, std::span<const NamedTensor> tensors) const;
  // Normally distributed ones, to try a graph or to time it, the same for the same graph; matrices
  // [.., n] have a standard deviation of 1 / sqrt(n), others of 1.
  Weights random_weights(const Plan& plan) const;

  // Memory for an input or output, zeroed. A symbolic shape needs its dims.
  Buffer allocate(const TensorInfo& tensor, const DimValues& dims = {}) const;

 private:
  EngineOptions options_;
  std::shared_ptr<const engine::GpuBackend> gpu_;  // shared with the plans; null for Reference
};

}  // namespace stof
