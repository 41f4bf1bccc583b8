#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "stof/error.hpp"

namespace stof::graph {

// JSON of at most this many levels; a mask of the most nested form takes 2 of them a step.
inline constexpr int kMaxJsonDepth = 600;

// Text as JSON. Throws GraphError where it is none, nests deeper than kMaxJsonDepth or has a field
// twice in one object.
nlohmann::json parse_json(std::string_view text);

// A value in a document, with its place there as a JSON pointer.
class Place {
 public:
  Place(const nlohmann::json& value, std::string where)
      : value_(&value), where_(std::move(where)) {}

  const nlohmann::json& value() const { return *value_; }
  const std::string& where() const { return where_; }

  // Throws GraphError: "/operators/3/inputs/0: " and the message.
  [[noreturn]] void fail(std::string_view message) const;
  // "…: found a string, expected an integer"
  [[noreturn]] void expected(std::string_view what) const;

  // Fields of an object. The first throws where one is not among these, or it is no object.
  void allow(std::initializer_list<std::string_view> fields) const;
  bool has(std::string_view field) const { return value_->contains(field); }
  Place field(std::string_view name) const;  // throws where it is missing

  // Elements of an array.
  std::size_t size() const;  // throws where it is no array
  Place element(std::size_t index) const;

  bool boolean() const;
  std::int64_t integer() const;
  std::int64_t integer(std::int64_t min, std::int64_t max) const;
  double number() const;
  const std::string& string() const;

  // Calls make() and puts the place before the message of a GraphError.
  template <typename Make>
  auto guard(const Make& make) const {
    try {
      return make();
    } catch (const GraphError& error) {
      throw GraphError(fmt::format("{}: {}", shown(), error.what()));
    }
  }

 private:
  std::string shown() const { return where_.empty() ? "/" : where_; }

  const nlohmann::json* value_;
  std::string where_;
};

// A field's name as part of a JSON pointer (RFC 6901), cut where it is long.
std::string pointer_part(std::string_view field);

}  // namespace stof::graph
