#include "render/printf_format.hpp"

#include <cmath>

#include <fmt/format.h>

#include "render/access.hpp"
#include "render/formatting.hpp"
#include "render/number_format.hpp"
#include "render/operators.hpp"
#include "render/text.hpp"

namespace stof::render {

namespace {

struct Conversion {
  bool is_left = false;
  bool has_sign = false;
  bool has_blank = false;
  bool has_zeros = false;
  bool is_alternate = false;
  std::int64_t width = 0;
  std::int64_t precision = -1;
  char type = ' ';
};

class PrintfFormatter {
 public:
  PrintfFormatter(Runtime& runtime, std::string_view format, const Value& arguments)
      : runtime_(runtime), format_(format), arguments_(arguments) {}

  std::string run() {
    while (position_ < format_.size()) {
      const std::size_t percent = std::min(format_.find('%', position_), format_.size());
      out_ += format_.substr(position_, percent - position_);
      position_ = percent + 1;
      if (percent < format_.size()) {
        convert();
      }
      runtime_.budget.check_text(out_.size());
    }
    check_all_used();
    return std::move(out_);
  }

 private:
  char peek() const {
    if (position_ >= format_.size()) {
      throw Failure("incomplete format");
    }
    return format_[position_];
  }

  void convert() {
    Value named;
    if (peek() == '(') {
      named = read_named();
    }
    Conversion conversion = read_conversion();
    if (conversion.type == '%') {
      out_ += '%';
      return;
    }
    const Value value = named.is_missing() ? next_argument() : named;
    std::string text = convert_value(conversion, value);
    pad(conversion, std::move(text));
  }

  Value read_named() {
    const Dict* dict = arguments_.dict();
    if (dict == nullptr) {
      require_defined(arguments_);
      throw Failure("format requires a mapping");
    }
    int open = 1;
    const std::size_t begin = ++position_;
    for (; open > 0; ++position_) {
      const char c = peek();
      open += c == '(' ? 1 : (c == ')' ? -1 : 0);
    }
    const std::string key(format_.substr(begin, position_ - 1 - begin));
    const Value* found = dict->find(key);
    if (found == nullptr) {
      throw Failure(fmt::format("format: no argument named {}", quote(key)));
    }
    is_mapping_used_ = true;
    return *found;
  }

  Conversion read_conversion() {
    Conversion conversion;
    for (bool is_flag = true; is_flag;) {
      switch (peek()) {
        case '-':
          conversion.is_left = true;
          break;
        case '+':
          conversion.has_sign = true;
          break;
        case ' ':
          conversion.has_blank = true;
          break;
        case '0':
          conversion.has_zeros = true;
          break;
        case '#':
          conversion.is_alternate = true;
          break;
        default:
          is_flag = false;
      }
      position_ += is_flag ? 1 : 0;
    }
    conversion.width = read_number();
    if (conversion.width < 0) {
      conversion.is_left = true;
      conversion.width = -conversion.width;
    }
    if (peek() == '.') {
      ++position_;
      conversion.precision = std::max<std::int64_t>(read_number(), 0);
    }
    while (peek() == 'h' || peek() == 'l' || peek() == 'L') {
      ++position_;
    }
    conversion.type = peek();
    ++position_;
    runtime_.budget.check_text(static_cast<std::size_t>(conversion.width));
    return conversion;
  }

  std::int64_t read_number() {
    if (peek() == '*') {
      ++position_;
      const Value number = next_argument();
      if (number.integer() == nullptr && number.boolean() == nullptr) {
        throw Failure("* wants int");
      }
      constexpr std::int64_t kLimit = 1 << 30;
      return std::clamp(*as_integer(number), -kLimit, kLimit);
    }
    std::int64_t number = 0;
    while (is_digit(peek())) {
      number = number * 10 + (peek() - '0');
      if (number > 1 << 30) {
        throw Failure("width or precision too big");
      }
      ++position_;
    }
    return number;
  }

  Value next_argument() {
    if (const Tuple* tuple = arguments_.tuple()) {
      if (used_ < tuple->items.size()) {
        return tuple->items[used_++];
      }
    } else if (used_++ == 0 && !is_mapping_used_) {
      return arguments_;
    }
    throw Failure("not enough arguments for format string");
  }

  void check_all_used() const {
    const Tuple* tuple = arguments_.tuple();
    const bool ignores_rest = arguments_.dict() != nullptr || arguments_.list() != nullptr ||
                              arguments_.object() != nullptr || arguments_.undefined() != nullptr;
    if (tuple != nullptr ? used_ < tuple->items.size() : (used_ == 0 && !ignores_rest)) {
      throw Failure("not all arguments converted during string formatting");
    }
  }

