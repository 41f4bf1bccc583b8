#include "graph/json_place.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <vector>

#include <fmt/ranges.h>

namespace stof::graph {

namespace {

using nlohmann::json;

constexpr std::size_t kMaxShown = 40;

std::string shown_text(std::string_view text) {
  std::string result;
  for (const char c : text.substr(0, kMaxShown)) {
    const bool is_printable = c >= ' ' && c <= '~';
    result +=
        is_printable ? std::string(1, c) : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return result + (text.size() > kMaxShown ? "..." : "");
}

std::string describe(const json& value) {
  switch (value.type()) {
    case json::value_t::null:
      return "null";
    case json::value_t::object:
      return "an object";
    case json::value_t::array:
      return fmt::format("an array of {}", value.size());
    case json::value_t::string:
      return fmt::format("\"{}\"", shown_text(value.get_ref<const std::string&>()));
    default:
      return value.dump();
  }
}

std::string line_and_column(std::string_view text, std::size_t byte) {
  const std::string_view before = text.substr(0, byte == 0 ? 0 : byte - 1);
  const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  return fmt::format("line {}, column {}", std::ranges::count(before, '\n') + 1,
                     before.size() - line_start + 1);
}

// Watches the parser for what it would let pass.
class Guard {
 public:
  bool operator()(int depth, json::parse_event_t event, const json& parsed) {
    if (event == json::parse_event_t::object_start) {
      keys_.emplace_back();
    } else if (event == json::parse_event_t::object_end) {
      keys_.pop_back();
    } else if (event == json::parse_event_t::key) {
      const auto& key = parsed.get_ref<const std::string&>();
      if (!keys_.back().insert(key).second) {
        throw GraphError(
            fmt::format("json: the field \"{}\" stands twice in one object", shown_text(key)));
      }
    }
    if (depth > kMaxJsonDepth) {
      throw GraphError(fmt::format("json: it nests deeper than {} levels", kMaxJsonDepth));
    }
    return true;
  }

 private:
  std::vector<std::set<std::string>> keys_;
};

}  // namespace

json parse_json(std::string_view text) {
  Guard guard;
  try {
    return json::parse(text, std::ref(guard));
  } catch (const json::parse_error& error) {
    throw GraphError(fmt::format("json: {}: this is no JSON", line_and_column(text, error.byte)));
  } catch (const json::exception&) {
    throw GraphError("json: it has a number that no float64 holds");
  }
}

std::string pointer_part(std::string_view field) {
  std::string part;
  for (const char c : shown_text(field)) {
    part += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  }
  return part;
}

void Place::fail(std::string_view message) const {
  throw GraphError(fmt::format("{}: {}", shown(), message));
}

void Place::expected(std::string_view what) const {
  fail(fmt::format("found {}, expected {}", describe(*value_), what));
}

void Place::allow(std::initializer_list<std::string_view> fields) const {
  if (!value_->is_object()) {
    expected("an object");
  }
  for (const auto& [name, unused] : value_->items()) {
    if (std::ranges::find(fields, name) == fields.end()) {
      fail(fmt::format("found the unknown field \"{}\", expected {}", shown_text(name),
                       fmt::join(fields, ", ")));
    }
  }
}

Place Place::field(std::string_view name) const {
  const auto found = value_->find(name);
  if (found == value_->end()) {
    fail(fmt::format("the field \"{}\" is missing", name));
  }
  return {*found, fmt::format("{}/{}", where_, pointer_part(name))};
}

std::size_t Place::size() const {
  if (!value_->is_array()) {
    expected("an array");
  }
  return value_->size();
}

Place Place::element(std::size_t index) const {
  return {(*value_)[index], fmt::format("{}/{}", where_, index)};
}

bool Place::boolean() const {
  if (!value_->is_boolean()) {
    expected("true or false");
  }
  return value_->get<bool>();
}

std::int64_t Place::integer() const {
  constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const bool is_too_large = value_->is_number_unsigned() && value_->get<std::uint64_t>() > kMax;
  if (!value_->is_number_integer() || is_too_large) {
    expected("an integer of 64 bits");
  }
  return value_->get<std::int64_t>();
}

std::int64_t Place::integer(std::int64_t min, std::int64_t max) const {
  if (!value_->is_number_integer() || integer() < min || integer() > max) {
    expected(fmt::format("an integer from {} to {}", min, max));
  }
  return integer();
}

double Place::number() const {
  if (!value_->is_number()) {
    expected("a number");
  }
  return value_->get<double>();
}

const std::string& Place::string() const {
  if (!value_->is_string()) {
    expected("a string");
  }
  return value_->get_ref<const std::string&>();
}

}  // namespace stof::graph
