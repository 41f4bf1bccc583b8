// Plans of the bench behind a C interface, for scripts that own the tensors: libstof_bench.so.
// Calls give null, false or a negative number where they fail, and stof_bench_error then says why.
#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "cuda/check.hpp"
#include "mask/evaluate.hpp"
#include "mask_layout/build.hpp"
#include "masks.hpp"
#include "models/zoo.hpp"
#include "stof/stof.hpp"

namespace {

using stof::DType;
using stof::Graph;
using stof::Tensor;

thread_local std::string last_error;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)

// What call() gives, or `failed` where it throws.
template <typename Result, typename Call>
Result guarded(Result failed, const Call& call) noexcept {
  try {
    return call();
  } catch (const std::exception& error) {
    last_error = error.what();
  } catch (...) {
    last_error = "an exception that is no std::exception";
  }
  return failed;
}

DType dtype_of(std::string_view name) {
  const std::optional<DType> dtype = stof::dtype_from_name(name);
  if (!dtype) {
    throw std::invalid_argument(fmt::format("no dtype {}", name));
  }
  return *dtype;
}

struct GroupSize {
  std::int64_t tokens = 0;
  std::int64_t hidden = 0;
  DType dtype = DType::Float16;
};

// Builds a group of operators around x [tokens, hidden]. Weights are inputs, [in, out].
class GroupBuilder {
 public:
  GroupBuilder(std::string_view name, const GroupSize& size) : graph_(name), size_(size) {}

  Tensor x() { return tensor("x", {size_.tokens, size_.hidden}); }

  // x times a weight [hidden, factor * hidden], or of the extents turned where x is the wide one.
  Tensor product(const Tensor& x, const std::string& weight, std::int64_t out_factor) {
    return graph_.matmul(x, tensor(weight, {x.shape()[-1], out_factor * size_.hidden}));
  }

  Tensor add_bias(const Tensor& x, const std::string& bias) {
    return graph_.add(x, tensor(bias, {x.shape()[-1]}));
  }

  Tensor residual_norm(const Tensor& x) {
    const Tensor sum = graph_.add(x, tensor("residual", {size_.tokens, size_.hidden}));
    return graph_.layer_norm(sum, tensor("gamma", {size_.hidden}), tensor("beta", {size_.hidden}));
  }

  Tensor rms_norm(const Tensor& x) { return graph_.rms_norm(x, tensor("gamma", {size_.hidden})); }

  Tensor gelu(const Tensor& x) { return graph_.gelu(x); }

  // silu(x gate) * (x up), with weights [out, in] of 8 / 3 times the channels, as those of LLaMA.
  Tensor gated(const Tensor& x) {
    constexpr std::int64_t kMultiple = 256;
    const std::int64_t out = (8 * size_.hidden + 3 * kMultiple - 1) / (3 * kMultiple) * kMultiple;
    const Tensor gate = graph_.matmul(x, tensor("gate", {out, size_.hidden}), false, true);
    const Tensor up = graph_.matmul(x, tensor("up", {out, size_.hidden}), false, true);
    return graph_.multiply(graph_.silu(gate), up);
  }

  // Of wide rows, with a weight [out, in] and the residual: what follows an activation.
  Tensor down_and_residual(const Tensor& x) {
    const Tensor weight = tensor("down", {size_.hidden, x.shape()[-1]});
    const Tensor residual = tensor("residual", {size_.tokens, size_.hidden});
    return graph_.add(graph_.matmul(x, weight, false, true), residual);
  }

  // Up to four times the channels, with a weight [out, in].
  Tensor up_and_gelu(const Tensor& x) {
    const Tensor weight = tensor("up", {4 * size_.hidden, size_.hidden});
    return graph_.gelu(add_bias(graph_.matmul(x, weight, false, true), "bias_in"));
  }

  Graph finish(const Tensor& y) {
    graph_.output("y", y);
    return std::move(graph_);
  }

 private:
  Tensor tensor(const std::string& name, const stof::Shape& shape) {
    return graph_.input(name, shape, size_.dtype);
  }

  Graph graph_;
  GroupSize size_;
};

using Group = std::function<Tensor(GroupBuilder&)>;

