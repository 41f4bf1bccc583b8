#include "render/literals.hpp"

#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "render/text.hpp"

namespace stof::render {

namespace {

// The size of digits with single underscores between them, from `at` on; also before the first one
// where `may_lead` says so.
std::size_t digits_size(std::string_view text, std::size_t at, int base, bool may_lead) {
  std::size_t end = at;
  while (end < text.size()) {
    const bool has_mark = text[end] == '_' && (end > at || may_lead);
    const std::size_t digit = end + (has_mark ? 1 : 0);
    if (digit >= text.size() || digit_value(text[digit]) >= base) {
      break;
    }
    end = digit + 1;
  }
  return end - at;
}

// The size of a float, or 0 where the text starts with none.
std::size_t real_size(std::string_view text) {
  std::size_t size = digits_size(text, 0, 10, false);
  bool is_real = false;
  if (size < text.size() && text[size] == '.') {
    const std::size_t fraction = digits_size(text, size + 1, 10, false);
    is_real = fraction > 0;
    size += is_real ? fraction + 1 : 0;
  }
  if (size < text.size() && (text[size] | 0x20) == 'e') {
    const bool has_sign =
        size + 1 < text.size() && (text[size + 1] == '+' || text[size + 1] == '-');
    const std::size_t first = size + (has_sign ? 2 : 1);
    const std::size_t exponent = digits_size(text, first, 10, false);
    is_real = is_real || exponent > 0;
    size = exponent > 0 ? first + exponent : size;
  }
  return is_real ? size : 0;
}

std::string without_marks(std::string_view text) {
  std::string digits(text);
  std::erase(digits, '_');
  return digits;
}

NumberLiteral make_real(std::string_view text) {
  const std::string digits = without_marks(text);
  NumberLiteral literal{.is_real = true, .size = text.size()};
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), literal.real);
  if (read.ec == std::errc::result_out_of_range) {
    // Too large, unless a negative exponent makes it vanish.
    const std::size_t e = digits.find_first_of("eE");
    literal.is_too_large = e == std::string::npos || digits[e + 1] != '-';
    literal.real = 0;
  }
  return literal;
}

NumberLiteral make_integer(std::string_view text, std::size_t prefix, int base) {
  const std::string digits = without_marks(text.substr(prefix));
  NumberLiteral literal{.size = text.size()};
  const auto read =
      std::from_chars(digits.data(), digits.data() + digits.size(), literal.integer, base);
  literal.is_too_large = read.ec == std::errc::result_out_of_range;
  return literal;
}

struct Escape {
  char letter;
  char32_t code;
};
constexpr Escape kEscapes[] = {{'n', '\n'}, {'t', '\t'}, {'r', '\r'},  {'a', '\a'},  {'b', '\b'},
                               {'f', '\f'}, {'v', '\v'}, {'\\', '\\'}, {'\'', '\''}, {'"', '"'}};

class Unescaper {
 public:
  explicit Unescaper(std::string_view text) : text_(text) {}

  StringLiteral run() {
    while (position_ < text_.size() && literal_.error.empty()) {
      const char c = text_[position_++];
      if (c != '\\') {
        literal_.value += c;
      } else if (position_ == text_.size()) {
        literal_.error = "\\ at end of string";
      } else {
        escape();
      }
    }
    return std::move(literal_);
  }

 private:
  void escape() {
    const char letter = text_[position_];
    for (const Escape& known : kEscapes) {
      if (known.letter == letter) {
        ++position_;
        literal_.value += encode(known.code);
        return;
      }
    }
    if (letter == '\n') {
      ++position_;
    } else if (letter >= '0' && letter <= '7') {
      octal();
    } else if (letter == 'x' || letter == 'u' || letter == 'U') {
      ++position_;
      hexadecimal(letter == 'x' ? 2 : (letter == 'u' ? 4 : 8));
    } else if (letter == 'N') {
      literal_.error = "\\N{...} is not supported: write the character or \\u";
    } else {
      literal_.value += '\\';
      spell_beyond_ascii();
    }
  }

  void octal() {
    char32_t code = 0;
    for (int i = 0; i < 3 && position_ < text_.size(); ++i) {
      const char c = text_[position_];
      if (c < '0' || c > '7') {
        break;
      }
      code = code * 8 + static_cast<char32_t>(c - '0');
      ++position_;
    }
    literal_.value += encode(code);
  }

  void hexadecimal(std::size_t count) {
    char32_t code = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const int digit = position_ < text_.size() ? digit_value(text_[position_]) : 99;
      if (digit >= 16) {
        literal_.error = fmt::format("an escape of {} hexadecimal digits is cut short", count);
        return;
      }
      code = code * 16 + static_cast<char32_t>(digit);
      ++position_;
    }
    if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) {
      literal_.error = "an escape that is no character";
      return;
    }
    literal_.value += encode(code);
  }

  // A backslash in front of a character beyond ASCII stays, and the character is spelled out: so
  // does jinja2.
  void spell_beyond_ascii() {
    const Character character = decode(text_, position_);
    if (character.code < 0x80) {
      return;
    }
    position_ += character.size;
    const auto code = static_cast<std::uint32_t>(character.code);
    literal_.value += code <= 0xFF     ? fmt::format("x{:02x}", code)
                      : code <= 0xFFFF ? fmt::format("u{:04x}", code)
                                       : fmt::format("U{:08x}", code);
  }

  std::string_view text_;
  std::size_t position_ = 0;
  StringLiteral literal_;
};

}  // namespace

NumberLiteral read_number(std::string_view text, bool may_be_real) {
  if (const std::size_t size = may_be_real ? real_size(text) : 0; size > 0) {
    return make_real(text.substr(0, size));
  }
  const char letter = text.size() > 1 ? static_cast<char>(text[1] | 0x20) : ' ';
  const int base = letter == 'b' ? 2 : (letter == 'o' ? 8 : (letter == 'x' ? 16 : 10));
  if (text[0] == '0' && base != 10) {
    if (const std::size_t size = digits_size(text, 2, base, true); size > 0) {
      return make_integer(text.substr(0, size + 2), 2, base);
    }
  }
  // A zero goes on with zeros alone.
  const std::size_t size = digits_size(text, 0, text[0] == '0' ? 1 : 10, false);
  return make_integer(text.substr(0, size), 0, 10);
}

StringLiteral unescape(std::string_view text) {
  return Unescaper(text).run();
}

}  // namespace stof::render
