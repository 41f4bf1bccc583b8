#include "render/number_format.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "render/text.hpp"

namespace stof::render {

namespace {

std::string to_chars(double number, std::chars_format format, int precision) {
  std::string buffer(static_cast<std::size_t>(precision) + 400, '\0');
  const auto written =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), number, format, precision);
  buffer.resize(static_cast<std::size_t>(written.ptr - buffer.data()));
  return buffer;
}

// %g with #: keeps the zeros that %g drops, so it is built from the form that %g would choose.
std::string general_with_zeros(double number, int precision) {
  const int digits = std::max(precision, 1);
  std::string scientific = to_chars(number, std::chars_format::scientific, digits - 1);
  const int exponent = std::stoi(scientific.substr(scientific.find('e') + 1));
  if (exponent < -4 || exponent >= digits) {
    return scientific;
  }
  return to_chars(number, std::chars_format::fixed, digits - 1 - exponent);
}

void add_point(std::string& text) {
  if (text.find('.') == std::string::npos) {
    text.insert(std::min(text.find('e'), text.size()), 1, '.');
  }
}

// Removes single underscores between digits; false for any other underscore.
bool remove_underscores(std::string& digits) {
  if (digits.empty() || digits.front() == '_' || digits.back() == '_' ||
      digits.find("__") != std::string::npos) {
    return false;
  }
  std::erase(digits, '_');
  return true;
}

struct Prefixed {
  std::string digits;
  int base = 10;
};

// Takes 0x, 0o and 0b off, where the base allows them.
Prefixed split_prefix(std::string digits, int base) {
  const char letter =
      digits.size() > 1 && digits[0] == '0' ? static_cast<char>(digits[1] | 0x20) : ' ';
  const int named = letter == 'x' ? 16 : (letter == 'o' ? 8 : (letter == 'b' ? 2 : 0));
  if (named != 0 && (base == 0 || base == named)) {
    digits.erase(0, 2);
    if (digits.starts_with('_')) {
      digits.erase(0, 1);
    }
    return {.digits = std::move(digits), .base = named};
  }
  return {.digits = std::move(digits), .base = base == 0 ? 10 : base};
}

bool is_real_number(std::string_view text) {
  const auto skip_digits = [&text] {
    const std::size_t before = text.size();
    while (!text.empty() && is_digit(text.front())) {
      text.remove_prefix(1);
    }
    return before != text.size();
  };
  bool has_digits = skip_digits();
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    has_digits = skip_digits() || has_digits;
  }
  if (!has_digits || text.empty()) {
    return has_digits;
  }
  if (text.front() != 'e' && text.front() != 'E') {
    return false;
  }
  text.remove_prefix(1);
  if (text.starts_with('+') || text.starts_with('-')) {
    text.remove_prefix(1);
  }
  return skip_digits() && text.empty();
}

bool underscores_between_digits(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '_' &&
        (i == 0 || i + 1 == text.size() || !is_digit(text[i - 1]) || !is_digit(text[i + 1]))) {
      return false;
    }
  }
  return true;
}

double huge_or_zero(std::string_view digits) {
  // Out of range: too large unless the exponent is negative or nothing but zeros leads the point.
  const std::size_t e = digits.find_first_of("eE");
  const bool is_tiny = e != std::string_view::npos
                           ? digits.substr(e + 1).starts_with('-')
                           : digits.starts_with('0') || digits.starts_with('.');
  return is_tiny ? 0.0 : std::numeric_limits<double>::infinity();
}

}  // namespace

std::string format_real(double number, char form, int precision, bool keeps_point) {
  const bool is_upper = form >= 'A' && form <= 'Z';
  std::string text;
  if (!std::isfinite(number)) {
    text = std::isnan(number) ? "nan" : (number > 0 ? "inf" : "-inf");
  } else {
    switch (form | 0x20) {
      case 'e':
        text = to_chars(number, std::chars_format::scientific, precision);
        break;
      case 'f':
        text = to_chars(number, std::chars_format::fixed, precision);
        break;
      default:
        text = keeps_point ? general_with_zeros(number, precision)
                           : to_chars(number, std::chars_format::general, precision);
        break;
    }
    if (keeps_point) {
      add_point(text);
    }
  }
  return is_upper ? to_upper(text) : text;
}