const std::map<std::string_view, Group>& groups() {
  static const std::map<std::string_view, Group> groups = {
      {"bias_res_ln", [](GroupBuilder& b) { return b.residual_norm(b.add_bias(b.x(), "bias")); }},
      {"rmsnorm", [](GroupBuilder& b) { return b.rms_norm(b.x()); }},
      {"gemm_hh", [](GroupBuilder& b) { return b.product(b.x(), "weight", 1); }},
      {"gemm_h3h_bias",
       [](GroupBuilder& b) { return b.add_bias(b.product(b.x(), "weight", 3), "bias"); }},
      {"gemm_bias_gelu",
       [](GroupBuilder& b) { return b.gelu(b.add_bias(b.product(b.x(), "weight", 4), "bias")); }},
      {"gated", [](GroupBuilder& b) { return b.gated(b.x()); }},
      {"gemm_bias_res_ln",
       [](GroupBuilder& b) {
         return b.residual_norm(b.add_bias(b.product(b.x(), "weight", 1), "bias"));
       }},
      {"mlp_res_ln",
       [](GroupBuilder& b) {
         const Tensor inner = b.gelu(b.add_bias(b.product(b.x(), "weight_in", 4), "bias_in"));
         return b.residual_norm(b.add_bias(b.product(inner, "weight_out", 1), "bias_out"));
       }},
      {"mlp_res", [](GroupBuilder& b) { return b.down_and_residual(b.up_and_gelu(b.x())); }},
      {"gated_mlp_res", [](GroupBuilder& b) { return b.down_and_residual(b.gated(b.x())); }},
  };
  return groups;
}

Graph group_graph(std::string_view name, const GroupSize& size) {
  const auto group = groups().find(name);
  if (group == groups().end()) {
    throw std::invalid_argument(fmt::format("no fusion group {}", name));
  }
  GroupBuilder builder(name, size);
  return builder.finish(group->second(builder));
}

}  // namespace

// A case of attention; the layout is known to the scripts.
struct StofBenchAttention {
  const char* mask;
  const char* score;  // "" for none
  const char* form;   // in which the mask arrives on each run; "" for a fixed one
  const char* dtype;
  std::int64_t batch;
  std::int64_t heads;
  std::int64_t kv_heads;
  std::int64_t q_len;
  std::int64_t kv_len;
  std::int64_t head_dim;
};

namespace {

// The mask of the last q_len queries of kv_len.
stof::Mask mask_of(const StofBenchAttention& shape) {
  const std::string_view name = shape.mask;
  if (shape.q_len == shape.kv_len || name == "full") {
    return stof::bench::mask(name, shape.kv_len);
  }
  if (name == "causal") {
    return stof::causal_bottom_right();
  }
  throw std::invalid_argument(fmt::format("mask {} takes as many queries as keys, not {} and {}",
                                          name, shape.q_len, shape.kv_len));
}

// The modifier of scores.py of the shape's name; what it reads is an input.
std::optional<stof::Score> score_of(const StofBenchAttention& shape, Graph& graph) {
  const std::string_view name = shape.score;
  const stof::Expr score = stof::score(), head = stof::head_index();
  const stof::Expr query = stof::query_position(), key = stof::key_position();
  if (name.empty()) {
    return {};
  }
  if (name == "alibi") {
    std::vector<double> slopes;
    for (std::int64_t i = 1; i <= shape.heads; ++i) {
      slopes.push_back(std::exp2(-8.0 * static_cast<double>(i) / static_cast<double>(shape.heads)));
    }
    const stof::Expr distance = key - query - (shape.kv_len - shape.q_len);
    return score + stof::Table("slopes", std::move(slopes))[head] * distance;
  }
  if (name == "softcap") {
    constexpr double kCap = 50;
    return kCap * stof::tanh(score / kCap);
  }
  const auto bias = [&](const stof::Shape& extents) {
    const Tensor input = graph.input("bias", extents, dtype_of(shape.dtype));
    return graph.capture(input, "bias");
  };
  if (name == "relative") {
    const stof::Capture biases = bias({shape.heads, shape.q_len + shape.kv_len - 1});
    return score + biases(head, key - query + (shape.q_len - 1));
  }
  if (name == "bias") {
    return score + bias({shape.heads, shape.q_len, shape.kv_len})(head, query, key);
  }
  throw std::invalid_argument(fmt::format("no score modifier {}", name));
}

// How the shape's mask reaches the graph: fixed, or in an input, of which it is a sample.
stof::AttentionOptions masked_options(const StofBenchAttention& shape, const stof::Mask& mask,
                                      Graph& graph) {
  const std::string_view form = shape.form;
  if (form.empty()) {
    return {.mask = mask};
  }
  if (form == "lengths") {
    return {.mask = mask, .kv_lengths = graph.input("lengths", {shape.batch}, DType::Int32)};
  }
  const auto arriving = [&](const stof::Shape& extents, stof::MaskForm as) {
    return graph.mask_input(shape.form, extents, {.form = as, .like = mask});
  };
  if (form == "offsets") {
    const auto count =
        static_cast<std::int64_t>(stof::bench::document_offsets(shape.kv_len).size());
    const bool is_causal = std::string_view(shape.mask) == "doc_causal";
    return {.mask = is_causal ? stof::causal() : stof::Mask(),
            .mask_input = arriving({count}, stof::MaskForm::CuSeqlens)};
  }
  if (form == "bytes") {
    return {.mask_input = arriving({1, 1, shape.q_len, shape.kv_len}, stof::MaskForm::Dense)};
  }
  if (form == "columns") {
    const stof::mask::Extent extent = {.q_len = shape.q_len, .kv_len = shape.kv_len};
    std::int64_t count = 0;
    for (const std::uint64_t word : stof::mask::evaluate_all(mask, extent).words) {
      count += std::popcount(word);
    }
    return {.mask_input = arriving({shape.q_len, count}, stof::MaskForm::Csr)};
  }
  throw std::invalid_argument(fmt::format("no form of masks {}", form));
}

Graph attention_graph(const StofBenchAttention& shape, const stof::Mask& mask) {
  const DType dtype = dtype_of(shape.dtype);
  Graph graph("attention");
  const Tensor q = graph.input("q", {shape.batch, shape.heads, shape.q_len, shape.head_dim}, dtype);
  const stof::Shape keys = {shape.batch, shape.kv_heads, shape.kv_len, shape.head_dim};
  const Tensor k = graph.input("k", keys, dtype);
  const Tensor v = graph.input("v", keys, dtype);
  stof::AttentionOptions options = masked_options(shape, mask, graph);
  options.score = score_of(shape, graph);
  graph.output("o", graph.attention(q, k, v, options));
  return graph;
}

struct MaskedShape {
  stof::Mask mask;
  std::int64_t q_len = 0;
  std::int64_t kv_len = 0;
};

}  // namespace

