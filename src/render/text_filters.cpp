#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "render/builtin.hpp"
#include "render/formatting.hpp"
#include "render/iteration.hpp"
#include "render/json_text.hpp"
#include "render/line_runs.hpp"
#include "render/operators.hpp"
#include "render/printf_format.hpp"
#include "render/selection.hpp"
#include "render/text.hpp"
#include "render/text_operations.hpp"

// Filters that give text: args[0] is the value filtered.
namespace stof::render {

namespace {

std::string input(const BuiltinCall& call) {
  return to_string(call.args[0]);
}

Value make_text(BuiltinCall& call, std::string text) {
  call.runtime.budget.check_text(text.size());
  call.runtime.budget.allocate(text.size());
  return Value(std::move(text));
}

Value upper(BuiltinCall& call) {
  return make_text(call, to_upper(input(call)));
}
Value lower(BuiltinCall& call) {
  return make_text(call, to_lower(input(call)));
}
Value capitalize_filter(BuiltinCall& call) {
  return make_text(call, capitalize(input(call)));
}
Value string(BuiltinCall& call) {
  return to_text(call.args[0]);
}

bool begins_word_after(char32_t code) {
  return is_space(code) || code == '-' || code == '(' || code == '{' || code == '[' || code == '<';
}

Value title(BuiltinCall& call) {
  std::string text = input(call);
  bool is_first = true;
  for (std::size_t i = 0; i < text.size();) {
    const Character character = decode(text, i);
    text[i] = is_first ? to_upper({&text[i], 1})[0] : to_lower({&text[i], 1})[0];
    is_first = begins_word_after(character.code);
    i += character.size;
  }
  return make_text(call, std::move(text));
}

Value center(BuiltinCall& call) {
  const std::string text = input(call);
  const std::int64_t width = integer_argument(call.args[1], "width", 80);
  const std::int64_t missing =
      std::max<std::int64_t>(width - static_cast<std::int64_t>(count_characters(text)), 0);
  const std::int64_t left = center_margin(missing, width);
  return Value(padded(call.runtime, text, " ", left, missing - left));
}

Value trim(BuiltinCall& call) {
  const Value text = to_text(call.args[0]);
  const Value characters = call.args[1].is_missing() ? Value(None{}) : call.args[1];
  const std::string& bytes = text.text()->bytes;
  std::string trimmed = strip_characters(bytes, characters, {});
  call.runtime.budget.allocate(trimmed.size());
  // What is left of a rendered text keeps its lines; those that were dropped in front are counted.
  const std::size_t front =
      bytes.size() -
      strip_characters(bytes, characters, {.from_left = true, .from_right = false}).size();
  const auto dropped =
      std::count(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(front), '\n');
  return Value(Text{.bytes = std::move(trimmed),
                    .lines = without_first_lines(text.text()->lines, static_cast<int>(dropped))});
}

Value replace(BuiltinCall& call) {
  const Value& count = call.args[3];
  return Value(
      replace_text(call.runtime, input(call), to_string(call.args[1]), to_string(call.args[2]),
                   count.is_missing() || count.is_none() ? -1 : integer_argument(count, "count")));
}

Value format(BuiltinCall& call) {
  if (!call.rest.positional.empty() && !call.rest.named.empty()) {
    throw Failure("can't handle positional and keyword arguments at the same time");
  }
  if (call.rest.named.empty()) {
    return Value(
        printf_format(call.runtime, input(call), make_tuple(std::move(call.rest.positional))));
  }
  auto named = std::make_shared<Dict>();
  for (auto& [name, value] : call.rest.named) {
    named->set(name, std::move(value));
  }
  return Value(printf_format(call.runtime, input(call), Value(std::move(named))));
}

std::string indentation(const BuiltinCall& call) {
  if (call.args[1].is_text()) {
    return call.args[1].text()->bytes;
  }
  const std::int64_t width = integer_argument(call.args[1], "width", 4);
  call.runtime.budget.check_text(static_cast<std::size_t>(std::max<std::int64_t>(width, 0)));
  return std::string(static_cast<std::size_t>(std::max<std::int64_t>(width, 0)), ' ');
}

Value indent(BuiltinCall& call) {
  const std::string indent = indentation(call);
  const bool indents_first = truth_argument(call.args[2], false);
  const bool indents_blank = truth_argument(call.args[3], false);
  const std::string text = text_argument(call.args[0], "the value to indent") + '\n';
  const std::vector<std::string_view> lines = split_lines(text);
  std::string result = indents_first ? indent : "";
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) {
      result += '\n';
      result += indents_blank || !lines[i].empty() ? indent : "";
    }
    result += lines[i];
    call.runtime.budget.check_text(result.size());
  }
  call.runtime.budget.allocate(result.size());
  // Each line stays a line, unless the text holds line ends other than '\n'.
  const bool has_same_lines = std::count(text.begin(), text.end(), '\n') == std::ssize(lines);
  return Value(Text{.bytes = std::move(result),
                    .lines = has_same_lines ? call.args[0].text()->lines : nullptr});
}

