#include "render/text_operations.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "render/builtin.hpp"
#include "render/operators.hpp"
#include "render/text.hpp"

namespace stof::render {

namespace {

Value piece(Runtime& runtime, std::string_view text) {
  runtime.budget.allocate(text.size() + sizeof(Value));
  return Value(text);
}

// Where the white space that ends at a byte begins, seen from the right.
std::string_view word_end(std::string_view text) {
  return strip_right(text);
}

std::vector<Value> split_words(Runtime& runtime, std::string_view text, std::int64_t max_splits) {
  std::vector<Value> words;
  text = strip_left(text);
  while (!text.empty()) {
    if (max_splits >= 0 && std::ssize(words) == max_splits) {
      words.push_back(piece(runtime, strip_right(text)));
      break;
    }
    std::size_t end = 0;
    while (end < text.size() && !is_space(decode(text, end).code)) {
      end += decode(text, end).size;
    }
    words.push_back(piece(runtime, text.substr(0, end)));
    text = strip_left(text.substr(end));
  }
  return words;
}

std::vector<Value> split_words_from_right(Runtime& runtime, std::string_view text,
                                          std::int64_t max_splits) {
  std::vector<Value> words;
  text = word_end(text);
  while (!text.empty()) {
    if (max_splits >= 0 && std::ssize(words) == max_splits) {
      words.push_back(piece(runtime, strip_left(text)));
      break;
    }
    std::size_t begin = 0;
    for (std::size_t i = 0; i < text.size(); i += decode(text, i).size) {
      begin = is_space(decode(text, i).code) ? i + decode(text, i).size : begin;
    }
    words.push_back(piece(runtime, text.substr(begin)));
    text = word_end(text.substr(0, begin));
    runtime.budget.step(1 + text.size() / 16);
  }
  std::ranges::reverse(words);
  return words;
}

const std::string& separator_text(const Value& separator) {
  const std::string& text = text_argument(separator, "sep");
  if (text.empty()) {
    throw Failure("empty separator");
  }
  return text;
}

}  // namespace

std::string strip_characters(std::string_view text, const Value& characters, StripSides sides) {
  if (characters.is_none()) {
    text = sides.from_left ? strip_left(text) : text;
    return std::string(sides.from_right ? strip_right(text) : text);
  }
  const std::string& set = text_argument(characters, "chars");
  const auto is_stripped = [&set](std::string_view c) { return set.find(c) != std::string::npos; };
  const std::vector<std::string_view> all = split_characters(text);
  std::size_t first = 0;
  std::size_t last = all.size();
  while (sides.from_left && first < last && is_stripped(all[first])) {
    ++first;
  }
  while (sides.from_right && last > first && is_stripped(all[last - 1])) {
    --last;
  }
  const std::size_t begin = byte_offset(text, first);
  return std::string(text.substr(begin, byte_offset(text, last) - begin));
}

void charge_search_from_right(Runtime& runtime, std::string_view text, std::string_view part) {
  runtime.budget.step(text.size() / 64 * (1 + part.size() / 64));
}

std::vector<Value> split_text(Runtime& runtime, std::string_view text, const Value& separator,
                              std::int64_t max_splits) {
  if (separator.is_none()) {
    return split_words(runtime, text, max_splits);
  }
  const std::string& mark = separator_text(separator);
  std::vector<Value> pieces;
  for (std::size_t at = find_text(text, mark); at != std::string_view::npos;
       at = find_text(text, mark)) {
    if (max_splits >= 0 && std::ssize(pieces) == max_splits) {
      break;
    }
    pieces.push_back(piece(runtime, text.substr(0, at)));
    text.remove_prefix(at + mark.size());
  }
  pieces.push_back(piece(runtime, text));
  return pieces;
}

std::vector<Value> split_text_from_right(Runtime& runtime, std::string_view text,
                                         const Value& separator, std::int64_t max_splits) {
  if (separator.is_none()) {
    return split_words_from_right(runtime, text, max_splits);
  }
  const std::string& mark = separator_text(separator);
  std::vector<Value> pieces;
  charge_search_from_right(runtime, text, mark);
  for (std::size_t at = text.rfind(mark); at != std::string_view::npos; at = text.rfind(mark)) {
    if (max_splits >= 0 && std::ssize(pieces) == max_splits) {
      break;
    }
    pieces.push_back(piece(runtime, text.substr(at + mark.size())));
    text = text.substr(0, at);
  }
  pieces.push_back(piece(runtime, text));
  std::ranges::reverse(pieces);
  return pieces;
}

std::string join_texts(Runtime& runtime, std::string_view separator,
                       const std::vector<Value>& texts) {
  std::size_t size = texts.empty() ? 0 : separator.size() * (texts.size() - 1);
  for (const Value& text : texts) {
    size += text.text()->bytes.size();
  }
  runtime.budget.check_text(size);
  runtime.budget.allocate(size);
  std::string joined;
  joined.reserve(size);
  std::string_view mark;
  for (const Value& text : texts) {
    joined += mark;
    joined += text.text()->bytes;
    mark = separator;
  }
  return joined;
}

std::string replace_text(Runtime& runtime, std::string_view text, std::string_view old_text,
                         std::string_view new_text, std::int64_t count) {
  std::string replaced;
  const auto add = [&](std::string_view piece) {
    runtime.budget.check_text(replaced.size() + piece.size());
    replaced += piece;
  };
  std::size_t position = 0;
  for (std::int64_t done = 0; count < 0 || done < count; ++done) {
    const std::size_t found = find_text(text, old_text, position);
    if (found == std::string_view::npos) {
      break;
    }
    add(text.substr(position, found - position));
    add(new_text);
    position = found + old_text.size();
    if (old_text.empty()) {
      if (position >= text.size()) {
        break;
      }
      const std::size_t size = decode(text, position).size;
      add(text.substr(position, size));
      position += size;
    }
  }
  add(text.substr(std::min(position, text.size())));
  runtime.budget.allocate(replaced.size());
  return replaced;
}

std::string padded(Runtime& runtime, std::string_view text, std::string_view fill,
                   std::int64_t left, std::int64_t right) {
  std::size_t size = 0;
  const auto count = static_cast<std::size_t>(left) + static_cast<std::size_t>(right);
  if (__builtin_mul_overflow(count, fill.size(), &size)) {
    throw Failure("the width is beyond all bounds");
  }
  runtime.budget.check_text(size);
  runtime.budget.allocate(size + text.size());
  std::string result;
  for (std::int64_t i = 0; i < left; ++i) {
    result += fill;
  }
  result += text;
  for (std::int64_t i = 0; i < right; ++i) {
    result += fill;
  }
  return result;
}

std::int64_t center_margin(std::int64_t missing, std::int64_t width) {
  return missing / 2 + (missing & width & 1);
}

bool is_upper(std::string_view text) {
  return std::ranges::any_of(text, is_letter) &&
         std::ranges::none_of(text, [](char c) { return c >= 'a' && c <= 'z'; });
}

bool is_lower(std::string_view text) {
  return std::ranges::any_of(text, is_letter) &&
         std::ranges::none_of(text, [](char c) { return c >= 'A' && c <= 'Z'; });
}

}  // namespace stof::render
