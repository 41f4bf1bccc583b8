#include "render/formatting.hpp"

#include <array>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "render/limits.hpp"
#include "render/object.hpp"
#include "render/operators.hpp"
#include "render/text.hpp"

namespace stof::render {

namespace {

constexpr std::size_t kMaxReprBytes = std::size_t{16} << 20U;

// Code points that Python escapes in a literal; those beyond ASCII as far as templates may meet
// them.
bool is_printable(char32_t code) {
  if (code < 0x7F) {
    return code >= 0x20;
  }
  const bool is_control = code < 0xA1 || code == 0xAD;
  const bool is_format = (code >= 0x200B && code <= 0x200F) || (code >= 0x202A && code <= 0x202E) ||
                         (code >= 0x2060 && code <= 0x206F) || code == 0xFEFF;
  const bool is_private = (code >= 0xE000 && code <= 0xF8FF) || code >= 0xE0000;
  return !is_control && !is_format && !is_private && !is_space(code);
}

std::string escape(char32_t code) {
  switch (code) {
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      break;
  }
  const auto number = static_cast<std::uint32_t>(code);
  if (code <= 0xFF) {
    return fmt::format("\\x{:02x}", number);
  }
  return code <= 0xFFFF ? fmt::format("\\u{:04x}", number) : fmt::format("\\U{:08x}", number);
}

class Printer {
 public:
  void print(const Value& value) {
    if (depth_ > kMaxValueDepth) {
      throw Failure(fmt::format("values nested deeper than {} levels", kMaxValueDepth));
    }
    if (const List* list = value.list()) {
      print_items('[', list->items, ']');
    } else if (const Tuple* tuple = value.tuple()) {
      print_items('(', tuple->items, tuple->items.size() == 1 ? ",)" : ")");
    } else if (const Dict* dict = value.dict()) {
      print_entries(*dict);
    } else if (const Text* text = value.text()) {
      add(quote(text->bytes));
    } else {
      add(print_plain(value));
    }
  }

  std::string take() { return std::move(out_); }

 private:
  static std::string print_plain(const Value& value) {
    if (const bool* truth = value.boolean()) {
      return *truth ? "True" : "False";
    }
    if (const std::int64_t* integer = value.integer()) {
      return fmt::to_string(*integer);
    }
    if (const double* real = value.real()) {
      return format_real(*real);
    }
    if (const Object* object = value.object()) {
      return object->repr();
    }
    return value.undefined() != nullptr ? "Undefined" : "None";
  }

  void print_items(char open, const std::vector<Value>& items, std::string_view close) {
    ++depth_;
    add({&open, 1});
    for (std::size_t i = 0; i < items.size(); ++i) {
      add(i == 0 ? "" : ", ");
      print(items[i]);
    }
    add(close);
    --depth_;
  }
  void print_items(char open, const std::vector<Value>& items, char close) {
    print_items(open, items, std::string_view(&close, 1));
  }

  void print_entries(const Dict& dict) {
    ++depth_;
    add("{");
    std::string_view separator;
    for (const auto& [key, value] : dict.entries()) {
      add(separator);
      print(key);
      add(": ");
      print(value);
      separator = ", ";
    }
    add("}");
    --depth_;
  }

  void add(std::string_view text) {
    if (out_.size() + text.size() > kMaxReprBytes) {
      throw Failure(fmt::format("a text of more than {} bytes", kMaxReprBytes));
    }
    out_ += text;
  }

  std::string out_;
  int depth_ = 0;
};

}  // namespace

std::string format_real(double number) {
  if (std::isnan(number)) {
    return "nan";
  }
  if (std::isinf(number)) {
    return number > 0 ? "inf" : "-inf";
  }
  std::array<char, 40> buffer{};
  const auto written = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number,
                                     std::chars_format::scientific);
  std::string text(buffer.data(), written.ptr);
  const std::size_t e = text.find('e');
  const int exponent = std::stoi(text.substr(e + 1));
  if (exponent < -4 || exponent >= 16) {
    return text;  // at least two digits of exponent, as in Python
  }
  const bool is_negative = text.front() == '-';
  std::string digits = text.substr(is_negative ? 1 : 0, e - (is_negative ? 1 : 0));
  std::erase(digits, '.');
  if (exponent < 0) {
    digits.insert(0, static_cast<std::size_t>(-exponent), '0');
  } else if (digits.size() < static_cast<std::size_t>(exponent) + 2) {
    digits.append(static_cast<std::size_t>(exponent) + 2 - digits.size(), '0');
  }
  digits.insert(static_cast<std::size_t>(std::max(exponent, 0)) + 1, 1, '.');
  return (is_negative ? "-" : "") + digits;
}

std::string quote(std::string_view text, bool is_ascii_only) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  const bool has_double = text.find('"') != std::string_view::npos;
  const char mark = has_single && !has_double ? '"' : '\'';
  std::string quoted(1, mark);
  for (std::size_t offset = 0; offset < text.size();) {
    const Character character = decode(text, offset);
    if (character.code == '\\' || character.code == static_cast<char32_t>(mark)) {
      quoted += '\\';
      quoted += text[offset];
    } else if (!is_printable(character.code) || (is_ascii_only && character.code > 0x7E)) {
      quoted += escape(character.code);
    } else {
      quoted += text.substr(offset, character.size);
    }
    offset += character.size;
  }
  return quoted + mark;
}

std::string repr(const Value& value) {
  Printer printer;
  printer.print(value);
  return printer.take();
}

Value to_text(const Value& value) {
  if (value.is_text()) {
    return value;
  }
  if (value.undefined() != nullptr) {
    require_defined(value);
    return Value("");
  }
  if (const Object* object = value.object()) {
    return object->str();
  }
  return Value(repr(value));
}

std::string to_string(const Value& value) {
  return to_text(value).text()->bytes;
}

}  // namespace stof::render