Value truncate(BuiltinCall& call) {
  const std::int64_t limit = integer_argument(call.args[1], "length", 255);
  const std::string end = call.args[3].is_missing() ? "..." : text_argument(call.args[3], "end");
  const std::int64_t leeway =
      call.args[4].is_none() ? 5 : integer_argument(call.args[4], "leeway", 5);
  const auto end_size = static_cast<std::int64_t>(count_characters(end));
  if (limit < end_size) {
    throw Failure(fmt::format("expected length >= {}, got {}", end_size, limit));
  }
  if (leeway < 0) {
    throw Failure(fmt::format("expected leeway >= 0, got {}", leeway));
  }
  if (require_length(call.args[0]) - leeway <= limit) {
    return call.args[0];
  }
  const std::string& text = text_argument(call.args[0], "the value to truncate");
  std::string kept = text.substr(0, byte_offset(text, static_cast<std::size_t>(limit - end_size)));
  if (!truth_argument(call.args[2], false)) {
    kept.resize(std::min(kept.rfind(' '), kept.size()));
  }
  return make_text(call, kept + end);
}

Value wordcount(BuiltinCall& call) {
  const std::string text = input(call);
  std::int64_t words = 0;
  bool is_in_word = false;
  for (const char c : text) {
    const bool is_word = is_letter(c) || is_digit(c) || c == '_';
    words += is_word && !is_in_word ? 1 : 0;
    is_in_word = is_word;
  }
  return Value(words);
}

Value join(BuiltinCall& call) {
  const std::string separator = call.args[1].is_missing() ? "" : to_string(call.args[1]);
  const AttributeGetter pick(call.args[2]);
  std::vector<Value> texts;
  const std::shared_ptr<Iterator> items = iterate(call.args[0]);
  for (Value item = items->next(call.runtime); !item.is_missing();
       item = items->next(call.runtime)) {
    call.runtime.budget.allocate(sizeof(Value));
    texts.push_back(to_text(pick(call.runtime, item)));
    call.runtime.budget.allocate(item.is_text() ? 0 : texts.back().text()->bytes.size());
  }
  return Value(join_texts(call.runtime, separator, texts));
}

Value tojson(BuiltinCall& call) {
  return make_text(call,
                   to_json(call.args[0], call.args[1].is_missing() ? Value(None{}) : call.args[1]));
}

constexpr Builtin kTextFilters[] = {
    {"capitalize", "s", capitalize_filter},
    {"center", "value width?", center},
    {"format", "value / *", format},
    {"indent", "s width? first? blank?", indent},
    {"join", "value d? attribute?", join},
    {"lower", "s", lower},
    {"replace", "s old new count?", replace},
    {"string", "s", string},
    {"title", "s", title},
    {"tojson", "value indent?", tojson},
    {"trim", "value chars?", trim},
    {"truncate", "s length? killwords? end? leeway?", truncate},
    {"upper", "s", upper},
    {"wordcount", "s", wordcount},
};

}  // namespace

std::span<const Builtin> text_filters() {
  return kTextFilters;
}

}  // namespace stof::render
