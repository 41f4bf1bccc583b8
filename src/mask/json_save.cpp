#include <bit>
#include <cstring>
#include <span>
#include <utility>

#include "base/hash.hpp"
#include "expr/node.hpp"
#include "expr/table.hpp"
#include "mask/json.hpp"
#include "mask/json_digest.hpp"
#include "mask/node.hpp"

namespace stof::mask {

namespace {

// Adds the values to the tensors of `saved` and returns their digest.
template <typename T>
std::string add_tensor(DType dtype, const std::vector<T>& values, Saved& saved) {
  HostTensor tensor(dtype, {std::ssize(values)});
  if (!values.empty()) {
    std::memcpy(tensor.bytes().data(), values.data(), tensor.bytes().size());
  }
  std::string digest = tensor_digest(tensor);
  saved.tensors.emplace(digest, std::move(tensor));
  return digest;
}

Saved save_bits(const char* form, const BitTensor& keep) {
  Saved saved;
  nlohmann::json& fields = saved.json[form];
  fields["shape"] = {keep.batch, keep.heads, keep.rows, keep.columns};
  fields["bits"] = add_tensor(DType::Int64, keep.words, saved);
  return saved;
}

Saved save(const Expr& predicate) {
  return save_expression(predicate);
}

Saved save(const DenseData& data) {
  return save_bits("dense", data.keep);
}

Saved save(const BlockData& data) {
  Saved saved = save_bits("blocks", data.keep);
  nlohmann::json& fields = saved.json["blocks"];
  fields["block_size"] = data.block_size;
  fields["q_len"] = data.q_len;
  fields["kv_len"] = data.kv_len;
  return saved;
}

Saved save(const CsrData& data) {
  Saved saved;
  nlohmann::json& fields = saved.json["csr"];
  fields["row_ptr"] = add_tensor(DType::Int32, data.row_ptr, saved);
  fields["col_idx"] = add_tensor(DType::Int32, data.col_idx, saved);
  fields["kv_len"] = data.kv_len;
  return saved;
}

Saved save(const Combination& combination) {
  Saved saved;
  nlohmann::json operands = nlohmann::json::array();
  for (const Mask& mask : combination.operands) {
    Saved operand = save_mask(mask);
    operands.push_back(std::move(operand.json));
    saved.tensors.merge(operand.tensors);
  }
  switch (combination.operation) {
    case Operation::And:
      saved.json["and"] = std::move(operands);
      break;
    case Operation::Or:
      saved.json["or"] = std::move(operands);
      break;
    case Operation::Not:
      saved.json["not"] = std::move(operands[0]);
      break;
  }
  return saved;
}

}  // namespace

std::string tensor_digest(const HostTensor& tensor) {
  base::Hasher hasher;
  hasher.update_sized(name(tensor.dtype()));
  hasher.update(tensor.bytes());
  return hasher.digest().hex();
}

Saved save_expression(const Expr& expression) {
  Saved saved;
  saved.json["expression"] = expression.text();
  const ExprNames& names = expr::names_used(expression);
  for (const auto& [name, table] : names.tables) {
    saved.json["tables"][name] = {{"type", expr::name_of(table.type())},
                                  {"data", add_tensor(DType::Int64, table.data().entries, saved)}};
  }
  for (const auto& [name, capture] : names.captures) {
    saved.json["captures"][name] = {{"dtype", stof::name(capture.dtype())},
                                    {"rank", capture.rank()}};
  }
  return saved;
}

Saved save_mask(const Mask& mask) {
  return std::visit([](const auto& form) { return save(form); }, mask.node().form);
}

}  // namespace stof::mask
