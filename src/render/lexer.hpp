#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "render/source.hpp"

namespace stof::render {

enum class TokenKind {
  Data,
  VariableBegin,
  VariableEnd,
  BlockBegin,
  BlockEnd,
  Name,
  Integer,
  Real,
  String,
  Operator,
  End,
};

struct Token {
  TokenKind kind = TokenKind::End;
  std::string text{};  // data, name, operator, or the value of a string
  std::int64_t integer = 0;
  double real = 0;
  std::size_t offset = 0;

  bool is_name(std::string_view name) const { return kind == TokenKind::Name && text == name; }
  bool is_operator(std::string_view name) const {
    return kind == TokenKind::Operator && text == name;
  }
};

// What an error message calls a token.
std::string describe(const Token& token);

// Splits a template as jinja2 does with trim_blocks, lstrip_blocks and keep_trailing_newline. The
// last token is End. Comments and raw tags leave no token, only the data between. Throws
// TemplateError.
std::vector<Token> tokenize(const Source& source);

}  // namespace stof::render
