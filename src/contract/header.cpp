#include "contract/header.hpp"

#include <algorithm>
#include <cctype>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stof/error.hpp"

namespace stof::contract {

using nlohmann::json;

namespace {

constexpr int kMaxDepth = 16;

std::size_t skip_space(std::string_view text, std::size_t at) {
  while (at < text.size() && (std::isspace(static_cast<unsigned char>(text[at])) != 0)) {
    ++at;
  }
  return at;
}

// The walkers below go over text that has parsed as JSON, so they need not look for faults.

std::size_t skip_string(std::string_view text, std::size_t at) {
  for (++at; text[at] != '"'; ++at) {
    if (text[at] == '\\') {
      ++at;
    }
  }
  return at + 1;
}

std::size_t skip_value(std::string_view text, std::size_t at) {
  int depth = 0;
  do {
    const char c = text[at];
    if (c == '"') {
      at = skip_string(text, at);
      continue;
    }
    if (c == '{' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ']') {
      --depth;
    } else if (depth == 0) {
      return text.find_first_of(",]} \t\r\n", at);
    }
    ++at;
  } while (depth > 0);
  return at;
}

// Offset of one member or element of the object or array at `at`.
std::size_t step_into(std::string_view text, std::size_t at, const std::string& step) {
  const bool is_object = text[at] == '{';
  std::size_t index = 0;
  at = skip_space(text, at + 1);
  while (true) {
    bool found = std::to_string(index++) == step;
    if (is_object) {
      const std::size_t end = skip_string(text, at);
      found = json::parse(text.substr(at, end - at)) == json(step);
      at = skip_space(text, skip_space(text, end) + 1);
    }
    if (found) {
      return at;
    }
    at = skip_space(text, skip_space(text, skip_value(text, at)) + 1);
  }
}

}  // namespace

struct HeaderDocument {
  std::string file;
  std::string text;  // of the whole template
  HeaderRange range;
  std::unique_ptr<const json> root;

  [[noreturn]] void fail(std::size_t offset, const std::string& message) const {
    offset = std::min(offset, text.size());
    const std::size_t newline = offset == 0 ? std::string::npos : text.rfind('\n', offset - 1);
    const std::size_t line_begin = newline == std::string::npos ? 0 : newline + 1;
    const std::size_t line_end = std::min(text.find('\n', offset), text.size());
    const auto line =
        std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(offset), '\n');
    throw TemplateError(file, static_cast<int>(line) + 1, static_cast<int>(offset - line_begin) + 1,
                        message, text.substr(line_begin, line_end - line_begin));
  }

  std::size_t locate(const std::vector<std::string>& path) const {
    const std::string_view body = std::string_view(text).substr(0, range.end);
    std::size_t at = range.begin;
    for (const std::string& step : path) {
      at = step_into(body, at, step);
    }
    return at;
  }
};

namespace {

// Parses the header; a key that comes twice in one object is an error, which plain JSON would hide.
json parse_json(const HeaderDocument& document) {
  const std::string_view body =
      std::string_view(document.text)
          .substr(document.range.begin, document.range.end - document.range.begin);
  std::vector<std::set<std::string>> keys;
  std::string repeated;
  const auto watch = [&](int depth, json::parse_event_t event, const json& value) {
    if (event == json::parse_event_t::object_start) {
      keys.emplace_back();
    } else if (event == json::parse_event_t::object_end) {
      keys.pop_back();
    } else if (event == json::parse_event_t::key && !keys.back().insert(value).second) {
      repeated = value;
    }
    if (depth > kMaxDepth) {
      document.fail(document.range.begin,
                    fmt::format("the header nests deeper than {} levels", kMaxDepth));
    }
    return true;
  };
  json root;
  try {
    root = json::parse(body, watch);
  } catch (const json::parse_error& error) {
    std::string reason =
        error.what();  // "[json.exception…] parse error at line 1, column 2: reason"
    reason.erase(0, reason.find(": ") == std::string::npos ? 0 : reason.find(": ") + 2);
    document.fail(document.range.begin + (error.byte == 0 ? 0 : error.byte - 1),
                  fmt::format("the header is not JSON: {}", reason));
  } catch (const json::exception&) {
    document.fail(document.range.begin, "the header has a number that no float64 holds");
  }
  if (!repeated.empty()) {
    document.fail(document.range.begin,
                  fmt::format("the header has the field '{}' twice in one object", repeated));
  }
  return root;
}

}  // namespace

HeaderRange find_header(std::string_view text) {
  if (!text.starts_with("{#")) {
    return {};
  }
  std::size_t begin = 2;
  if (begin < text.size() && text[begin] == '-') {
    ++begin;
  }
  begin = skip_space(text, begin);
  const std::size_t end = text.find("#}", begin);
  if (begin >= text.size() || text[begin] != '{' || end == std::string_view::npos) {
    return {};
  }
  return {begin, text[end - 1] == '-' ? end - 1 : end};
}

