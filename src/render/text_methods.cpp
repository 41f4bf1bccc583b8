#include <algorithm>

#include <fmt/format.h>

#include "render/access.hpp"
#include "render/formatting.hpp"
#include "render/iteration.hpp"
#include "render/methods.hpp"
#include "render/operators.hpp"
#include "render/str_format.hpp"
#include "render/text.hpp"
#include "render/text_operations.hpp"

// The methods of strings: args[0] is the string.
namespace stof::render {

namespace {

std::string_view self(const BuiltinCall& call) {
  return call.args[0].text()->bytes;
}

Value none_if_missing(const Value& value) {
  return value.is_missing() ? Value(None{}) : value;
}

Value make_text(BuiltinCall& call, std::string text) {
  call.runtime.budget.allocate(text.size());
  return Value(std::move(text));
}

Value upper(BuiltinCall& call) {
  return make_text(call, to_upper(self(call)));
}
Value lower(BuiltinCall& call) {
  return make_text(call, to_lower(self(call)));
}
Value capitalize_method(BuiltinCall& call) {
  return make_text(call, capitalize(self(call)));
}

Value title(BuiltinCall& call) {
  std::string text(self(call));
  bool is_in_word = false;
  for (char& c : text) {
    c = is_in_word ? to_lower({&c, 1})[0] : to_upper({&c, 1})[0];
    is_in_word = is_letter(c);
  }
  return make_text(call, std::move(text));
}

template <bool from_left, bool from_right>
Value strip(BuiltinCall& call) {
  return make_text(call, strip_characters(self(call), none_if_missing(call.args[1]),
                                          {.from_left = from_left, .from_right = from_right}));
}

Value split(BuiltinCall& call) {
  return make_list(split_text(call.runtime, self(call), none_if_missing(call.args[1]),
                              integer_argument(call.args[2], "maxsplit", -1)));
}
Value rsplit(BuiltinCall& call) {
  return make_list(split_text_from_right(call.runtime, self(call), none_if_missing(call.args[1]),
                                         integer_argument(call.args[2], "maxsplit", -1)));
}

Value splitlines(BuiltinCall& call) {
  std::vector<Value> lines;
  for (const std::string_view line : split_lines(self(call), truth_argument(call.args[1], false))) {
    call.runtime.budget.allocate(line.size() + sizeof(Value));
    lines.emplace_back(line);
  }
  return make_list(std::move(lines));
}

Value join(BuiltinCall& call) {
  std::vector<Value> items = to_vector(call.runtime, call.args[1]);
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (!items[i].is_text()) {
      throw Failure(
          fmt::format("sequence item {}: expected str instance, {} found", i, type_name(items[i])));
    }
  }
  return Value(join_texts(call.runtime, self(call), items));
}

Value replace(BuiltinCall& call) {
  return Value(replace_text(call.runtime, self(call), text_argument(call.args[1], "old"),
                            text_argument(call.args[2], "new"),
                            integer_argument(call.args[3], "count", -1)));
}

Value format(BuiltinCall& call) {
  return Value(str_format(call.runtime, self(call), call.rest));
}

// The part of the text that optional start and end arguments leave, and where it begins.
struct Part {
  std::string_view text;
  std::size_t begin = 0;  // in code points
  bool is_valid = true;   // false where the start lies beyond the text
};

Part part(const BuiltinCall& call) {
  const std::string_view text = self(call);
  const auto size = static_cast<std::int64_t>(count_characters(text));
  const Value start = none_if_missing(call.args[2]);
  const SlicePositions positions =
      slice_positions(start, none_if_missing(call.args[3]), Value(None{}), size);
  const auto first = as_integer(start);
  const std::size_t begin = byte_offset(text, static_cast<std::size_t>(positions.start));
  const std::size_t end =
      byte_offset(text, static_cast<std::size_t>(positions.start + positions.count));
  return {.text = text.substr(begin, end - begin),
          .begin = static_cast<std::size_t>(positions.start),
          .is_valid = !(first && *first > size) && positions.stop >= positions.start};
}

template <bool at_end>
Value has_affix(BuiltinCall& call) {
  const Part range = part(call);
  const auto matches = [&](const Value& affix) {
    const std::string& text = text_argument(affix, at_end ? "suffix" : "prefix");
    return range.is_valid && (at_end ? range.text.ends_with(text) : range.text.starts_with(text));
  };
  if (const Tuple* tuple = call.args[1].tuple()) {
    return Value(std::ranges::any_of(tuple->items, matches));
  }
  return Value(matches(call.args[1]));
}

template <bool at_end>
Value remove_affix(BuiltinCall& call) {
  const std::string_view text = self(call);
  const std::string& affix = text_argument(call.args[1], at_end ? "suffix" : "prefix");
  if (at_end ? !text.ends_with(affix) : !text.starts_with(affix)) {
    return call.args[0];
  }
  return make_text(call, std::string(at_end ? text.substr(0, text.size() - affix.size())
                                            : text.substr(affix.size())));
}

template <bool from_right>
std::int64_t find_position(const BuiltinCall& call) {
  const Part range = part(call);
  const std::string& needle = text_argument(call.args[1], "sub");
  if (from_right) {
    charge_search_from_right(call.runtime, range.text, needle);
  }
  const std::size_t found = from_right ? range.text.rfind(needle) : find_text(range.text, needle);
  if (!range.is_valid || found == std::string_view::npos) {
    return -1;
  }
  return static_cast<std::int64_t>(range.begin + count_characters(range.text.substr(0, found)));
}

template <bool from_right>
Value find(BuiltinCall& call) {
  return Value(find_position<from_right>(call));
}

template <bool from_right>
Value index(BuiltinCall& call) {
  const std::int64_t position = find_position<from_right>(call);
  if (position < 0) {
    throw Failure("substring not found");
  }
  return Value(position);
}

Value count(BuiltinCall& call) {
  const Part range = part(call);
  const std::string& needle = text_argument(call.args[1], "sub");
  if (needle.empty()) {
    return Value(range.is_valid ? count_characters(range.text) + 1 : 0);
  }
  std::int64_t matches = 0;
  for (std::size_t at = find_text(range.text, needle); at != std::string_view::npos;
       at = find_text(range.text, needle, at + needle.size())) {
    ++matches;
  }
  return Value(matches);
}

enum class Side { Left, Right, Center };

template <Side side>
Value justify(BuiltinCall& call) {
  const std::string fill =
      call.args[2].is_missing() ? " " : text_argument(call.args[2], "fillchar");
  if (count_characters(fill) != 1) {
    throw Failure("The fill character must be exactly one character long");
  }
  const std::int64_t width = integer_argument(call.args[1], "width");
  const auto size = static_cast<std::int64_t>(count_characters(self(call)));
  const std::int64_t missing = std::max<std::int64_t>(width - size, 0);
  const std::int64_t left = side == Side::Left    ? 0
                            : side == Side::Right ? missing
                                                  : center_margin(missing, width);
  return Value(padded(call.runtime, self(call), fill, left, missing - left));
}

Value zfill(BuiltinCall& call) {
  const std::string_view text = self(call);
  const auto size = static_cast<std::int64_t>(count_characters(text));
  const std::int64_t missing =
      std::max<std::int64_t>(integer_argument(call.args[1], "width") - size, 0);
  const std::size_t sign = text.starts_with('+') || text.starts_with('-') ? 1 : 0;
  return Value(std::string(text.substr(0, sign)) +
               padded(call.runtime, text.substr(sign), "0", missing, 0));
}

template <bool from_right>
Value partition(BuiltinCall& call) {
  const std::string_view text = self(call);
  const std::string& separator = text_argument(call.args[1], "sep");
  if (separator.empty()) {
    throw Failure("empty separator");
  }
  if (from_right) {
    charge_search_from_right(call.runtime, text, separator);
  }
  const std::size_t at = from_right ? text.rfind(separator) : find_text(text, separator);
  if (at == std::string_view::npos) {
    const Value empty("");
    return from_right ? make_tuple({empty, empty, call.args[0]})
                      : make_tuple({call.args[0], empty, empty});
  }
  return make_tuple(
      {Value(text.substr(0, at)), Value(separator), Value(text.substr(at + separator.size()))});
}

Value expandtabs(BuiltinCall& call) {
  const std::int64_t size = integer_argument(call.args[1], "tabsize", 8);
  std::string text;
  std::int64_t column = 0;
  for (const char c : self(call)) {
    if (c == '\t') {
      const std::int64_t spaces = size > 0 ? size - column % size : 0;
      call.runtime.budget.check_text(text.size() + static_cast<std::size_t>(spaces));
      text.append(static_cast<std::size_t>(spaces), ' ');
      column += spaces;
    } else {
      text += c;
      const bool is_start = (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
      column = c == '\n' || c == '\r' ? 0 : column + (is_start ? 1 : 0);
    }
  }
  return make_text(call, std::move(text));
}

template <bool (*test)(char)>
Value all_characters(BuiltinCall& call) {
  const std::string_view text = self(call);
  return Value(!text.empty() && std::ranges::all_of(text, test));
}

bool is_letter_or_digit(char c) {
  return is_letter(c) || is_digit(c);
}

Value isspace(BuiltinCall& call) {
  return Value(!self(call).empty() && is_blank(self(call)));
}
Value isascii(BuiltinCall& call) {
  return Value(std::ranges::all_of(self(call), [](char c) { return (c & 0x80) == 0; }));
}
Value isupper(BuiltinCall& call) {
  return Value(is_upper(self(call)));
}
Value islower(BuiltinCall& call) {
  return Value(is_lower(self(call)));
}

Value istitle(BuiltinCall& call) {
  bool is_in_word = false;
  bool has_words = false;
  for (const char c : self(call)) {
    if (is_letter(c)) {
      if ((c < 'a') == is_in_word) {
        return Value(false);
      }
      has_words = true;
    }
    is_in_word = is_letter(c);
  }
  return Value(has_words);
}

constexpr Builtin kTextMethods[] = {
    {"capitalize", "self /", capitalize_method},
    {"center", "self width fillchar? /", justify<Side::Center>},
    {"count", "self sub start? end? /", count},
    {"endswith", "self suffix start? end? /", has_affix<true>},
    {"expandtabs", "self / tabsize?", expandtabs},
    {"find", "self sub start? end? /", find<false>},
    {"format", "self / *", format},
    {"index", "self sub start? end? /", index<false>},
    {"isalnum", "self /", all_characters<is_letter_or_digit>},
    {"isalpha", "self /", all_characters<is_letter>},
    {"isascii", "self /", isascii},
    {"isdecimal", "self /", all_characters<is_digit>},
    {"isdigit", "self /", all_characters<is_digit>},
    {"islower", "self /", islower},
    {"isnumeric", "self /", all_characters<is_digit>},
    {"isspace", "self /", isspace},
    {"istitle", "self /", istitle},
    {"isupper", "self /", isupper},
    {"join", "self iterable /", join},
    {"ljust", "self width fillchar? /", justify<Side::Left>},
    {"lower", "self /", lower},
    {"lstrip", "self chars? /", strip<true, false>},
    {"partition", "self sep /", partition<false>},
    {"removeprefix", "self prefix /", remove_affix<false>},
    {"removesuffix", "self suffix /", remove_affix<true>},
    {"replace", "self old new count? /", replace},
    {"rfind", "self sub start? end? /", find<true>},
    {"rindex", "self sub start? end? /", index<true>},
    {"rjust", "self width fillchar? /", justify<Side::Right>},
    {"rpartition", "self sep /", partition<true>},
    {"rsplit", "self / sep? maxsplit?", rsplit},
    {"rstrip", "self chars? /", strip<false, true>},
    {"split", "self / sep? maxsplit?", split},
    {"splitlines", "self / keepends?", splitlines},
    {"startswith", "self prefix start? end? /", has_affix<false>},
    {"strip", "self chars? /", strip<true, true>},
    {"title", "self /", title},
    {"upper", "self /", upper},
    {"zfill", "self width /", zfill},
};

}  // namespace

std::span<const Builtin> text_methods() {
  return kTextMethods;
}

}  // namespace stof::render
