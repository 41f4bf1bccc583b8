#include "reference/operators.hpp"

#include "base/check.hpp"
#include "reference/attention.hpp"
#include "reference/elementwise.hpp"
#include "reference/gathers.hpp"
#include "reference/matmul.hpp"
#include "reference/rotary.hpp"
#include "reference/rows.hpp"
#include "reference/scores.hpp"

namespace stof::reference {

std::vector<Array> run_operator(const Call& call) {
  using enum graph::OpKind;
  switch (call.op.kind) {
    case Linear:
      return {linear(call)};
    case Attention:
      return attention(call);
    case MatMul:
      return {matmul(call)};
    case Add:
    case Subtract:
    case Multiply:
    case Divide:
    case Maximum:
    case Minimum:
      return {binary(call)};
    case Scale:
    case Shift:
    case Relu:
    case Gelu:
    case GeluTanh:
    case Silu:
    case Tanh:
    case Sigmoid:
    case Exp:
    case Sqrt:
    case Reciprocal:
      return {unary(call)};
    case ApplyMoments:
      return {apply_moments(call)};
    case Cast:
      return {cast(call)};
    case LayerNorm:
      return {layer_norm(call)};
    case RmsNorm:
      return {rms_norm(call)};
    case RowMoments:
      return row_moments(call);
    case Softmax:
      return softmax(call);
    case Score:
      return {modify_scores(call)};
    case Mask:
      return {mask_scores(call)};
    case ReduceSum:
    case ReduceMean:
    case ReduceMax:
      return {reduce(call)};
    case Embedding:
      return {embedding(call)};
    case Rotary:
      return {rotary(call)};
    case RotaryHeads:
      return {rotary_heads(call)};
    case Patches:
      return {patches(call)};
    case Concat:
      return {concat(call)};
    case Reshape:
      return {reshape(call)};
    case Transpose:
      return {transpose(call)};
    case Slice:
      return {slice(call)};
    case Broadcast:
      return {broadcast(call)};
  }
  STOF_CHECK(false) << "operator kind " << static_cast<int>(call.op.kind);
  return {};
}

}  // namespace stof::reference