bool has_late_header(std::string_view text) {
  std::size_t at = text.find("{#", 1);
  while (at < text.size()) {
    const std::size_t end = text.find("#}", at);
    if (end == std::string_view::npos) {
      return false;
    }
    const HeaderRange range = find_header(text.substr(at, end + 2 - at));
    if (text.substr(at + range.begin, range.end - range.begin).find("\"contract\"") !=
        std::string_view::npos) {
      return true;
    }
    at = text.find("{#", end);
  }
  return false;
}

HeaderValue HeaderValue::read(const std::string& file, std::string_view text) {
  auto document = std::make_shared<HeaderDocument>();
  document->file = file;
  document->text = text;
  document->range = find_header(text);
  if (document->range.begin == document->range.end) {
    document->fail(
        0,
        "a template opens with a comment that holds its JSON header: {# {\"contract\": 1, …} #}");
  }
  document->root = std::make_unique<const json>(parse_json(*document));
  const json* root = document->root.get();
  return {std::move(document), root, {}};
}

HeaderValue HeaderValue::child(const std::string& step, const json& value) const {
  std::vector<std::string> path = path_;
  path.push_back(step);
  return {document_, &value, std::move(path)};
}

std::string HeaderValue::name() const {
  return path_.empty() ? "the header" : fmt::format("{}", fmt::join(path_, "."));
}

void HeaderValue::fail(const std::string& message) const {
  document_->fail(document_->locate(path_), fmt::format("{}: {}", name(), message));
}

void HeaderValue::fail(std::size_t offset, const std::string& message) const {
  document_->fail(document_->locate(path_) + 1 + offset, fmt::format("{}: {}", name(), message));
}

void HeaderValue::expect_fields(std::initializer_list<std::string_view> required,
                                std::initializer_list<std::string_view> optional) const {
  if (!json_->is_object()) {
    fail(fmt::format("expected an object, found {}", json_->type_name()));
  }
  const auto among = [](std::string_view name, std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  for (const auto& [field, value] : json_->items()) {
    if (!among(field, required) && !among(field, optional)) {
      std::vector<std::string_view> known(required);
      known.insert(known.end(), optional.begin(), optional.end());
      child(field, value).fail(fmt::format("unknown field; known are {}", fmt::join(known, ", ")));
    }
  }
  for (const std::string_view field : required) {
    if (!has(field)) {
      fail(fmt::format("the field '{}' is missing", field));
    }
  }
}

bool HeaderValue::has(std::string_view field) const {
  return json_->is_object() && json_->contains(field);
}

HeaderValue HeaderValue::operator[](std::string_view field) const {
  return child(std::string(field), json_->at(std::string(field)));
}

std::vector<HeaderValue> HeaderValue::items() const {
  if (!json_->is_array()) {
    fail(fmt::format("expected an array, found {}", json_->type_name()));
  }
  std::vector<HeaderValue> items;
  for (std::size_t i = 0; i < json_->size(); ++i) {
    items.push_back(child(std::to_string(i), (*json_)[i]));
  }
  return items;
}

std::vector<std::pair<std::string, HeaderValue>> HeaderValue::members() const {
  if (!json_->is_object()) {
    fail(fmt::format("expected an object, found {}", json_->type_name()));
  }
  std::vector<std::pair<std::string, HeaderValue>> members;
  for (const auto& [field, value] : json_->items()) {
    members.emplace_back(field, child(field, value));
  }
  return members;
}

std::string HeaderValue::string() const {
  if (!json_->is_string()) {
    fail(fmt::format("expected a string, found {}", json_->type_name()));
  }
  return json_->get<std::string>();
}

std::string HeaderValue::identifier() const {
  std::string text = string();
  expect_name(text);
  return text;
}

void HeaderValue::expect_name(const std::string& text) const {
  constexpr std::size_t kMostLetters = 128;  // NVRTC crashes on names of 100,000
  if (text.size() > kMostLetters) {
    fail(fmt::format("a name has at most {} letters, this one {}", kMostLetters, text.size()));
  }
  const auto in_word = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text[0])) != 0 ||
      !std::all_of(text.begin(), text.end(), in_word)) {
    fail(fmt::format("'{}' is not a name: letters, digits and underscores, no digit first", text));
  }
}

bool HeaderValue::is_integer() const {
  return json_->is_number_integer() &&
         (!json_->is_number_unsigned() || json_->get<std::uint64_t>() <= INT64_MAX);
}

std::int64_t HeaderValue::integer() const {
  if (!is_integer()) {
    fail(fmt::format("expected a 64-bit integer, found {}",
                     json_->is_number() ? json_->dump() : json_->type_name()));
  }
  return json_->get<std::int64_t>();
}

bool HeaderValue::boolean() const {
  if (!json_->is_boolean()) {
    fail(fmt::format("expected true or false, found {}", json_->type_name()));
  }
  return json_->get<bool>();
}

}  // namespace stof::contract