struct StofBenchPlan {
  stof::Engine engine;
  stof::Plan plan;
  std::optional<stof::Weights> weights;
  std::string explanation;
  std::optional<MaskedShape> masked;  // of attention
  std::optional<stof::Execution> execution;
};

// Memory of the current GPU, or of the host for weights.
struct StofBenchTensor {
  const char* name;
  void* data;
  std::int64_t size_bytes;
};

namespace {

StofBenchPlan* make_plan(const stof::Engine& engine, const Graph& graph,
                         std::optional<MaskedShape> masked) {
  stof::Plan plan = engine.build(graph);
  std::optional<stof::Weights> weights;
  if (plan.weights().empty()) {
    weights = engine.load_weights(plan, std::span<const stof::NamedTensor>());
  }
  std::string explanation = plan.explain();
  return new StofBenchPlan{.engine = engine,
                           .plan = std::move(plan),
                           .weights = std::move(weights),
                           .explanation = std::move(explanation),
                           .masked = std::move(masked),
                           .execution = {}};
}

stof::TensorView view_of(const stof::TensorInfo& info, const StofBenchTensor& tensor,
                         stof::Location location) {
  stof::TensorView view{
      .data = tensor.data, .dtype = info.dtype, .shape = info.shape.sizes(), .location = location};
  const std::int64_t size_bytes = view.element_count() * stof::size_bytes(info.dtype);
  if (size_bytes != tensor.size_bytes) {
    throw std::invalid_argument(fmt::format("'{}' has {} bytes, the plan takes {}", info.name,
                                            tensor.size_bytes, size_bytes));
  }
  return view;
}

}  // namespace

