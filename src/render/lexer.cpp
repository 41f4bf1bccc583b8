#include "render/lexer.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "render/literals.hpp"
#include "render/text.hpp"

namespace stof::render {

namespace {

bool is_word(char c) {
  return is_letter(c) || is_digit(c) || c == '_';
}

// The sign of whitespace control after an opening or before a closing delimiter.
enum class Sign { None, Minus, Plus };

class Lexer {
 public:
  explicit Lexer(const Source& source) : source_(source), text_(source.text()) {}

  std::vector<Token> run() {
    while (position_ < text_.size()) {
      lex_root();
    }
    add(TokenKind::End, "", text_.size());
    return std::move(tokens_);
  }

 private:
  // Text up to the next opening delimiter, then what that opens.
  void lex_root() {
    const std::size_t start = position_;
    std::size_t open = text_.find('{', start);
    while (open != std::string_view::npos && !opens_tag(open)) {
      open = text_.find('{', open + 1);
    }
    if (open == std::string_view::npos) {
      add_data(start, text_.size());
      position_ = text_.size();
      return;
    }
    const char kind = text_[open + 1];
    const Sign sign = sign_at(open + 2);
    const std::size_t begin = open + (sign == Sign::None ? 2 : 3);
    add_data(start, stripped_end(start, open, sign, kind == '{'));
    position_ = begin;
    if (kind == '#') {
      lex_comment(open);
    } else if (kind == '{') {
      add(TokenKind::VariableBegin, "{{", open);
      lex_expression(open, "}}");
    } else if (const std::size_t raw_end = match_raw(begin); raw_end != 0) {
      position_ = raw_end;
      lex_raw(open);
    } else {
      add(TokenKind::BlockBegin, "{%", open);
      lex_expression(open, "%}");
    }
  }

  bool opens_tag(std::size_t at) const {
    const char next = at + 1 < text_.size() ? text_[at + 1] : '\0';
    return next == '{' || next == '%' || next == '#';
  }

  Sign sign_at(std::size_t at) const {
    const char c = at < text_.size() ? text_[at] : '\0';
    return c == '-' ? Sign::Minus : (c == '+' ? Sign::Plus : Sign::None);
  }

  // Where the text before a tag ends: white space goes for '-', and blanks alone on the line of a
  // tag go too (lstrip_blocks), but for '+' and for variables.
  std::size_t stripped_end(std::size_t start, std::size_t end, Sign sign, bool is_variable) const {
    const std::string_view text = text_.substr(start, end - start);
    if (sign == Sign::Minus) {
      return start + strip_right(text).size();
    }
    if (sign == Sign::Plus || is_variable) {
      return end;
    }
    const std::size_t newline = text.rfind('\n');
    const std::size_t line = newline == std::string_view::npos ? 0 : newline + 1;
    const bool begins_line = line > 0 || start == 0 || text_[start - 1] == '\n';
    return begins_line && is_blank(text.substr(line)) ? start + line : end;
  }

  // The end of "raw %}" and what it strips; 0 if there is none.
  std::size_t match_raw(std::size_t at) const {
    at = skip_space(at);
    if (text_.substr(at, 3) != "raw") {
      return 0;
    }
    at = skip_space(at + 3);
    if (text_.substr(at, 3) == "-%}") {
      return skip_space(at + 3);
    }
    return text_.substr(at, 2) == "%}" ? at + 2 : 0;
  }

  void lex_raw(std::size_t open) {
    const std::size_t start = position_;
    for (std::size_t at = text_.find("{%", start); at != std::string_view::npos;
         at = text_.find("{%", at + 1)) {
      const Sign sign = sign_at(at + 2);
      const std::size_t word = skip_space(at + (sign == Sign::None ? 2 : 3));
      if (text_.substr(word, 6) != "endraw") {
        continue;
      }
      const std::size_t end = closing_end(skip_space(word + 6), "%}");
      if (end != 0) {
        add_data(start, stripped_end(start, at, sign, false));
        position_ = end;
        return;
      }
    }
    fail_unless_at_end(open, "missing end of raw directive");
  }

  void lex_comment(std::size_t open) {
    for (std::size_t at = position_; at < text_.size(); ++at) {
      if (const std::size_t end = closing_end(at, "#}"); end != 0) {
        position_ = end;
        return;
      }
    }
    fail_unless_at_end(open, "missing end of comment tag");
  }

  // The end of the template right behind an opening closes it: so does jinja2.
  void fail_unless_at_end(std::size_t open, const std::string& message) const {
    if (position_ < text_.size()) {
      throw source_.error(open, message);
    }
  }

  // Where the text goes on behind a closing delimiter at `at`, its sign included; 0 if none is
  // there. A newline after it goes (trim_blocks), but for '+'; all white space goes for '-'.
  std::size_t closing_end(std::size_t at, std::string_view close) const {
    const Sign sign = sign_at(at);
    if (sign != Sign::None) {
      at += 1;
    }
    if (text_.substr(at, 2) != close) {
      return 0;
    }
    at += 2;
    if (sign == Sign::Minus) {
      return skip_space(at);
    }
    const bool trims_newline = sign == Sign::None && close != "}}";
    return trims_newline && at < text_.size() && text_[at] == '\n' ? at + 1 : at;
  }

