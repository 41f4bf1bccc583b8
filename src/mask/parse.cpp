#include "mask/parse.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "expr/node.hpp"
#include "mask/node.hpp"
#include "stof/error.hpp"

namespace stof::mask {

namespace {

using Arguments = std::span<const double>;  // whole numbers but for `fraction`

std::int64_t whole(double value) {
  return static_cast<std::int64_t>(value);
}

template <typename Integer>
std::vector<Integer> wholes(Arguments a) {
  return {a.begin(), a.end()};
}

struct ReadyMade {
  std::string_view name;
  std::string_view parameters;  // separated by ", "; "…" behind the last: as many as one likes
  Mask (*make)(Arguments);

  std::size_t least() const {
    return parameters.empty() ? 0
                              : static_cast<std::size_t>(std::ranges::count(parameters, ',')) + 1;
  }
  bool takes_any_number() const { return parameters.ends_with("…"); }
};

constexpr std::array kReadyMade = {
    ReadyMade{"causal", "", [](Arguments) { return causal(); }},
    ReadyMade{"causal_bottom_right", "", [](Arguments) { return causal_bottom_right(); }},
    ReadyMade{"sliding_window", "left, right",
              [](Arguments a) { return sliding_window(whole(a[0]), whole(a[1])); }},
    ReadyMade{"dilated", "left, right, dilation",
              [](Arguments a) { return dilated(whole(a[0]), whole(a[1]), whole(a[2])); }},
    ReadyMade{"strided", "stride", [](Arguments a) { return strided(whole(a[0])); }},
    ReadyMade{"global_tokens", "count", [](Arguments a) { return global_tokens(whole(a[0])); }},
    ReadyMade{"random_tokens", "fraction, seed",
              [](Arguments a) { return random_tokens(a[0], whole(a[1])); }},
    ReadyMade{"random_blocks", "block_size, per_row, seed",
              [](Arguments a) { return random_blocks(whole(a[0]), whole(a[1]), whole(a[2])); }},
    ReadyMade{"longformer", "window, globals",
              [](Arguments a) { return longformer(whole(a[0]), whole(a[1])); }},
    ReadyMade{"bigbird", "block_size, window_blocks, global_blocks, random_per_row, seed",
              [](Arguments a) {
                return bigbird(whole(a[0]), whole(a[1]), whole(a[2]), whole(a[3]), whole(a[4]));
              }},
    ReadyMade{"prefix", "length", [](Arguments a) { return prefix(whole(a[0])); }},
    ReadyMade{"documents", "starts…",
              [](Arguments a) { return documents(wholes<std::int32_t>(a)); }},
    ReadyMade{"share_question", "starts…",
              [](Arguments a) { return share_question(wholes<std::int32_t>(a)); }},
    ReadyMade{"block_causal", "block_size", [](Arguments a) { return block_causal(whole(a[0])); }},
    ReadyMade{"window_2d", "width, radius",
              [](Arguments a) { return window_2d(whole(a[0]), whole(a[1])); }},
    ReadyMade{"key_padding", "lengths…",
              [](Arguments a) { return key_padding(wholes<std::int64_t>(a)); }},
};

constexpr std::string_view kFraction = "fraction";

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.';
}

// The text with every ready-made mask written out, and the tables that these bring along.
class WritingOut {
 public:
  explicit WritingOut(std::string_view text) : text_(text), names_(mask_names()) {}

  Mask parse() && {
    std::string expression;
    bool has_ready_made = false;
    while (position_ < text_.size()) {
      const std::size_t begin = position_;
      while (position_ < text_.size() && is_name_character(text_[position_])) {
        ++position_;
      }
      const std::string_view word = text_.substr(begin, position_ - begin);
      const auto* found = std::ranges::find(kReadyMade, word, &ReadyMade::name);
      if (found != kReadyMade.end()) {
        has_ready_made = true;
        expression += '(' + write_out(*found) + ')';
      } else {
        expression += word.empty() ? text_.substr(position_++, 1) : word;
      }
    }
    try {
      return Mask(parse_expression(expression, names_));
    } catch (const ExpressionError& error) {
      const std::string message = error.what() + hint(error.what());
      if (!has_ready_made) {
        throw ExpressionError(error.column(), message);
      }
      throw GraphError(fmt::format("{}; written out it is \"{}\"", message, expression));
    }
  }

