#include "graph/dim_text.hpp"

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <system_error>

#include <fmt/format.h>

#include "graph/infer.hpp"
#include "stof/error.hpp"

namespace stof::graph {

namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || is_digit(c);
}

class Parser {
 public:
  Parser(std::string_view text, const std::map<std::string, Dim>& symbols)
      : text_(text), symbols_(symbols) {}

  Dim run() {
    Dim sum = product(take('-'));
    while (at_ < text_.size()) {
      const bool is_negative = take('-');
      if (!is_negative && !take('+')) {
        fail("'+', '-' or '*'");
      }
      sum = sum + product(is_negative);
    }
    return sum;
  }

 private:
  // The sign goes into the first number, so that the least integer can be read.
  Dim product(bool is_negative) {
    Dim result = factor(is_negative);
    while (take('*')) {
      result = result * factor(false);
    }
    return result;
  }

  Dim factor(bool is_negative) {
    skip_spaces();
    const std::size_t start = at_;
    while (at_ < text_.size() && is_word(text_[at_])) {
      ++at_;
    }
    const std::string word(text_.substr(start, at_ - start));
    if (!word.empty() && is_digit(word[0])) {
      return number(start, is_negative ? "-" + word : word);
    }
    const auto found = symbols_.find(word);
    if (found == symbols_.end()) {
      at_ = start;
      fail("an integer or a dim of the graph");
    }
    skip_spaces();
    return is_negative ? Dim(-1) * found->second : found->second;
  }

  Dim number(std::size_t start, const std::string& word) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size()) {
      at_ = start;
      fail("an integer of 64 bits");
    }
    skip_spaces();
    return value;
  }

  bool take(char c) {
    skip_spaces();
    const bool is_there = at_ < text_.size() && text_[at_] == c;
    at_ += is_there ? 1 : 0;
    return is_there;
  }

  void skip_spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') {
      ++at_;
    }
  }

  [[noreturn]] void fail(std::string_view expected) const {
    throw GraphError(fmt::format("extent \"{}\": column {}: expected {}", text_.substr(0, 80),
                                 at_ + 1, expected));
  }

  std::string_view text_;
  const std::map<std::string, Dim>& symbols_;
  std::size_t at_ = 0;
};

}  // namespace

Dim parse_dim(std::string_view text, const std::map<std::string, Dim>& symbols) {
  if (text.size() > kMaxExtentLength) {
    throw GraphError(fmt::format("extent: {} characters are over the limit of {}", text.size(),
                                 kMaxExtentLength));
  }
  return Parser(text, symbols).run();
}

}  // namespace stof::graph
