#include "stof/graph.hpp"

#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "graph/append.hpp"
#include "graph/ir.hpp"
#include "graph/op_info.hpp"
#include "stof/error.hpp"

namespace stof {

using graph::Operator;

namespace {

const graph::Value& value_of(const std::shared_ptr<const graph::Value>& value,
                             std::string_view what) {
  if (value == nullptr) {
    throw GraphError(fmt::format("tensor: an empty handle has no {}", what));
  }
  return *value;
}

// Parts of letters, digits and _ joined by dots: what an expression takes for a name.
std::string expression_name(const std::string& name) {
  std::string result = name;
  for (char& c : result) {
    const bool is_kept = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                         (c >= '0' && c <= '9') || c == '_' || c == '.';
    c = is_kept ? c : '_';
  }
  return result;
}

// What a mask input must be, whatever attention it will serve.
void check_mask_input(const std::string& name, const Shape& shape,
                      const MaskInputOptions& options) {
  const std::string_view form = graph::name(options.form);
  const int rank = options.form == MaskForm::Dense ? 4 : options.form == MaskForm::Csr ? 2 : 1;
  if (shape.rank() != rank) {
    throw GraphError(fmt::format("mask_input {}: shape {} of form {} has rank {}, it takes {}",
                                 name, shape.text(), form, shape.rank(),
                                 options.form == MaskForm::Dense
                                     ? "[batch or 1, heads or 1, q_len, kv_len]"
                                 : options.form == MaskForm::Csr       ? "[q_len, n]"
                                 : options.form == MaskForm::CuSeqlens ? "[documents + 1]"
                                                                       : "[batch]"));
  }
  if (options.form == MaskForm::CuSeqlens && shape[0].max() < 2) {
    throw GraphError(
        fmt::format("mask_input {}: shape {} holds fewer than 2 offsets", name, shape.text()));
  }
  if (options.max_part_tiles < 0) {
    throw GraphError(
        fmt::format("mask_input {}: max_part_tiles {} is negative", name, options.max_part_tiles));
  }
}

}  // namespace

const std::string& Tensor::name() const {
  return value_of(value_, "name").name;
}

const Shape& Tensor::shape() const {
  return value_of(value_, "shape").shape;
}

DType Tensor::dtype() const {
  return value_of(value_, "dtype").dtype;
}

Graph::Graph(std::string_view name) : ir_(std::make_unique<graph::Ir>()) {
  graph::check_name("graph", name);
  ir_->name = name;
}

Graph::Graph(graph::Ir ir) : ir_(std::make_unique<graph::Ir>(std::move(ir))) {}
Graph::Graph(const Graph& other) : ir_(std::make_unique<graph::Ir>(*other.ir_)) {}
Graph::Graph(Graph&& other) noexcept = default;
Graph& Graph::operator=(Graph&& other) noexcept = default;
Graph::~Graph() = default;

Graph& Graph::operator=(const Graph& other) {
  return *this = Graph(other);
}

const std::string& Graph::name() const {
  return ir_->name;
}

Dim Graph::dim(const std::string& name, std::int64_t min, std::int64_t max) {
  Dim symbol = Dim::symbol(name, min, max);
  graph::declare_dims(*ir_, "dim", Shape{symbol});
  return symbol;
}

Tensor Graph::input(const std::string& name, const Shape& shape, DType dtype) {
  return handle(graph::append_value(
      *ir_, {.name = name, .shape = shape, .dtype = dtype, .role = graph::ValueRole::Input}));
}

Tensor Graph::weight(const std::string& name, const Shape& shape, DType dtype,
                     WeightOptions options) {
  return handle(graph::append_value(*ir_, {.name = name,
                                           .shape = shape,
                                           .dtype = dtype,
                                           .role = graph::ValueRole::Weight,
                                           .layout = options.layout}));
}

MaskInput Graph::mask_input(const std::string& name, const Shape& shape,
                            const MaskInputOptions& options) {
  check_mask_input(name, shape, options);
  MaskInput mask{.form = options.form,
                 .tensors = {},
                 .max_part_tiles = options.max_part_tiles,
                 .like = options.like};
  if (options.form != MaskForm::Csr) {
    const DType dtype = options.form == MaskForm::Dense ? DType::Bool : DType::Int32;
    mask.tensors = {input(name, shape, dtype)};
    return mask;
  }
  graph::Ir with_both = *ir_;  // so that a failure in the second leaves no first
  const int row_ptr = graph::append_value(with_both, {.name = name + ".row_ptr",
                                                      .shape = {shape[0] + 1},
                                                      .dtype = DType::Int32,
                                                      .role = graph::ValueRole::Input});
  const int col_idx = graph::append_value(with_both, {.name = name + ".col_idx",
                                                      .shape = {shape[1]},
                                                      .dtype = DType::Int32,
                                                      .role = graph::ValueRole::Input});
  *ir_ = std::move(with_both);
  mask.tensors = {handle(row_ptr), handle(col_idx)};
  return mask;
}

void Graph::output(const std::string& name, const Tensor& value) {
  graph::append_output(*ir_, name, id("output " + name, "value", value));
}

Tensor Graph::tensor(std::string_view name) const {
  const int found = graph::find_value(*ir_, name);
  if (found < 0) {
    throw GraphError(fmt::format("graph {}: it has no tensor {}", ir_->name, name));
  }
  return handle(found);
}

Capture Graph::capture(const Tensor& value, const std::string& name) {
  const int captured = id("capture", "value", value);
  const std::string alias = name.empty() ? expression_name(value.name()) : name;
  graph::check_name("capture", alias);
  const auto known = ir_->captures.find(alias);
  if (known != ir_->captures.end() && known->second != captured) {
    throw GraphError(fmt::format("capture: {} is the name of another captured tensor, {}", alias,
                                 ir_->values[static_cast<std::size_t>(known->second)]->name));
  }
  Capture capture(alias, value.dtype(), value.shape().rank());
  ir_->captures.emplace(alias, captured);
  return capture;
}

std::vector<Tensor> Graph::append(Operator op, std::span<const Tensor> inputs) {
  const graph::OpInfo& info = graph::op_info(op.kind);
  op.inputs.reserve(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const bool is_absent = !inputs[i] && !info.is_variadic && info.inputs[i].is_optional;
    const std::string argument = info.is_variadic ? fmt::format("{}[{}]", info.inputs[0].name, i)
                                                  : std::string(info.inputs[i].name);
    op.inputs.push_back(is_absent ? -1 : id(info.name, argument, inputs[i]));
  }
  while (!op.inputs.empty() && op.inputs.back() < 0) {
    op.inputs.pop_back();
  }
  std::vector<Tensor> results;
  for (const int result : graph::append(*ir_, std::move(op))) {
    results.push_back(handle(result));
  }
  return results;
}

Tensor Graph::append_one(Operator op, std::initializer_list<Tensor> inputs) {
  op.outputs = {-1};
  return append(std::move(op), inputs).front();
}

int Graph::id(std::string_view op, std::string_view argument, const Tensor& tensor) const {
  if (!tensor) {
    throw GraphError(fmt::format("{}: {} is an empty handle", op, argument));
  }
  const auto at = static_cast<std::size_t>(tensor.id_);
  if (at >= ir_->values.size() || ir_->values[at] != tensor.value_) {
    throw GraphError(
        fmt::format("{}: {} is a tensor of another graph, {}", op, argument, tensor.name()));
  }
  return tensor.id_;
}

Tensor Graph::handle(int id) const {
  return {id, ir_->values[static_cast<std::size_t>(id)]};
}

}  // namespace stof
