#include "render/str_format.hpp"

#include <optional>

#include <fmt/format.h>

#include "render/access.hpp"
#include "render/formatting.hpp"
#include "render/number_format.hpp"
#include "render/operators.hpp"
#include "render/text.hpp"

namespace stof::render {

namespace {

constexpr int kMaxFieldDepth = 2;  // a field within the specification of another

std::optional<std::int64_t> to_index(std::string_view text) {
  if (text.empty() || !std::ranges::all_of(text, is_digit)) {
    return std::nullopt;
  }
  const ParsedInteger parsed = parse_integer(text, 10);
  if (parsed.status != ParsedInteger::Status::Good) {
    throw Failure("too many decimal digits in format string");
  }
  return parsed.number;
}

class StrFormatter {
 public:
  StrFormatter(Runtime& runtime, const Arguments& arguments)
      : runtime_(runtime), arguments_(arguments) {}

  std::string expand(std::string_view format, int depth) {
    if (depth > kMaxFieldDepth) {
      throw Failure("max string recursion exceeded");
    }
    std::string out;
    while (!format.empty()) {
      const std::size_t brace = std::min(format.find_first_of("{}"), format.size());
      out += format.substr(0, brace);
      format.remove_prefix(brace);
      if (format.size() > 1 && format[0] == format[1]) {
        out += format[0];
        format.remove_prefix(2);
      } else if (!format.empty()) {
        format = expand_field(format, out, depth);
      }
      runtime_.budget.check_text(out.size());
    }
    return out;
  }

 private:
  // Appends the field that the text starts with and gives what follows it.
  std::string_view expand_field(std::string_view format, std::string& out, int depth) {
    if (format[0] == '}') {
      throw Failure("Single '}' encountered in format string");
    }
    const std::size_t end = field_end(format);
    std::string_view field = format.substr(1, end - 1);
    const std::size_t name_end = name_size(field);
    Value value = look_up(field.substr(0, name_end));
    field.remove_prefix(name_end);
    if (field.starts_with('!')) {
      value = convert(value, field.size() > 1 ? field[1] : ' ');
      field.remove_prefix(std::min<std::size_t>(2, field.size()));
      if (!field.empty() && field.front() != ':') {
        throw Failure("expected ':' after conversion specifier");
      }
    }
    const std::string specification =
        field.empty() ? std::string() : expand(field.substr(1), depth + 1);
    out += format_value(runtime_, value, specification);
    return format.substr(end + 1);
  }

  static std::size_t field_end(std::string_view format) {
    int open = 0;
    for (std::size_t i = 0; i < format.size(); ++i) {
      open += format[i] == '{' ? 1 : (format[i] == '}' ? -1 : 0);
      if (open == 0) {
        return i;
      }
    }
    throw Failure("expected '}' before end of string");
  }

  static std::size_t name_size(std::string_view field) {
    bool is_in_brackets = false;
    for (std::size_t i = 0; i < field.size(); ++i) {
      is_in_brackets = field[i] == '[' || (is_in_brackets && field[i] != ']');
      if (!is_in_brackets && (field[i] == ':' || field[i] == '!')) {
        return i;
      }
    }
    return field.size();
  }

  Value look_up(std::string_view path) {
    const std::size_t first_end = std::min(path.find_first_of(".["), path.size());
    Value value = argument(path.substr(0, first_end));
    path.remove_prefix(first_end);
    while (!path.empty()) {
      const bool is_attribute = path.front() == '.';
      const std::size_t end = is_attribute ? std::min(path.find_first_of(".[", 1), path.size())
                                           : std::min(path.find(']'), path.size());
      const std::string_view name = path.substr(1, end - 1);
      if (name.empty() || (!is_attribute && end == path.size())) {
        throw Failure("Empty attribute in format string");
      }
      value = is_attribute ? attribute(value, name) : item(value, name);
      path.remove_prefix(end + (is_attribute ? 0 : 1));
      if (!path.empty() && path.front() != '.' && path.front() != '[') {
        throw Failure("Only '.' or '[' may follow ']' in format field specifier");
      }
    }
    return value;
  }

  Value argument(std::string_view name) {
    auto index = to_index(name);
    if (name.empty() || index) {
      if (is_automatic_.value_or(name.empty()) != name.empty()) {
        throw Failure("cannot switch between automatic and manual field numbering");
      }
      is_automatic_ = name.empty();
      const auto position = static_cast<std::size_t>(index ? *index : next_index_++);
      if (position >= arguments_.positional.size()) {
        throw Failure("Replacement index out of range for positional args tuple");
      }
      return arguments_.positional[position];
    }
    for (const auto& [key, value] : arguments_.named) {
      if (key == name) {
        return value;
      }
    }
    throw Failure(fmt::format("format: no argument named {}", quote(name)));
  }

  Value attribute(const Value& value, std::string_view name) {
    Value found = find_attribute(runtime_, value, name);
    if (found.is_missing()) {
      throw Failure(fmt::format("'{}' object has no attribute {}", type_name(value), quote(name)));
    }
    return found;
  }

