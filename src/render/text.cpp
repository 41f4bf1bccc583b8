#include "render/text.hpp"

#include <algorithm>
#include <cstring>

namespace stof::render {

namespace {

bool is_continuation(char c) {
  return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U;
}

// Bytes of a sequence by its first byte; 0 for a byte that starts none.
std::size_t sequence_size(unsigned char first) {
  if (first < 0x80) {
    return 1;
  }
  if (first >= 0xC2 && first < 0xE0) {
    return 2;
  }
  if (first >= 0xE0 && first < 0xF0) {
    return 3;
  }
  return first >= 0xF0 && first < 0xF5 ? 4 : 0;
}

bool is_line_end(char32_t code) {
  return (code >= 0x0A && code <= 0x0D) || (code >= 0x1C && code <= 0x1E) || code == 0x85 ||
         code == 0x2028 || code == 0x2029;
}

bool is_well_formed(std::string_view text, std::size_t offset, std::size_t size) {
  const Character character = decode(text, offset);
  if (character.size != size) {
    return false;
  }
  const bool is_surrogate = character.code >= 0xD800 && character.code < 0xE000;
  const bool is_overlong =
      (size == 3 && character.code < 0x800) || (size == 4 && character.code < 0x10000);
  return !is_surrogate && !is_overlong && character.code <= 0x10FFFF;
}

}  // namespace

Character decode(std::string_view text, std::size_t offset) {
  const auto first = static_cast<unsigned char>(text[offset]);
  const std::size_t size = sequence_size(first);
  if (size <= 1 || offset + size > text.size()) {
    return {.code = first, .size = 1};
  }
  char32_t code = first & (0xFFU >> (size + 1));
  for (std::size_t i = 1; i < size; ++i) {
    if (!is_continuation(text[offset + i])) {
      return {.code = first, .size = 1};
    }
    code = (code << 6U) | (static_cast<unsigned char>(text[offset + i]) & 0x3FU);
  }
  return {.code = code, .size = size};
}

std::string encode(char32_t code) {
  const auto tail = [code](unsigned shift) {
    return static_cast<char>(0x80U | ((code >> shift) & 0x3FU));
  };
  if (code < 0x80) {
    return {static_cast<char>(code)};
  }
  if (code < 0x800) {
    return {static_cast<char>(0xC0U | (code >> 6U)), tail(0)};
  }
  if (code < 0x10000) {
    return {static_cast<char>(0xE0U | (code >> 12U)), tail(6), tail(0)};
  }
  return {static_cast<char>(0xF0U | (code >> 18U)), tail(12), tail(6), tail(0)};
}

bool is_utf8(std::string_view text) {
  for (std::size_t offset = 0; offset < text.size();) {
    const std::size_t size = sequence_size(static_cast<unsigned char>(text[offset]));
    if (size == 0 || (size > 1 && !is_well_formed(text, offset, size))) {
      return false;
    }
    offset += size;
  }
  return true;
}

std::size_t find_text(std::string_view text, std::string_view part, std::size_t from) {
  if (from > text.size()) {
    return std::string_view::npos;
  }
  const void* found = memmem(text.data() + from, text.size() - from, part.data(), part.size());
  return found == nullptr ? std::string_view::npos
                          : static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
}

std::size_t count_characters(std::string_view text) {
  return text.size() - static_cast<std::size_t>(std::ranges::count_if(text, is_continuation));
}

std::size_t byte_offset(std::string_view text, std::size_t character) {
  std::size_t offset = 0;
  while (character > 0 && offset < text.size()) {
    offset += decode(text, offset).size;
    --character;
  }
  return offset;
}

std::vector<std::string_view> split_characters(std::string_view text) {
  std::vector<std::string_view> characters;
  for (std::size_t offset = 0; offset < text.size();) {
    const std::size_t size = decode(text, offset).size;
    characters.push_back(text.substr(offset, size));
    offset += size;
  }
  return characters;
}

bool is_space(char32_t code) {
  return (code >= 0x09 && code <= 0x0D) || (code >= 0x1C && code <= 0x20) || code == 0x85 ||
         code == 0xA0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 ||
         code == 0x2029 || code == 0x202F || code == 0x205F || code == 0x3000;
}

std::string_view strip_left(std::string_view text) {
  while (!text.empty()) {
    const Character character = decode(text, 0);
    if (!is_space(character.code)) {
      break;
    }
    text.remove_prefix(character.size);
  }
  return text;
}

std::string_view strip_right(std::string_view text) {
  while (!text.empty()) {
    std::size_t last = text.size() - 1;
    while (last > 0 && is_continuation(text[last])) {
      --last;
    }
    if (!is_space(decode(text, last).code)) {
      break;
    }
    text = text.substr(0, last);
  }
  return text;
}

bool is_blank(std::string_view text) {
  return strip_left(text).empty();
}

std::string to_lower(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return lower;
}

std::string to_upper(std::string_view text) {
  std::string upper(text);
  std::ranges::transform(upper, upper.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  return upper;
}

std::string capitalize(std::string_view text) {
  return to_upper(text.substr(0, 1)) + to_lower(text.substr(std::min<std::size_t>(1, text.size())));
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

int digit_value(char c) {
  if (is_digit(c)) {
    return c - '0';
  }
  return is_letter(c) ? (c | 0x20) - 'a' + 10 : 99;
}

std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends) {
  std::vector<std::string_view> lines;
  std::size_t begin = 0;
  for (std::size_t offset = 0; offset < text.size();) {
    const Character character = decode(text, offset);
    std::size_t next = offset + character.size;
    if (is_line_end(character.code)) {
      if (character.code == '\r' && next < text.size() && text[next] == '\n') {
        ++next;
      }
      lines.push_back(text.substr(begin, (keep_ends ? next : offset) - begin));
      begin = next;
    }
    offset = next;
  }
  if (begin < text.size()) {
    lines.push_back(text.substr(begin));
  }
  return lines;
}

std::string normalize_newlines(std::string_view text) {
  std::string normal;
  normal.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\r') {
      normal += text[i];
    } else if (i + 1 == text.size() || text[i + 1] != '\n') {
      normal += '\n';
    }
  }
  return normal;
}

}  // namespace stof::render
