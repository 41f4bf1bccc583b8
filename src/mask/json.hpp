#pragma once

#include <map>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "stof/expr.hpp"
#include "stof/mask.hpp"
#include "stof/tensor.hpp"

namespace stof::mask {

// What JSON names by digest: the XXH3-128 of the dtype's name and the bytes. Rank 1.
using Sidecar = std::map<std::string, HostTensor>;

struct Saved {  // NOLINT(bugprone-exception-escape): JSON moves without throwing
  nlohmann::json json;
  Sidecar tensors;
};

// An expression as {"expression": text, "tables": {name: {"type": "int" or "float", "data":
// digest}}, "captures": {name: {"dtype": name, "rank": n}}}; what is empty is left out. Floats of a
// table travel as their bits in an int64 tensor.
Saved save_expression(const Expr& expression);

// An expression as above, or one of
//   {"dense": {"shape": [batch, heads, q_len, kv_len], "bits": digest}}
//   {"blocks": {"shape": [batch, heads, rows, columns], "bits": digest, "block_size", "q_len",
//               "kv_len"}}
//   {"csr": {"row_ptr": digest, "col_idx": digest, "kv_len"}}
//   {"and": [mask, mask]}   {"or": [mask, mask]}   {"not": mask}
// Bits are the words of Mask::bits in an int64 tensor.
Saved save_mask(const Mask& mask);

// Back again, to a mask of the same digest. `where` is the place of `json` in its document and
// starts every message. Throws GraphError (ExpressionError where text does not parse) on whatever
// save_mask cannot have written: unknown or missing fields, wrong types, data that its digest does
// not match.
Expr load_expression(const nlohmann::json& json, const Sidecar& tensors, const ExprNames& names,
                     const std::string& where);
Mask load_mask(const nlohmann::json& json, const Sidecar& tensors, const std::string& where);

}  // namespace stof::mask