// Hidden is what the rest of the library is.
#pragma GCC visibility push(default)
extern "C" {

// Why the last call of this thread that failed did.
const char* stof_bench_error() {
  return last_error.c_str();
}

// For the current GPU, or for a target such as "sm_90a", whose plans can be explained alone. Where
// plans are tuned, what is found out is forgotten with the engine.
stof::Engine* stof_bench_open(const char* target, bool is_tuned) {
  return guarded<stof::Engine*>(nullptr, [&] {
    stof::EngineOptions options{.backend = stof::Backend::Gpu};
    options.target = target;
    if (is_tuned) {
      options.tuning = stof::Tuning::Full;
      options.cache_dir.emplace();
    }
    return new stof::Engine(std::move(options));
  });
}

void stof_bench_close(stof::Engine* engine) {
  delete engine;
}

StofBenchPlan* stof_bench_attention(const stof::Engine* engine, const StofBenchAttention* shape) {
  return guarded<StofBenchPlan*>(nullptr, [&] {
    MaskedShape masked{.mask = mask_of(*shape), .q_len = shape->q_len, .kv_len = shape->kv_len};
    const Graph graph = attention_graph(*shape, masked.mask);
    if (std::string_view(shape->form).empty()) {
      return make_plan(*engine, graph, std::move(masked));
    }
    return make_plan(*engine, graph, {});  // each run builds the layout
  });
}

StofBenchPlan* stof_bench_fusion(const stof::Engine* engine, const char* group, std::int64_t tokens,
                                 std::int64_t hidden, const char* dtype) {
  return guarded<StofBenchPlan*>(nullptr, [&] {
    const GroupSize size{.tokens = tokens, .hidden = hidden, .dtype = dtype_of(dtype)};
    return make_plan(*engine, group_graph(group, size), {});
  });
}

// A model of models::kNames; `mask` of mask_names(), or null for none.
StofBenchPlan* stof_bench_model(const stof::Engine* engine, const char* model, std::int64_t batch,
                                std::int64_t sequence, std::int64_t layers, const char* mask,
                                const char* dtype) {
  return guarded<StofBenchPlan*>(nullptr, [&] {
    const models::Size size{.batch = batch, .sequence = sequence, .layers = layers};
    const stof::Mask masked = mask == nullptr ? stof::Mask() : stof::bench::mask(mask, sequence);
    return make_plan(*engine, models::by_name(model, size, dtype_of(dtype), masked), {});
  });
}

// Weights by name, in the dtypes and shapes of the plan, on the host; they are copied. Others are
// passed over.
bool stof_bench_weights(StofBenchPlan* plan, const StofBenchTensor* tensors, int count) {
  return guarded(false, [&] {
    std::vector<stof::NamedTensor> named;
    for (const stof::TensorInfo& info : plan->plan.weights()) {
      const auto* const tensor =
          std::find_if(tensors, tensors + count,
                       [&](const StofBenchTensor& each) { return info.name == each.name; });
      if (tensor != tensors + count) {
        named.push_back({info.name, view_of(info, *tensor, stof::Location::Host)});
      }
    }
    plan->weights = plan->engine.load_weights(plan->plan, named);
    return true;
  });
}

// Bytes of the GPU that a run takes beside its tensors. Negative where it fails.
std::int64_t stof_bench_workspace_bytes(const StofBenchPlan* plan) {
  return guarded<std::int64_t>(-1, [&] { return plan->plan.workspace_bytes(); });
}

void stof_bench_destroy(StofBenchPlan* plan) {
  delete plan;
}

// What runs, as Plan::explain says it. Lives as long as the plan.
const char* stof_bench_explain(const StofBenchPlan* plan) {
  return plan->explanation.c_str();
}

// Every input and output by name. The memory must outlive the launches.
bool stof_bench_bind(StofBenchPlan* plan, const StofBenchTensor* tensors, int count) {
  return guarded(false, [&] {
    stof::Bindings bindings;
    for (const StofBenchTensor* tensor = tensors; tensor != tensors + count; ++tensor) {
      const std::string name = tensor->name;
      const auto& outputs = plan->plan.outputs();
      const bool is_output = !outputs.empty() && outputs.front().name == name;
      bindings[name] = view_of(is_output ? plan->plan.output(name) : plan->plan.input(name),
                               *tensor, stof::Location::Device);
    }
    if (!plan->weights) {
      throw std::logic_error("the plan has no weights");
    }
    plan->execution.emplace(plan->plan.bind(*plan->weights, bindings));
    return true;
  });
}

// Enqueues one run; its kernels themselves where the stream is being captured.
bool stof_bench_launch(StofBenchPlan* plan, CUstream_st* stream) {
  return guarded(false, [&] {
    if (!plan->execution) {
      throw std::logic_error("the plan is not bound");
    }
    plan->execution->launch(stream);
    return true;
  });
}

// Milliseconds that the GPU layout of the plan's mask takes from the expression to the end, with
// its allocations, the second time. Negative where it fails or the plan has no mask.
double stof_bench_layout_ms(const StofBenchPlan* plan) {
  return guarded(-1.0, [&] {
    if (!plan->masked) {
      throw std::logic_error("the plan has no mask");
    }
    constexpr int kTileRows = 128;
    using Clock = std::chrono::steady_clock;
    double time_ms = 0;
    for (int run = 0; run < 2; ++run) {
      STOF_CUDA(cudaDeviceSynchronize());
      const auto start = Clock::now();
      const stof::mask_layout::DeviceMask mask(
          plan->masked->mask, {.q_len = plan->masked->q_len, .kv_len = plan->masked->kv_len});
      const auto layout = stof::mask_layout::build_layout(mask, {.tile_q = {kTileRows}});
      STOF_CUDA(cudaDeviceSynchronize());
      time_ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
    }
    return time_ms;
  });
}

}  // extern "C"
#pragma GCC visibility pop
