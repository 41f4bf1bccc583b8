#include "io/npy_header.hpp"

#include <algorithm>
#include <charconv>
#include <set>

#include <fmt/format.h>

#include "base/text.hpp"
#include "stof/error.hpp"

namespace stof::io {

namespace {

// Reads the few Python literals that a header is made of.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  // Skips spaces and takes the token if it comes next.
  bool take(std::string_view token) {
    skip_space();
    if (!text_.substr(position_).starts_with(token)) {
      return false;
    }
    position_ += token.size();
    return true;
  }

  void expect(std::string_view token) {
    if (!take(token)) {
      fail(fmt::format("'{}'", token));
    }
  }

  std::string string() {
    const char quote = take("'") ? '\'' : '"';
    if (quote == '"') {
      expect("\"");
    }
    const std::size_t end = text_.find(quote, position_);
    const std::string_view value = text_.substr(position_, end - position_);
    if (end == std::string_view::npos || value.find('\\') != std::string_view::npos) {
      fail("a plain string");
    }
    position_ = end + 1;
    return std::string(value);
  }

  bool boolean() {
    const bool is_true = take("True");
    if (!is_true && !take("False")) {
      fail("True or False");
    }
    return is_true;
  }

  std::vector<std::int64_t> tuple() {
    std::vector<std::int64_t> values;
    expect("(");
    while (!take(")")) {
      values.push_back(integer());
      if (!take(",")) {
        expect(")");
        break;
      }
    }
    return values;
  }

  void end() {
    skip_space();
    if (position_ != text_.size()) {
      fail("the end");
    }
  }

  [[noreturn]] void fail(std::string_view expected) const {
    throw GraphError(fmt::format("header, byte {}: {} is expected", position_, expected));
  }

 private:
  std::int64_t integer() {
    skip_space();
    std::int64_t value = 0;
    const char* const begin = text_.data() + position_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error != std::errc() || value < 0) {
      fail("an extent of 0 or more");
    }
    position_ += static_cast<std::size_t>(end - begin);
    return value;
  }

  void skip_space() {
    position_ = std::min(text_.find_first_not_of(" \t\n", position_), text_.size());
  }

  std::string_view text_;
  std::size_t position_ = 0;
};

}  // namespace

NpyHeader parse_npy_header(std::string_view text) {
  Reader reader(text);
  NpyHeader header;
  std::set<std::string> keys;
  reader.expect("{");
  while (!reader.take("}")) {
    const std::string key = reader.string();
    if (!keys.insert(key).second) {
      throw GraphError(fmt::format("header has {} twice", base::quote(key)));
    }
    reader.expect(":");
    if (key == "descr") {
      if (reader.take("[")) {
        throw GraphError("has a structured dtype; save each of its fields as an array of its own");
      }
      header.descr = reader.string();
    } else if (key == "fortran_order") {
      header.is_fortran_order = reader.boolean();
    } else if (key == "shape") {
      header.shape = reader.tuple();
    } else {
      throw GraphError(fmt::format("header has an unknown key {}", base::quote(key)));
    }
    if (!reader.take(",")) {
      reader.expect("}");
      break;
    }
  }
  reader.end();
  for (const char* key : {"descr", "fortran_order", "shape"}) {
    if (!keys.contains(key)) {
      throw GraphError(fmt::format("header has no \"{}\"", key));
    }
  }
  return header;
}

}  // namespace stof::io
