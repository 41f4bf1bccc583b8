#include "reference/run.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/check.hpp"
#include "graph/bind_dims.hpp"
#include "graph/ir.hpp"
#include "reference/bind_inputs.hpp"
#include "reference/operators.hpp"
#include "reference/visible_keys.hpp"
#include "stof/error.hpp"

namespace stof::reference {

namespace {

constexpr double kInt64End = 0x1p63;
constexpr std::int64_t kMaxElements = std::int64_t{1} << 32;  // of a value: 32 GiB

// For each value the operator that reads it last, or that makes it; values that are outputs of the
// graph outlive them all.
std::vector<std::size_t> last_uses(const graph::Ir& ir) {
  std::vector<std::size_t> last(ir.values.size(), 0);
  const auto use = [&](int id, std::size_t at) {
    if (id >= 0) {
      last.at(static_cast<std::size_t>(id)) = at;
    }
  };
  for (std::size_t at = 0; at < ir.operators.size(); ++at) {
    const graph::Operator& op = ir.operators[at];
    for (const int id : op.outputs) {
      use(id, at);
    }
    for (const int id : op.inputs) {
      use(id, at);
    }
    for (const auto& [name, id] : op.captures) {
      use(id, at);
    }
  }
  for (const graph::Output& output : ir.outputs) {
    use(output.value, ir.operators.size());
  }
  return last;
}

// Shapes ask for memory, and may be hostile. An extent of 0 hides none of the others.
void check_sizes(const graph::Ir& ir) {
  for (const auto& value : ir.values) {
    std::int64_t count = 1;
    for (const std::int64_t extent : value->shape.sizes()) {
      count = extent > kMaxElements / count ? kMaxElements + 1
                                            : count * std::max<std::int64_t>(1, extent);
      if (count > kMaxElements) {
        throw GraphError(fmt::format("reference: \"{}\" {} has more than 2^32 elements",
                                     value->name, value->shape.text()));
      }
    }
  }
}

// The values of a graph that are alive while it runs.
class Run {
 public:
  Run(const graph::Ir& ir, const Options& options, std::vector<std::optional<Array>> inputs)
      : ir_(ir), options_(options), values_(std::move(inputs)), last_uses_(last_uses(ir)) {
    check_sizes(ir);
  }

  Outputs outputs() {
    for (std::size_t at = 0; at < ir_.operators.size(); ++at) {
      step(ir_.operators[at]);
      release(at);
    }
    Outputs outputs;
    for (const graph::Output& output : ir_.outputs) {
      const Array array = widened(value(output.value), options_);
      outputs[output.name] = {.dtype = array.dtype,
                              .shape = array.shape,
                              .values = {array.values().begin(), array.values().end()}};
    }
    return outputs;
  }

 private:
  const Array& value(int id) const { return values_.at(static_cast<std::size_t>(id)).value(); }

  void step(const graph::Operator& op) {
    Call call{.ir = ir_, .op = op, .options = options_, .visible_keys = visible_keys_};
    for (const int id : op.inputs) {
      call.inputs.push_back(id < 0 ? std::nullopt : std::optional(value(id)));
    }
    for (const auto& [name, id] : op.captures) {
      call.captures.emplace(name, value(id));
    }
    for (const int id : op.outputs) {
      const graph::Value& result = *ir_.values[static_cast<std::size_t>(id)];
      call.results.push_back({.dtype = result.dtype, .shape = result.shape.sizes()});
    }
    std::vector<Array> results = run_operator(call);
    STOF_CHECK(results.size() == op.outputs.size()) << results.size() << " results";
    for (std::size_t i = 0; i < results.size(); ++i) {
      STOF_CHECK(results[i].shape == call.results[i].shape) << "result " << i;
      values_[static_cast<std::size_t>(op.outputs[i])] = std::move(results[i]);
    }
  }

  void release(std::size_t at) {
    const graph::Operator& op = ir_.operators[at];
    const auto drop = [&](int id) {
      if (id >= 0 && last_uses_[static_cast<std::size_t>(id)] == at) {
        values_[static_cast<std::size_t>(id)].reset();
      }
    };
    std::ranges::for_each(op.inputs, drop);
    std::ranges::for_each(op.outputs, drop);
    for (const auto& [name, id] : op.captures) {
      drop(id);
    }
  }

  const graph::Ir& ir_;
  const Options& options_;
  std::vector<std::optional<Array>> values_;  // by id
  std::vector<std::size_t> last_uses_;
  VisibleKeysCache visible_keys_;
};

}  // namespace

HostTensor Output::tensor() const {
  HostTensor tensor(dtype, shape);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto position = static_cast<std::int64_t>(i);
    if (dtype == DType::Int64 && values[i] >= kInt64End) {
      // The end of the range, which is no double.
      constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
      std::memcpy(tensor.bytes().data() + i * sizeof(kMax), &kMax, sizeof(kMax));
    } else {
      tensor.set(position, values[i]);
    }
  }
  return tensor;
}

Outputs run(const Graph& graph, const Tensors& tensors, const Options& options) {
  const graph::Ir& ir = graph.ir();
  BoundInputs bound = bind_inputs(ir, tensors, options);
  if (ir.dims.empty()) {
    return Run(ir, options, std::move(bound.values)).outputs();
  }
  const graph::Ir with_sizes = graph::bind_dims(ir, bound.dims);
  return Run(with_sizes, options, std::move(bound.values)).outputs();
}

}  // namespace stof::reference