  Value item(const Value& value, std::string_view name) {
    const auto index = to_index(name);
    Value found = get_item(runtime_, value, index ? Value(*index) : Value(name));
    if (found.undefined() != nullptr) {
      fail_undefined(*found.undefined());
    }
    return found;
  }

  static Value convert(const Value& value, char conversion) {
    switch (conversion) {
      case 's':
        return to_text(value);
      case 'r':
        return Value(repr(value));
      case 'a':
        return Value(value.is_text() ? quote(value.text()->bytes, true) : repr(value));
      default:
        throw Failure(fmt::format("Unknown conversion specifier '{}'", conversion));
    }
  }

  Runtime& runtime_;
  const Arguments& arguments_;
  std::optional<bool> is_automatic_;
  std::int64_t next_index_ = 0;
};

struct Specification {
  std::string fill = " ";
  char align = '\0';
  char sign = '-';
  bool is_alternate = false;
  std::size_t width = 0;
  char grouping = '\0';
  int precision = -1;
  char type = '\0';
};

bool is_align(char c) {
  return c == '<' || c == '>' || c == '^' || c == '=';
}

std::int64_t read_number(std::string_view& text) {
  const std::size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto number = to_index(text.substr(0, end));
  text.remove_prefix(end);
  return number.value_or(-1);
}

bool skip(std::string_view& text, char c) {
  const bool is_there = text.starts_with(c);
  text.remove_prefix(is_there ? 1 : 0);
  return is_there;
}

void read_alignment(std::string_view& text, Specification& spec) {
  const std::size_t fill_size = text.empty() ? 0 : decode(text, 0).size;
  if (text.size() > fill_size && is_align(text[fill_size])) {
    spec.fill = text.substr(0, fill_size);
    spec.align = text[fill_size];
    text.remove_prefix(fill_size + 1);
  } else if (!text.empty() && is_align(text[0])) {
    spec.align = text[0];
    text.remove_prefix(1);
  }
}

Specification parse_specification(Runtime& runtime, std::string_view text) {
  Specification spec;
  read_alignment(text, spec);
  if (!text.empty() && (text[0] == '+' || text[0] == '-' || text[0] == ' ')) {
    spec.sign = text[0];
    text.remove_prefix(1);
  }
  spec.is_alternate = skip(text, '#');
  if (skip(text, '0')) {
    spec.fill = spec.align == '\0' ? "0" : spec.fill;
    spec.align = spec.align == '\0' ? '=' : spec.align;
  }
  const std::int64_t width = std::max<std::int64_t>(read_number(text), 0);
  runtime.budget.check_text(static_cast<std::size_t>(width));
  spec.width = static_cast<std::size_t>(width);
  for (const char mark : {',', '_'}) {
    spec.grouping = skip(text, mark) ? mark : spec.grouping;
  }
  if (skip(text, '.')) {
    const std::int64_t precision = read_number(text);
    if (precision < 0 || precision > kMaxPrecision) {
      throw Failure("Format specifier missing precision, or it is too big");
    }
    spec.precision = static_cast<int>(precision);
  }
  if (!text.empty()) {
    spec.type = text[0];
    text.remove_prefix(1);
  }
  if (!text.empty()) {
    throw Failure("Invalid format specifier");
  }
  return spec;
}

std::string pad(const Specification& spec, std::string_view prefix, std::string_view body,
                char default_align) {
  const std::size_t size = count_characters(prefix) + count_characters(body);
  const std::size_t missing = size < spec.width ? spec.width - size : 0;
  const char align = spec.align == '\0' ? default_align : spec.align;
  const std::size_t left =
      align == '<' || align == '=' ? 0 : (align == '^' ? missing / 2 : missing);
  const std::size_t inside = align == '=' ? missing : 0;
  std::string text;
  const auto fill = [&](std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      text += spec.fill;
    }
  };
  fill(left);
  text += prefix;
  fill(inside);
  text += body;
  fill(missing - left - inside);
  return text;
}

// Digits in groups; leading zeros of `min_width` count as digits, as Python does for 0-padding.
std::string group(std::string digits, char mark, std::size_t every, std::size_t min_width) {
  std::string rest;
  const std::size_t point = digits.find_first_not_of("0123456789abcdefABCDEF");
  if (point != std::string::npos) {
    rest = digits.substr(point);
    digits.resize(point);
  }
  const auto grouped_size = [every](std::size_t count) { return count + (count - 1) / every; };
  while (grouped_size(digits.size()) + rest.size() < min_width) {
    digits.insert(0, 1, '0');
  }
  for (std::size_t i = digits.size(); i > every;) {
    i -= every;
    digits.insert(i, 1, mark);
  }
  return digits + rest;
}

[[noreturn]] void fail_type(const Specification& spec, const Value& value) {
  throw Failure(
      fmt::format("Unknown format code '{}' for object of type '{}'", spec.type, type_name(value)));
}

std::string sign_of(const Specification& spec, bool is_negative) {
  return is_negative ? "-" : (spec.sign == '-' ? "" : std::string(1, spec.sign));
}

std::size_t zero_width(const Specification& spec, std::size_t prefix_size) {
  const bool has_zeros = spec.fill == "0" && (spec.align == '=' || spec.align == '\0');
  return has_zeros && spec.width > prefix_size ? spec.width - prefix_size : 0;
}

std::string format_integer(const Specification& spec, const Value& value, std::int64_t number) {
  if (spec.precision >= 0) {
    throw Failure("Precision not allowed in integer format specifier");
  }
  if (spec.type == 'c') {
    if (number < 0 || number > 0x10FFFF || (number >= 0xD800 && number < 0xE000)) {
      throw Failure("%c arg is no character");
    }
    return pad(spec, "", encode(static_cast<char32_t>(number)), '<');
  }
  const bool is_hex = (spec.type | 0x20) == 'x';
  const int base = is_hex ? 16 : (spec.type == 'o' ? 8 : (spec.type == 'b' ? 2 : 10));
  if (base == 10 && spec.type != 'd' && spec.type != '\0' && spec.type != 'n') {
    fail_type(spec, value);
  }
  if (spec.grouping == ',' && base != 10) {
    throw Failure(fmt::format("Cannot specify ',' with '{}'.", spec.type));
  }
  std::string prefix = sign_of(spec, number < 0);
  if (spec.is_alternate && base != 10) {
    prefix += std::string("0") + spec.type;
  }
  std::string digits = format_digits(magnitude_of(number), base, spec.type == 'X');
  if (spec.grouping != '\0') {
    digits = group(std::move(digits), spec.grouping, base == 10 ? 3 : 4,
                   zero_width(spec, prefix.size()));
  }
  return pad(spec, prefix, digits, '>');
}

// As %g, but with a digit after the point, and scientific from one digit earlier on.
std::string format_general(double number, int precision) {
  std::string scientific = format_real(number, 'e', precision - 1, false);
  const std::size_t e = scientific.find('e');
  if (e == std::string::npos) {
    return scientific;
  }
  const int exponent = std::stoi(scientific.substr(e + 1));
  if (exponent >= -4 && exponent < precision - 1) {
    std::string text = format_real(number, 'g', precision, false);
    return text.find('.') == std::string::npos ? text + ".0" : text;
  }
  const std::size_t point = scientific.find('.');
  if (point < e) {
    const std::size_t last = scientific.find_last_not_of('0', e - 1);
    const std::size_t kept = last == point ? point : last + 1;
    scientific.erase(kept, e - kept);
  }
  return scientific;
}

std::string format_float(const Specification& spec, const Value& value, double number) {
  std::string text;
  if (spec.type == '\0' && spec.precision < 0) {
    text = format_real(number);
  } else if (spec.type == '\0') {
    text = format_general(number, std::max(spec.precision, 1));
  } else if (spec.type == '%') {
    text =
        format_real(number * 100, 'f', spec.precision < 0 ? 6 : spec.precision, spec.is_alternate) +
        "%";
  } else if (std::string_view("eEfFgGn").find(spec.type) != std::string_view::npos) {
    text = format_real(number, spec.type == 'n' ? 'g' : spec.type,
                       spec.precision < 0 ? 6 : spec.precision, spec.is_alternate);
  } else {
    fail_type(spec, value);
  }
  const bool is_negative = text.starts_with('-');
  text.erase(0, is_negative ? 1 : 0);
  const std::string prefix = sign_of(spec, is_negative);
  if (spec.grouping != '\0' && is_digit(text.front())) {
    text = group(std::move(text), spec.grouping, 3, zero_width(spec, prefix.size()));
  }
  return pad(spec, prefix, text, '>');
}

std::string format_text(const Specification& spec, const Value& value, std::string text) {
  if ((spec.type != '\0' && spec.type != 's') || spec.align == '=' || spec.grouping != '\0' ||
      spec.sign != '-' || spec.is_alternate) {
    fail_type(spec, value);
  }
  if (spec.precision >= 0) {
    text.resize(byte_offset(text, static_cast<std::size_t>(spec.precision)));
  }
  return pad(spec, "", text, '<');
}

}  // namespace

std::string format_value(Runtime& runtime, const Value& value, std::string_view specification) {
  if (specification.empty()) {
    return to_string(value);
  }
  if (const Undefined* undefined = value.undefined()) {
    fail_undefined(*undefined);
  }
  const Specification spec = parse_specification(runtime, specification);
  const bool wants_real =
      spec.type != '\0' && std::string_view("eEfFgG%").find(spec.type) != std::string_view::npos;
  if (const auto integer = as_integer(value); integer && !wants_real) {
    return format_integer(spec, value, *integer);
  }
  if (const auto real = as_real(value)) {
    return format_float(spec, value, *real);
  }
  if (!value.is_text()) {
    throw Failure(fmt::format("unsupported format string passed to {}", type_name(value)));
  }
  return format_text(spec, value, value.text()->bytes);
}

std::string str_format(Runtime& runtime, std::string_view format, const Arguments& arguments) {
  std::string text = StrFormatter(runtime, arguments).expand(format, 0);
  runtime.budget.allocate(text.size());
  return text;
}

}  // namespace stof::render
