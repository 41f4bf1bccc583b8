#include <algorithm>
#include <bit>
#include <cstring>
#include <initializer_list>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "expr/node.hpp"
#include "mask/json.hpp"
#include "mask/json_digest.hpp"
#include "mask/node.hpp"
#include "stof/error.hpp"

namespace stof::mask {

namespace {

using nlohmann::json;

// A value of the document and its place there.
struct Place {
  const json& value;
  std::string where;

  [[noreturn]] void fail(std::string_view message) const {
    throw GraphError(fmt::format("{}: {}", where, message));
  }

  Place at(std::string_view field) const {
    if (!value.is_object()) {
      fail("not an object");
    }
    const auto found = value.find(field);
    if (found == value.end()) {
      fail(fmt::format("no field {}", field));
    }
    return {*found, fmt::format("{}/{}", where, field)};
  }

  bool has(std::string_view field) const { return value.is_object() && value.contains(field); }

  // Throws where a field is none of these.
  void allow(std::initializer_list<std::string_view> fields) const {
    if (!value.is_object()) {
      fail("not an object");
    }
    for (const auto& [name, unused] : value.items()) {
      if (std::ranges::find(fields, name) == fields.end()) {
        fail(fmt::format("unknown field {}", name));
      }
    }
  }

  std::string text() const {
    if (!value.is_string()) {
      fail("not a string");
    }
    return value.get<std::string>();
  }