std::string format_digits(std::uint64_t magnitude, int base, bool is_upper) {
  std::string buffer(64, '\0');
  const auto written = std::to_chars(buffer.data(), buffer.data() + buffer.size(), magnitude, base);
  buffer.resize(static_cast<std::size_t>(written.ptr - buffer.data()));
  return is_upper ? to_upper(buffer) : buffer;
}

std::uint64_t magnitude_of(std::int64_t number) {
  const auto bits = static_cast<std::uint64_t>(number);
  return number < 0 ? 0 - bits : bits;
}

double round_real(double number, std::int64_t digits) {
  if (!std::isfinite(number) || digits > 340 || number == 0) {
    return number;
  }
  if (digits < -310) {
    return std::copysign(0.0, number);
  }
  std::string text;
  if (digits >= 0) {
    text = to_chars(number, std::chars_format::fixed, static_cast<int>(digits));
  } else {
    // Written exactly and scaled down, so that one rounding decides; then scaled up again as text.
    const std::string exact = to_chars(std::fabs(number), std::chars_format::fixed, 1080);
    const std::size_t point = exact.find('.');
    const auto dropped = static_cast<std::size_t>(-digits);
    std::string whole = exact.substr(0, point);
    whole.insert(0, dropped + 1 > whole.size() ? dropped + 1 - whole.size() : 0, '0');
    const std::size_t kept = whole.size() - dropped;
    const std::string rest = whole.substr(kept) + exact.substr(point + 1);
    const bool is_half = rest.front() == '5' && rest.find_first_not_of('0', 1) == std::string::npos;
    std::string result = whole.substr(0, kept);
    if (rest.front() >= '5' && (!is_half || (result.back() - '0') % 2 == 1)) {
      std::size_t i = result.size();
      while (i > 0 && result[i - 1] == '9') {
        result[--i] = '0';
      }
      i > 0 ? static_cast<void>(++result[i - 1]) : static_cast<void>(result.insert(0, 1, '1'));
    }
    text = (std::signbit(number) ? "-" : "") + result + std::string(dropped, '0');
  }
  double rounded = 0;
  std::from_chars(text.data(), text.data() + text.size(), rounded);
  return rounded;
}

ParsedInteger parse_integer(std::string_view text, std::int64_t base) {
  using enum ParsedInteger::Status;
  text = strip_left(strip_right(text));
  if (base != 0 && (base < 2 || base > 36)) {
    return {};
  }
  const bool is_negative = text.starts_with('-');
  if (is_negative || text.starts_with('+')) {
    text.remove_prefix(1);
  }
  auto [digits, radix] = split_prefix(std::string(text), static_cast<int>(base));
  if (!remove_underscores(digits)) {
    return {};
  }
  const bool has_leading_zero = base == 0 && radix == 10 && digits.front() == '0' &&
                                digits.find_first_not_of('0') != std::string::npos;
  if (has_leading_zero ||
      std::ranges::any_of(digits, [radix = radix](char c) { return digit_value(c) >= radix; })) {
    return {};
  }
  const std::string literal = (is_negative ? "-" : "") + digits;
  ParsedInteger parsed{.status = Good, .number = 0};
  const auto read =
      std::from_chars(literal.data(), literal.data() + literal.size(), parsed.number, radix);
  parsed.status = read.ec == std::errc::result_out_of_range ? Overflow : Good;
  return parsed;
}

ParsedReal parse_real(std::string_view text) {
  text = strip_left(strip_right(text));
  const bool is_negative = text.starts_with('-');
  if (is_negative || text.starts_with('+')) {
    text.remove_prefix(1);
  }
  const double sign = is_negative ? -1.0 : 1.0;
  const std::string lower = to_lower(text);
  if (lower == "inf" || lower == "infinity") {
    return {.is_good = true, .number = sign * std::numeric_limits<double>::infinity()};
  }
  if (lower == "nan") {
    return {.is_good = true, .number = std::numeric_limits<double>::quiet_NaN()};
  }
  if (!underscores_between_digits(text)) {
    return {};
  }
  std::string digits(text);
  std::erase(digits, '_');
  if (!is_real_number(digits)) {
    return {};
  }
  double number = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (read.ec == std::errc::result_out_of_range) {
    number = huge_or_zero(digits);
  }
  return {.is_good = true, .number = sign * number};
}

}  // namespace stof::render
