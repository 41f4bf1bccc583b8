#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stof::expr {

enum class TokenKind : std::uint8_t { End, Integer, Float, Name, Symbol };

struct Token {
  TokenKind kind = TokenKind::End;
  std::string_view text;
  int column = 1;               // from 1, in bytes
  std::uint64_t magnitude = 0;  // of an Integer
  bool is_hexadecimal = false;  // an Integer that stands for its 64 bits
  double number = 0;            // of a Float
};

// Cuts a text into tokens, one at a time.
class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  // Throws ExpressionError at what begins no token, and at numbers out of range.
  Token next();

 private:
  Token number();
  Token hexadecimal();
  Token name();
  Token symbol();
  Token token(TokenKind kind, std::size_t size);
  [[noreturn]] void fail(std::size_t at, const std::string& message) const;

  std::string_view text_;
  std::size_t at_ = 0;
};

// Throws ExpressionError "expression, column 9: message".
[[noreturn]] void fail_at(int column, const std::string& message);

// The text, or its beginning where it is long, for a message.
std::string shortened(std::string_view text);

}  // namespace stof::expr
