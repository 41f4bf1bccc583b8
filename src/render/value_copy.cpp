#include <limits>
#include <type_traits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "render/limits.hpp"
#include "render/value.hpp"

namespace stof::render {

namespace {

void check_depth(int depth) {
  if (depth > kMaxValueDepth) {
    throw Failure(fmt::format("values nested deeper than {} levels", kMaxValueDepth));
  }
}

template <typename Json>
Value convert(const Json& json, int depth) {
  check_depth(depth);
  switch (json.type()) {
    case Json::value_t::boolean:
      return Value(json.template get<bool>());
    case Json::value_t::number_integer:
      return Value(json.template get<std::int64_t>());
    case Json::value_t::number_unsigned: {
      const auto number = json.template get<std::uint64_t>();
      if (number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
        throw Failure(fmt::format("context: {} is beyond 64-bit integers", number));
      }
      return Value(static_cast<std::int64_t>(number));
    }
    case Json::value_t::number_float:
      return Value(json.template get<double>());
    case Json::value_t::string:
      return Value(json.template get<std::string>());
    case Json::value_t::array: {
      std::vector<Value> items;
      items.reserve(json.size());
      for (const Json& item : json) {
        items.push_back(convert(item, depth + 1));
      }
      return make_list(std::move(items));
    }
    case Json::value_t::object: {
      auto dict = std::make_shared<Dict>();
      for (const auto& [key, item] : json.items()) {
        dict->set(key, convert(item, depth + 1));
      }
      return Value(std::move(dict));
    }
    default:
      return Value(None{});
  }
}

std::vector<Value> copy_all(const std::vector<Value>& items, int depth) {
  std::vector<Value> copies;
  copies.reserve(items.size());
  for (const Value& item : items) {
    copies.push_back(deep_copy(item, depth));
  }
  return copies;
}

}  // namespace

Value from_json(const nlohmann::json& json) {
  return convert(json, 0);
}

Value from_json(const nlohmann::ordered_json& json) {
  return convert(json, 0);
}

Value deep_copy(const Value& value, int depth) {
  check_depth(depth);
  if (const List* list = value.list()) {
    return make_list(copy_all(list->items, depth + 1));
  }
  if (const Tuple* tuple = value.tuple()) {
    return make_tuple(copy_all(tuple->items, depth + 1));
  }
  if (const Dict* dict = value.dict()) {
    auto copy = std::make_shared<Dict>();
    for (const auto& [key, item] : dict->entries()) {
      copy->set(key, deep_copy(item, depth + 1));
    }
    return Value(std::move(copy));
  }
  return value;
}

}  // namespace stof::render