 private:
  // The ready-made masks, where a name is meant that is none.
  static std::string hint(std::string_view message) {
    const bool is_name = message.find(" is not defined") != std::string_view::npos ||
                         message.find(" is no function") != std::string_view::npos;
    std::string text = is_name ? "; ready-made are" : "";
    for (std::size_t i = 0; is_name && i < kReadyMade.size(); ++i) {
      text += fmt::format("{} {}", i == 0 ? "" : ",", kReadyMade.at(i).name);
    }
    return text;
  }

  [[noreturn]] void fail(std::size_t at, const std::string& message) const {
    const int column = static_cast<int>(at) + 1;
    throw ExpressionError(column, fmt::format("mask: column {}: {}", column, message));
  }

  std::string write_out(const ReadyMade& ready_made) {
    const std::size_t begin = position_;
    const std::vector<double> arguments = parse_arguments(ready_made);
    const bool fits = ready_made.takes_any_number() ? arguments.size() >= ready_made.least()
                                                    : arguments.size() == ready_made.least();
    if (!fits) {
      fail(begin,
           fmt::format("{}({}) takes {}{} arguments, has {}", ready_made.name,
                       ready_made.parameters, ready_made.takes_any_number() ? "at least " : "",
                       ready_made.least(), arguments.size()));
    }
    const Mask mask = ready_made.make(arguments);
    const Expr& expression = std::get<Expr>(mask.node().form);
    for (const auto& [name, table] : expr::names_used(expression).tables) {
      names_.tables.emplace(name, table);
    }
    return expression.text();
  }

  // "(1, 2)", or nothing for none.
  std::vector<double> parse_arguments(const ReadyMade& ready_made) {
    std::vector<double> arguments;
    const std::size_t begin = position_;
    skip_blanks();
    if (!take('(')) {
      position_ = begin;
      return arguments;
    }
    skip_blanks();
    while (!take(')')) {
      if (!arguments.empty() && !take(',')) {
        fail(position_, fmt::format("expected ',' or ')' in the arguments of {}", ready_made.name));
      }
      skip_blanks();
      arguments.push_back(
          parse_number(arguments.empty() && ready_made.parameters.starts_with(kFraction)));
      skip_blanks();
    }
    return arguments;
  }

  double parse_number(bool is_fraction) {
    const char* begin = text_.data() + position_;
    const char* end = text_.data() + text_.size();
    double value = 0;
    std::from_chars_result result{};
    if (is_fraction) {
      result = std::from_chars(begin, end, value);
    } else {
      std::int32_t integer = 0;
      result = std::from_chars(begin, end, integer);
      value = integer;
    }
    if (result.ec != std::errc() || (result.ptr != end && is_name_character(*result.ptr))) {
      fail(position_, is_fraction ? "expected a number" : "expected an integer of 32 bits");
    }
    position_ += static_cast<std::size_t>(result.ptr - begin);
    return value;
  }

  void skip_blanks() {
    while (position_ < text_.size() && text_[position_] == ' ') {
      ++position_;
    }
  }

  bool take(char c) {
    const bool is_there = position_ < text_.size() && text_[position_] == c;
    position_ += is_there ? 1 : 0;
    return is_there;
  }

  std::string_view text_;
  std::size_t position_ = 0;
  ExprNames names_;
};

}  // namespace

Mask parse_mask(std::string_view text) {
  return WritingOut(text).parse();
}

std::vector<std::string> ready_made_masks() {
  std::vector<std::string> calls;
  calls.reserve(kReadyMade.size());
  for (const ReadyMade& ready_made : kReadyMade) {
    calls.push_back(ready_made.parameters.empty()
                        ? std::string(ready_made.name)
                        : fmt::format("{}({})", ready_made.name, ready_made.parameters));
  }
  return calls;
}

}  // namespace stof::mask