  std::int64_t integer() const {
    if (!value.is_number_integer() ||
        (value.is_number_unsigned() && value.get<std::uint64_t>() > INT64_MAX)) {
      fail("not an integer of 64 bits");
    }
    return value.get<std::int64_t>();
  }
};

// Calls make, and puts the place before the message of what it throws.
template <typename Make>
auto located(const std::string& where, const Make& make) {
  try {
    return make();
  } catch (const ExpressionError& error) {
    throw ExpressionError(error.column(), fmt::format("{}: {}", where, error.what()));
  } catch (const GraphError& error) {
    throw GraphError(fmt::format("{}: {}", where, error.what()));
  }
}

template <typename T>
std::vector<T> tensor_at(const Place& place, DType dtype, const Sidecar& tensors) {
  const std::string digest = place.text();
  const auto found = tensors.find(digest);
  if (found == tensors.end()) {
    place.fail(fmt::format("no data {}", digest));
  }
  const HostTensor& tensor = found->second;
  if (tensor.dtype() != dtype || tensor.shape().size() != 1) {
    place.fail(fmt::format("data {} is {} of rank {}, not {} of rank 1", digest,
                           name(tensor.dtype()), tensor.shape().size(), name(dtype)));
  }
  if (tensor_digest(tensor) != digest) {
    place.fail(fmt::format("data {} has the digest {}", digest, tensor_digest(tensor)));
  }
  std::vector<T> values(tensor.element_count());
  if (!values.empty()) {
    std::memcpy(values.data(), tensor.bytes().data(), tensor.bytes().size());
  }
  return values;
}

Table load_table(const std::string& name, const Place& place, const Sidecar& tensors) {
  place.allow({"type", "data"});
  const std::string type = place.at("type").text();
  std::vector<std::int64_t> entries =
      tensor_at<std::int64_t>(place.at("data"), DType::Int64, tensors);
  return located(place.where, [&] {
    if (type == "int") {
      return Table(name, std::move(entries));
    }
    if (type != "float") {
      throw GraphError(fmt::format("type {} is neither int nor float", type));
    }
    std::vector<double> values;
    values.reserve(entries.size());
    for (const std::int64_t bits : entries) {
      values.push_back(std::bit_cast<double>(bits));
    }
    return Table(name, std::move(values));
  });
}

Capture load_capture(const std::string& name, const Place& place) {
  place.allow({"dtype", "rank"});
  const auto dtype = dtype_from_name(place.at("dtype").text());
  if (!dtype) {
    place.at("dtype").fail(fmt::format("no dtype {}", place.at("dtype").text()));
  }
  const std::int64_t rank = place.at("rank").integer();
  if (rank < 1 || rank > 4) {
    place.at("rank").fail(fmt::format("rank {} is not in 1 to 4", rank));
  }
  return located(place.where, [&] { return Capture(name, *dtype, static_cast<int>(rank)); });
}

Expr load_expression(const Place& place, const Sidecar& tensors, ExprNames names) {
  place.allow({"expression", "tables", "captures"});
  if (place.has("tables")) {
    const Place tables = place.at("tables");
    if (!tables.value.is_object()) {
      tables.fail("not an object");
    }
    for (const auto& [name, unused] : tables.value.items()) {
      names.tables.emplace(name, load_table(name, tables.at(name), tensors));
    }
  }
  if (place.has("captures")) {
    const Place captures = place.at("captures");
    if (!captures.value.is_object()) {
      captures.fail("not an object");
    }
    for (const auto& [name, unused] : captures.value.items()) {
      names.captures.emplace(name, load_capture(name, captures.at(name)));
    }
  }
  const Place text = place.at("expression");
  return located(text.where, [&] { return parse_expression(text.text(), names); });
}

struct LoadedBits {
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> words;
};

LoadedBits load_bits(const Place& place, const Sidecar& tensors) {
  LoadedBits bits{.shape = {},
                  .words = tensor_at<std::int64_t>(place.at("bits"), DType::Int64, tensors)};
  const Place shape = place.at("shape");
  if (!shape.value.is_array() || shape.value.size() != 4) {
    shape.fail("not four integers");
  }
  bits.shape.reserve(4);
  for (const json& size : shape.value) {
    bits.shape.push_back(Place{size, shape.where}.integer());
  }
  return bits;
}

Mask dense_of(const LoadedBits& bits) {
  const std::span words(reinterpret_cast<const std::uint64_t*>(bits.words.data()),
                        bits.words.size());
  return Mask::bits(words, Shape::of(bits.shape));
}

Mask load_dense(const Place& place, const Sidecar& tensors) {
  place.allow({"shape", "bits"});
  const LoadedBits bits = load_bits(place, tensors);
  return located(place.where, [&] { return dense_of(bits); });
}

Mask load_blocks(const Place& place, const Sidecar& tensors) {
  place.allow({"shape", "bits", "block_size", "q_len", "kv_len"});
  const LoadedBits bits = load_bits(place, tensors);
  BlockData data;
  data.block_size = place.at("block_size").integer();
  data.q_len = place.at("q_len").integer();
  data.kv_len = place.at("kv_len").integer();
  return located(place.where, [&] {
    data.keep = std::get<DenseData>(dense_of(bits).node().form).keep;
    return make_mask(std::move(data));
  });
}

Mask load_csr(const Place& place, const Sidecar& tensors) {
  place.allow({"row_ptr", "col_idx", "kv_len"});
  const auto row_ptr = tensor_at<std::int32_t>(place.at("row_ptr"), DType::Int32, tensors);
  const auto col_idx = tensor_at<std::int32_t>(place.at("col_idx"), DType::Int32, tensors);
  const std::int64_t kv_len = place.at("kv_len").integer();
  return located(place.where, [&] { return Mask::csr(row_ptr, col_idx, kv_len); });
}

Mask load(const Place& place, const Sidecar& tensors, int depth);

// Like the operators of masks, so that what they simplify is simplified here too.
Mask load_pair(const Place& place, const Sidecar& tensors, int depth, Operation operation) {
  if (!place.value.is_array() || place.value.size() != 2) {
    place.fail("not two masks");
  }
  const Mask a = load({place.value[0], place.where + "/0"}, tensors, depth + 1);
  const Mask b = load({place.value[1], place.where + "/1"}, tensors, depth + 1);
  return located(place.where, [&] { return operation == Operation::And ? a && b : a || b; });
}

Mask load(const Place& place, const Sidecar& tensors, int depth) {
  if (depth > kMaxDepth) {
    place.fail(fmt::format("masks nest deeper than the limit of {}", kMaxDepth));
  }
  if (place.has("expression")) {
    const Expr predicate = load_expression(place, tensors, mask_names());
    return located(place.where, [&] { return Mask(predicate); });
  }
  if (!place.value.is_object() || place.value.size() != 1) {
    place.fail("not an object with one of expression, dense, blocks, csr, and, or, not");
  }
  const std::string form = place.value.begin().key();
  const Place fields = place.at(form);
  if (form == "dense") {
    return load_dense(fields, tensors);
  }
  if (form == "blocks") {
    return load_blocks(fields, tensors);
  }
  if (form == "csr") {
    return load_csr(fields, tensors);
  }
  if (form == "and") {
    return load_pair(fields, tensors, depth, Operation::And);
  }
  if (form == "or") {
    return load_pair(fields, tensors, depth, Operation::Or);
  }
  if (form == "not") {
    return !load(fields, tensors, depth + 1);
  }
  fields.fail(fmt::format("no form of mask is called {}", form));
}

}  // namespace

Expr load_expression(const json& value, const Sidecar& tensors, const ExprNames& names,
                     const std::string& where) {
  return load_expression(Place{value, where}, tensors, names);
}

Mask load_mask(const json& value, const Sidecar& tensors, const std::string& where) {
  return load(Place{value, where}, tensors, 1);
}

}  // namespace stof::mask
