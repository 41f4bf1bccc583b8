#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

// Strings are UTF-8, and templates see them as Python does: as sequences of code points.
namespace stof::render {

struct Character {
  char32_t code = 0;
  std::size_t size = 1;  // bytes
};

// The code point that starts at a byte; a byte that starts none stands for itself.
Character decode(std::string_view text, std::size_t offset);
std::string encode(char32_t code);
bool is_utf8(std::string_view text);

// Where `part` first stands at or after a byte, or npos; in linear time, unlike string_view::find.
std::size_t find_text(std::string_view text, std::string_view part, std::size_t from = 0);

// Code points, and the byte at which one starts (the size of the text from its end on).
std::size_t count_characters(std::string_view text);
std::size_t byte_offset(std::string_view text, std::size_t character);
std::vector<std::string_view> split_characters(std::string_view text);

// What Python calls white space, beyond ASCII too.
bool is_space(char32_t code);
std::string_view strip_left(std::string_view text);
std::string_view strip_right(std::string_view text);
bool is_blank(std::string_view text);

// Letters of ASCII only; all others stay as they are.
std::string to_lower(std::string_view text);
std::string to_upper(std::string_view text);
std::string capitalize(std::string_view text);
bool is_digit(char c);

// Of a digit in a base up to 36; 99 where it is none.
int digit_value(char c);
bool is_letter(char c);

// Lines as str.splitlines sees them, without their ends unless asked for.
std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends = false);

// Newlines of all systems become '\n'.
std::string normalize_newlines(std::string_view text);

}  // namespace stof::render
