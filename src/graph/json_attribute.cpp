#include "graph/json_attribute.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "graph/dim_text.hpp"
#include "graph/infer.hpp"
#include "mask/json.hpp"

namespace stof::graph {

namespace {

// Of all data that masks may copy out of the sidecar; a text of a few bytes could ask for any
// amount.
constexpr std::size_t kMaxDataBytes = std::size_t{1} << 33;

}  // namespace

AttributeLoader::AttributeLoader(const std::map<std::string, Dim>& dims,
                                 const std::map<std::string, HostTensor>& data)
    : dims_(dims), data_(data) {}

Dim AttributeLoader::dim(const Place& place) const {
  if (place.value().is_number_integer()) {
    return place.integer();
  }
  if (!place.value().is_string()) {
    place.expected("an integer, or the text of an extent");
  }
  return place.guard([&] { return parse_dim(place.string(), dims_); });
}

Shape AttributeLoader::shape(const Place& place) const {
  if (place.size() > kMaxRank) {
    place.expected(fmt::format("at most {} extents", kMaxRank));
  }
  std::vector<Dim> dims;
  for (std::size_t i = 0; i < place.size(); ++i) {
    dims.push_back(dim(place.element(i)));
  }
  return Shape(std::move(dims));
}

DType AttributeLoader::dtype(const Place& place) const {
  const std::optional<DType> found = dtype_from_name(place.string());
  if (!found) {
    place.expected("float16, bfloat16, float32, int32, int64, uint8 or bool");
  }
  return *found;
}

std::map<std::string, Attribute> AttributeLoader::load(const Place& place, const OpInfo& info) {
  if (!place.value().is_object()) {
    place.expected("an object");
  }
  std::map<std::string, Attribute> attributes;
  for (const auto& [name, unused] : place.value().items()) {
    const AttributeInfo* attribute = info.attribute(name);
    const Place value = place.field(name);
    if (attribute == nullptr) {
      value.fail(fmt::format("{} has no such attribute", info.name));
    }
    attributes.emplace(name, load(value, attribute->type));
  }
  return attributes;
}

Attribute AttributeLoader::load(const Place& place, AttributeType type) {
  switch (type) {
    case AttributeType::Bool:
      return place.boolean();
    case AttributeType::Int:
      return place.integer();
    case AttributeType::Float:
      return place.number();
    case AttributeType::String:
      return place.string();
    case AttributeType::Ints: {
      std::vector<std::int64_t> values;
      for (std::size_t i = 0; i < place.size(); ++i) {
        values.push_back(place.element(i).integer());
      }
      return values;
    }
    case AttributeType::DType:
      return dtype(place);
    case AttributeType::Dim:
      return dim(place);
    case AttributeType::Shape:
      return shape(place);
    case AttributeType::Mask:
      return mask(place);
    case AttributeType::Expr:
      return expression(place);
  }
  STOF_CHECK(false) << "attribute type " << static_cast<int>(type);
  return false;
}

Mask AttributeLoader::mask(const Place& place) {
  const std::string text = place.value().dump();
  const auto known = masks_.find(text);
  if (known != masks_.end()) {
    return known->second;
  }
  count_data(place, place.value());
  return masks_.emplace(text, mask::load_mask(place.value(), data_, place.where())).first->second;
}

Expr AttributeLoader::expression(const Place& place) {
  const std::string text = place.value().dump();
  const auto known = expressions_.find(text);
  if (known != expressions_.end()) {
    return known->second;
  }
  count_data(place, place.value());
  return expressions_
      .emplace(text, mask::load_expression(place.value(), data_, score_names(), place.where()))
      .first->second;
}

// Adds what the digests in a value stand for, before it is copied.
void AttributeLoader::count_data(const Place& place, const nlohmann::json& value) {
  if (value.is_string()) {
    const auto found = data_.find(value.get_ref<const std::string&>());
    data_bytes_ += found == data_.end() ? 0 : found->second.bytes().size();
  } else if (value.is_structured()) {
    for (const auto& element : value) {
      count_data(place, element);
    }
  }
  if (data_bytes_ > kMaxDataBytes) {
    place.fail(fmt::format("masks and tables hold more than {} bytes", kMaxDataBytes));
  }
}

}  // namespace stof::graph
