#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "expr/node.hpp"
#include "graph/append.hpp"
#include "graph/masking.hpp"
#include "graph/op_info.hpp"
#include "stof/error.hpp"
#include "stof/graph.hpp"

namespace stof {

using graph::Operator;
using graph::OpKind;

namespace {

double scale_of(const AttentionOptions& options, const Tensor& q) {
  if (options.scale) {
    return *options.scale;
  }
  if (!q || q.shape().rank() != 4) {
    return 1.0;  // the shape is refused with the operator
  }
  const Dim& head_dim = q.shape()[3];
  if (!head_dim.is_static()) {
    throw GraphError(fmt::format("attention: head_dim of q {} is symbolic, so scale must be given",
                                 q.shape().text()));
  }
  return head_dim.value() > 0 ? 1.0 / std::sqrt(static_cast<double>(head_dim.value())) : 1.0;
}

void bind_captures(const graph::Ir& ir, Operator& op, std::string_view what,
                   const Expr& expression) {
  for (const auto& [name, capture] : expr::names_used(expression).captures) {
    const auto found = ir.captures.find(name);
    if (found == ir.captures.end()) {
      throw GraphError(fmt::format(
          "attention: the {} captures {}, which Graph::capture of this graph did not make", what,
          name));
    }
    op.captures[name] = found->second;
  }
}

Operator attention_op(const graph::Ir& ir, const Tensor& q, const AttentionOptions& options) {
  Operator op{.kind = OpKind::Attention, .attributes = {{"scale", scale_of(options, q)}}};
  if (!options.mask.is_full()) {
    op.attributes.emplace("mask", options.mask);
    for (const Expr& expression : graph::expressions(options.mask)) {
      bind_captures(ir, op, "mask", expression);
    }
  }
  if (options.score) {
    op.attributes.emplace("score", *options.score);
    bind_captures(ir, op, "score", *options.score);
  }
  if (options.mask_input) {
    op.attributes.emplace("mask_form", std::string(graph::name(options.mask_input->form)));
    op.attributes.emplace("max_part_tiles", options.mask_input->max_part_tiles);
    op.attributes.emplace("like", options.mask_input->like);
  }
  return op;
}

std::vector<Tensor> attention_inputs(const Tensor& q, const Tensor& k, const Tensor& v,
                                     const AttentionOptions& options) {
  std::vector<Tensor> inputs = {q, k, v, options.kv_lengths};
  if (options.mask_input) {
    const std::vector<Tensor>& tensors = options.mask_input->tensors;
    const std::size_t wanted = options.mask_input->form == MaskForm::Csr ? 2 : 1;
    if (tensors.size() != wanted) {
      throw GraphError(fmt::format("attention: mask_input has {} tensors, {} takes {}",
                                   tensors.size(), graph::name(options.mask_input->form), wanted));
    }
    inputs.insert(inputs.end(), tensors.begin(), tensors.end());
  }
  return inputs;
}

}  // namespace

Tensor Graph::attention(const Tensor& q, const Tensor& k, const Tensor& v,
                        const AttentionOptions& options) {
  Operator op = attention_op(*ir_, q, options);
  op.outputs = {-1};
  return append(std::move(op), attention_inputs(q, k, v, options)).front();
}

AttentionResult Graph::attention_with_lse(const Tensor& q, const Tensor& k, const Tensor& v,
                                          const AttentionOptions& options) {
  Operator op = attention_op(*ir_, q, options);
  op.outputs = {-1, -1};
  const std::vector<Tensor> results = append(std::move(op), attention_inputs(q, k, v, options));
  return {.output = results[0], .lse = results[1]};
}

}  // namespace stof
