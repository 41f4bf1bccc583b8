#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace stof::contract {

struct HeaderDocument;

// A value inside the JSON header of a template that knows where it stands, so that every error
// names file, line and column. What does not fit throws TemplateError.
class HeaderValue {
 public:
  // The whole header of a template's text.
  static HeaderValue read(const std::string& file, std::string_view text);

  // Members, after a check that this is an object with all the required fields and no others.
  void expect_fields(std::initializer_list<std::string_view> required,
                     std::initializer_list<std::string_view> optional) const;
  bool has(std::string_view field) const;
  HeaderValue operator[](std::string_view field) const;

  std::vector<HeaderValue> items() const;  // of an array
  std::vector<std::pair<std::string, HeaderValue>> members()
      const;  // of an object, in order of name

  std::string string() const;
  std::string identifier() const;                   // a string that is [A-Za-z_][A-Za-z0-9_]*
  void expect_name(const std::string& text) const;  // that this one is, which is this field, say
  std::int64_t integer() const;
  bool boolean() const;
  bool is_string() const { return json_->is_string(); }
  bool is_integer() const;

  // Throws at this value, or `offset` characters into this string.
  [[noreturn]] void fail(const std::string& message) const;
  [[noreturn]] void fail(std::size_t offset, const std::string& message) const;

 private:
  HeaderValue(std::shared_ptr<const HeaderDocument> document, const nlohmann::json* value,
              std::vector<std::string> path)
      : document_(std::move(document)), json_(value), path_(std::move(path)) {}
  HeaderValue child(const std::string& step, const nlohmann::json& json) const;
  std::string name() const;  // "launch.grid", "params.threads.values.0"

  std::shared_ptr<const HeaderDocument> document_;
  const nlohmann::json* json_;
  std::vector<std::string> path_;
};

// Where the header lies in a template: the offsets of its "{" and of the "#}" behind it; or
// nothing.
struct HeaderRange {
  std::size_t begin = 0;
  std::size_t end = 0;
};
HeaderRange find_header(std::string_view text);  // begin == end: none

// True if a comment that is not the first thing in a text holds what looks like a header.
bool has_late_header(std::string_view text);

}  // namespace stof::contract
