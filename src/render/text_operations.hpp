#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "render/object.hpp"

// What filters and methods of strings have in common.
namespace stof::render {

struct StripSides {
  bool from_left = true;
  bool from_right = true;
};
// Strips white space, or any of the characters of a string. Throws Failure for other `characters`.
std::string strip_characters(std::string_view text, const Value& characters, StripSides sides);

// Searching from the right takes the product of the two lengths at worst, so that is what it counts
// as.
void charge_search_from_right(Runtime& runtime, std::string_view text, std::string_view part);

// At a separator, or at runs of white space for none; at most max_splits times if not negative.
std::vector<Value> split_text(Runtime& runtime, std::string_view text, const Value& separator,
                              std::int64_t max_splits);
std::vector<Value> split_text_from_right(Runtime& runtime, std::string_view text,
                                         const Value& separator, std::int64_t max_splits);

std::string join_texts(Runtime& runtime, std::string_view separator,
                       const std::vector<Value>& texts);
// At most `count` times if not negative.
std::string replace_text(Runtime& runtime, std::string_view text, std::string_view old_text,
                         std::string_view new_text, std::int64_t count);
std::string padded(Runtime& runtime, std::string_view text, std::string_view fill,
                   std::int64_t left, std::int64_t right);
// How much of the missing width str.center puts on the left.
std::int64_t center_margin(std::int64_t missing, std::int64_t width);

// Has letters, all of them upper (lower) case.
bool is_upper(std::string_view text);
bool is_lower(std::string_view text);

}  // namespace stof::render
