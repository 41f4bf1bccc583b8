#include "expr/lexer.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>

#include "expr/node.hpp"
#include "stof/error.hpp"

namespace stof::expr {

namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool is_name_part(char c) {
  return is_name_start(c) || is_digit(c);
}

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

std::size_t count_while(std::string_view text, bool (*accepts)(char)) {
  return static_cast<std::size_t>(std::ranges::find_if_not(text, accepts) - text.begin());
}

// How many characters at the front are a name: parts joined by dots.
std::size_t name_size(std::string_view text) {
  if (text.empty() || !is_name_start(text.front())) {
    return 0;
  }
  std::size_t size = count_while(text, is_name_part);
  while (size + 1 < text.size() && text[size] == '.' && is_name_part(text[size + 1])) {
    size += 1 + count_while(text.substr(size + 1), is_name_part);
  }
  return size;
}

// How many characters at the front are digits, then perhaps a fraction and an exponent.
std::size_t decimal_size(std::string_view text) {
  std::size_t size = count_while(text, is_digit);
  if (size + 1 < text.size() && text[size] == '.' && is_digit(text[size + 1])) {
    size += 1 + count_while(text.substr(size + 1), is_digit);
  }
  if (size < text.size() && (text[size] == 'e' || text[size] == 'E')) {
    std::size_t digits = size + 1;
    digits += digits < text.size() && (text[digits] == '+' || text[digits] == '-') ? 1 : 0;
    const std::size_t count = count_while(text.substr(std::min(digits, text.size())), is_digit);
    size = count == 0 ? size : digits + count;
  }
  return size;
}

// Longest first, as `<<` begins with `<`.
constexpr auto kSymbols = std::to_array<std::string_view>(
    {">>>", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "+", "-", "*", "/", "%",
     "<",   ">",  "!",  "~",  "&",  "|",  "^",  "?",  ":",  "(", ")", "[", "]", ","});

bool is_reserved(std::string_view text) {
  return text == "true" || text == "false" || text == "inf" || text == "nan";
}

}  // namespace

void fail_at(int column, const std::string& message) {
  throw ExpressionError(column, fmt::format("expression, column {}: {}", column, message));
}

std::string shortened(std::string_view text) {
  constexpr std::size_t kLongest = 64;
  return text.size() <= kLongest ? std::string(text) : std::string(text.substr(0, 61)) + "...";
}

void Lexer::fail(std::size_t at, const std::string& message) const {
  fail_at(static_cast<int>(at) + 1, message);
}

Token Lexer::token(TokenKind kind, std::size_t size) {
  Token token{.kind = kind,
              .text = text_.substr(at_, size),
              .column = static_cast<int>(at_) + 1,
              .magnitude = 0,
              .is_hexadecimal = false,
              .number = 0};
  at_ += size;
  return token;
}

Token Lexer::next() {
  at_ += count_while(text_.substr(at_), is_space);
  if (at_ == text_.size()) {
    return token(TokenKind::End, 0);
  }
  if (is_digit(text_[at_])) {
    return text_.substr(at_).starts_with("0x") ? hexadecimal() : number();
  }
  return is_name_start(text_[at_]) ? name() : symbol();
}

Token Lexer::number() {
  const std::string_view rest = text_.substr(at_);
  const std::size_t size = decimal_size(rest);
  const bool is_integer = std::ranges::all_of(rest.substr(0, size), is_digit);
  if (size < rest.size() && (rest[size] == '.' || is_name_part(rest[size]))) {
    fail(at_ + size, fmt::format("unexpected '{}' in a number", rest[size]));
  }
  Token result = token(is_integer ? TokenKind::Integer : TokenKind::Float, size);
  const char* begin = result.text.data();
  if (is_integer && size > 1 && result.text.front() == '0') {
    fail_at(result.column, "a number does not begin with 0");
  }
  const auto read = is_integer ? std::from_chars(begin, begin + size, result.magnitude)
                               : std::from_chars(begin, begin + size, result.number);
  if (read.ec != std::errc()) {
    fail_at(result.column, fmt::format("{} does not fit in 64 bits", shortened(result.text)));
  }
  return result;
}

Token Lexer::hexadecimal() {
  const std::string_view rest = text_.substr(at_);
  const std::size_t size = 2 + count_while(rest.substr(2), is_name_part);
  Token result = token(TokenKind::Integer, size);
  result.is_hexadecimal = true;
  const char* end = result.text.data() + size;
  const auto read = std::from_chars(result.text.data() + 2, end, result.magnitude, 16);
  if (read.ec == std::errc::result_out_of_range) {
    fail_at(result.column, fmt::format("{} does not fit in 64 bits", shortened(result.text)));
  }
  if (read.ec != std::errc() || read.ptr != end) {
    fail_at(result.column, fmt::format("{} is no hexadecimal number", shortened(result.text)));
  }
  return result;
}

Token Lexer::name() {
  return token(TokenKind::Name, name_size(text_.substr(at_)));
}

Token Lexer::symbol() {
  for (const std::string_view symbol : kSymbols) {
    if (text_.substr(at_).starts_with(symbol)) {
      return token(TokenKind::Symbol, symbol.size());
    }
  }
  const auto byte = static_cast<unsigned char>(text_[at_]);
  fail(at_, byte > ' ' && byte < 127 ? fmt::format("unexpected '{}'", text_[at_])
                                     : fmt::format("unexpected byte 0x{:02x}", byte));
}

bool is_name(std::string_view text) {
  return !text.empty() && name_size(text) == text.size() && !is_reserved(text);
}

void check_name(std::string_view kind, std::string_view name) {
  if (!is_name(name)) {
    throw ExpressionError(0,
                          fmt::format("expression: '{}' cannot name a {}", shortened(name), kind));
  }
}

}  // namespace stof::expr