  std::string convert_value(Conversion& conversion, const Value& value) {
    switch (conversion.type) {
      case 's':
        return cut(conversion, to_string(value));
      case 'r':
        return cut(conversion, repr(value));
      case 'a':
        return cut(conversion, value.is_text() ? quote(value.text()->bytes, true) : repr(value));
      case 'c':
        return character(value);
      case 'd':
      case 'i':
      case 'u':
      case 'o':
      case 'x':
      case 'X':
        return integer(conversion, value);
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
        return real(conversion, value);
      default:
        throw Failure(fmt::format("unsupported format character '{}'", conversion.type));
    }
  }

  static std::string cut(Conversion& conversion, std::string text) {
    conversion.has_zeros = false;
    if (conversion.precision >= 0) {
      text.resize(byte_offset(text, static_cast<std::size_t>(conversion.precision)));
    }
    return text;
  }

  std::string character(const Value& value) {
    if (const auto code = as_integer(value)) {
      if (*code < 0 || *code > 0x10FFFF || (*code >= 0xD800 && *code < 0xE000)) {
        throw Failure("%c arg is no character");
      }
      return encode(static_cast<char32_t>(*code));
    }
    if (value.is_text() && count_characters(value.text()->bytes) == 1) {
      return value.text()->bytes;
    }
    throw Failure("%c requires int or char");
  }

  static std::string integer(const Conversion& conversion, const Value& value) {
    auto number = as_integer(value);
    const bool takes_real =
        conversion.type == 'd' || conversion.type == 'i' || conversion.type == 'u';
    if (const double* real = value.real(); real != nullptr && takes_real) {
      if (!(std::fabs(*real) < 0x1p63)) {
        throw Failure("cannot convert float to a 64-bit integer");
      }
      number = static_cast<std::int64_t>(*real);
    }
    if (!number) {
      require_defined(value);
      throw Failure(fmt::format("%{} format: a number is required, not {}", conversion.type,
                                type_name(value)));
    }
    const bool is_hex = (conversion.type | 0x20) == 'x';
    const int base = is_hex ? 16 : (conversion.type == 'o' ? 8 : 10);
    std::string digits = format_digits(magnitude_of(*number), base, conversion.type == 'X');
    if (conversion.precision > static_cast<std::int64_t>(digits.size())) {
      if (conversion.precision > kMaxPrecision) {
        throw Failure(
            fmt::format("precision {} is more than {}", conversion.precision, kMaxPrecision));
      }
      digits.insert(0, static_cast<std::size_t>(conversion.precision) - digits.size(), '0');
    }
    if (conversion.is_alternate && base != 10) {
      digits.insert(0, base == 8 ? "0o" : (conversion.type == 'X' ? "0X" : "0x"));
    }
    return (*number < 0 ? "-" : positive_sign(conversion)) + digits;
  }

  static std::string real(const Conversion& conversion, const Value& value) {
    const auto number = as_real(value);
    if (!number) {
      require_defined(value);
      throw Failure(fmt::format("must be real number, not {}", type_name(value)));
    }
    if (conversion.precision > kMaxPrecision) {
      throw Failure(
          fmt::format("precision {} is more than {}", conversion.precision, kMaxPrecision));
    }
    const int precision = conversion.precision < 0 ? 6 : static_cast<int>(conversion.precision);
    std::string text = format_real(*number, conversion.type, precision, conversion.is_alternate);
    return text.starts_with('-') ? text : positive_sign(conversion) + text;
  }

  static std::string positive_sign(const Conversion& conversion) {
    return conversion.has_sign ? "+" : (conversion.has_blank ? " " : "");
  }

  void pad(const Conversion& conversion, std::string text) {
    const std::size_t size = count_characters(text);
    const auto width = static_cast<std::size_t>(conversion.width);
    if (size < width) {
      const std::size_t missing = width - size;
      if (conversion.is_left) {
        text.append(missing, ' ');
      } else if (conversion.has_zeros && conversion.type != 'c') {
        std::size_t prefix = text.find_first_of("-+ ") == 0 ? 1 : 0;
        prefix +=
            conversion.is_alternate && text.find_first_of("xXo", prefix) == prefix + 1 ? 2 : 0;
        text.insert(prefix, missing, '0');
      } else {
        text.insert(0, missing, ' ');
      }
    }
    out_ += text;
  }

  Runtime& runtime_;
  std::string_view format_;
  const Value& arguments_;
  std::size_t position_ = 0;
  std::size_t used_ = 0;
  bool is_mapping_used_ = false;
  std::string out_;
};

}  // namespace

std::string printf_format(Runtime& runtime, std::string_view format, const Value& arguments) {
  std::string text = PrintfFormatter(runtime, format, arguments).run();
  runtime.budget.allocate(text.size());
  return text;
}

}  // namespace stof::render
