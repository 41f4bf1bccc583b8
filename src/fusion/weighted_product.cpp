#include "fusion/weighted_product.hpp"

#include <cstddef>

#include "graph/op_info.hpp"

namespace stof::fusion {

using graph::OpKind;

std::optional<WeightedProduct> weighted_product_at(
    const graph::Ir& ir, const Readers& readers, int op,
    const std::function<bool(int value, int rank)>& may_take_part) {
  constexpr std::size_t kPlainAttributes = 2;  // whether it is transposed, twice
  const graph::Operator& matmul = ir.operators[static_cast<std::size_t>(op)];
  if (matmul.kind != OpKind::MatMul || matmul.segment >= 0 ||
      matmul.attributes.size() != kPlainAttributes ||
      graph::attribute<bool>(matmul, "transpose_a") || !may_take_part(matmul.inputs[1], 2)) {
    return std::nullopt;
  }
  WeightedProduct product{.op = op,
                          .weight = matmul.inputs[1],
                          .product = matmul.outputs[0],
                          .add = -1,
                          .bias = -1,
                          .result = matmul.outputs[0]};
  const auto reader = readers.only(product.product);
  if (!reader || ir.operators[static_cast<std::size_t>(*reader)].kind != OpKind::Add) {
    return product;
  }
  const graph::Operator& add = ir.operators[static_cast<std::size_t>(*reader)];
  const int other = add.inputs[add.inputs[0] == product.product ? 1 : 0];
  if (may_take_part(other, 1) &&
      graph::value_at(ir, other).shape[0] == graph::value_at(ir, product.product).shape[-1]) {
    product.add = *reader;
    product.bias = other;
    product.result = add.outputs[0];
  }
  return product;
}

}  // namespace stof::fusion