  // The tokens of a tag, up to and with its end.
  void lex_expression(std::size_t open, std::string_view close) {
    while (true) {
      position_ = skip_space(position_);
      if (position_ >= text_.size()) {
        throw source_.error(open, fmt::format("the tag has no {}", close));
      }
      const bool is_plus_variable = close == "}}" && text_[position_] == '+';
      const std::size_t end =
          brackets_.empty() && !is_plus_variable ? closing_end(position_, close) : 0;
      if (end != 0) {
        add(close == "}}" ? TokenKind::VariableEnd : TokenKind::BlockEnd, close, position_);
        position_ = end;
        return;
      }
      lex_token();
    }
  }

  void lex_token() {
    const char c = text_[position_];
    if (is_digit(c)) {
      lex_number();
    } else if (is_word(c)) {
      const std::size_t start = position_;
      while (position_ < text_.size() && is_word(text_[position_])) {
        ++position_;
      }
      check_ascii_name();
      add(TokenKind::Name, text_.substr(start, position_ - start), start);
    } else if (c == '"' || c == '\'') {
      lex_string(c);
    } else {
      lex_operator();
    }
  }

  void check_ascii_name() const {
    if (position_ < text_.size() && (text_[position_] & 0x80) != 0 &&
        !is_space(decode(text_, position_).code)) {
      throw source_.error(position_, "names are of ASCII letters, digits and _");
    }
  }

  void lex_number() {
    const bool may_be_real = position_ == 0 || text_[position_ - 1] != '.';
    const NumberLiteral literal = read_number(text_.substr(position_), may_be_real);
    if (literal.is_too_large) {
      throw source_.error(position_, "the number is beyond 64 bits");
    }
    Token token{.kind = literal.is_real ? TokenKind::Real : TokenKind::Integer,
                .text = std::string(text_.substr(position_, literal.size)),
                .integer = literal.integer,
                .real = literal.real,
                .offset = position_};
    tokens_.push_back(std::move(token));
    position_ += literal.size;
  }

  void lex_string(char quote) {
    const std::size_t start = position_;
    std::size_t end = start + 1;
    while (end < text_.size() && text_[end] != quote) {
      end += text_[end] == '\\' ? 2 : 1;
    }
    if (end >= text_.size()) {
      throw source_.error(start, "the string has no end");
    }
    const StringLiteral literal = unescape(text_.substr(start + 1, end - start - 1));
    if (!literal.error.empty()) {
      throw source_.error(start, literal.error);
    }
    add(TokenKind::String, literal.value, start);
    position_ = end + 1;
  }

  void lex_operator() {
    static constexpr std::array<std::string_view, 25> kOperators = {
        "//", "**", "==", "!=", "<=", ">=", "+", "-", "/", "*", "%", "~", "[",
        "]",  "(",  ")",  "{",  "}",  "<",  ">", "=", ".", ":", "|", ","};
    const std::string_view rest = text_.substr(position_);
    const auto found = std::ranges::find_if(
        kOperators, [rest](std::string_view candidate) { return rest.starts_with(candidate); });
    if (found == kOperators.end()) {
      const std::string_view character = rest.substr(0, decode(text_, position_).size);
      throw source_.error(position_, fmt::format("unexpected character '{}'", character));
    }
    balance(*found);
    add(TokenKind::Operator, *found, position_);
    position_ += found->size();
  }

  void balance(std::string_view op) {
    static constexpr std::string_view kOpen = "([{";
    static constexpr std::string_view kClose = ")]}";
    if (const std::size_t open = kOpen.find(op); op.size() == 1 && open != std::string_view::npos) {
      brackets_ += kClose[open];
    } else if (op.size() == 1 && kClose.find(op) != std::string_view::npos) {
      if (brackets_.empty()) {
        throw source_.error(position_, fmt::format("unexpected '{}'", op));
      }
      if (brackets_.back() != op[0]) {
        throw source_.error(position_,
                            fmt::format("unexpected '{}', expected '{}'", op, brackets_.back()));
      }
      brackets_.pop_back();
    }
  }

  std::size_t skip_space(std::size_t at) const {
    while (at < text_.size() && is_space(decode(text_, at).code)) {
      at += decode(text_, at).size;
    }
    return std::min(at, text_.size());
  }

  void add_data(std::size_t start, std::size_t end) {
    if (end > start) {
      add(TokenKind::Data, text_.substr(start, end - start), start);
    }
  }

  void add(TokenKind kind, std::string_view text, std::size_t offset) {
    tokens_.push_back({.kind = kind, .text = std::string(text), .offset = offset});
  }

  const Source& source_;
  std::string_view text_;
  std::size_t position_ = 0;
  std::string brackets_;  // the closing brackets that are due
  std::vector<Token> tokens_;
};

}  // namespace

std::string describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::Data:
      return "template text";
    case TokenKind::BlockEnd:
    case TokenKind::VariableEnd:
      return "end of the tag";
    case TokenKind::End:
      return "end of the template";
    case TokenKind::String:
      return "a string";
    default:
      return fmt::format("'{}'", token.text);
  }
}

std::vector<Token> tokenize(const Source& source) {
  return Lexer(source).run();
}

}  // namespace stof::render
