#include "base/text.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

#include <fmt/format.h>

namespace stof::base {

namespace {

constexpr std::size_t kMaxBytes = 64;

// The longest start of the text within the limit that does not end inside a UTF-8 sequence.
std::string_view cut(std::string_view text) {
  if (text.size() <= kMaxBytes) {
    return text;
  }
  std::size_t size = kMaxBytes;
  while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xc0) == 0x80) {
    --size;
  }
  return text.substr(0, size);
}

// How many characters to insert, remove or replace to make one of the other (Levenshtein).
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({row[j] + 1, diagonal + 1, replaced});
    }
  }
  return row.back();
}

}  // namespace

std::string quote(std::string_view text) {
  const std::string_view kept = cut(text);
  std::string quoted = "\"";
  for (const char c : kept) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      quoted += fmt::format("\\x{:02x}", byte);
    } else {
      quoted += c;
    }
  }
  quoted += kept.size() < text.size() ? "…\"" : "\"";
  return quoted;
}

std::string_view nearest(std::string_view name, std::span<const std::string> known) {
  constexpr std::size_t kLongest = 64;
  std::size_t best = std::max<std::size_t>(2, name.size() / 3) + 1;
  std::string_view found;
  for (const std::string& candidate : known) {
    if (name.size() <= kLongest && candidate.size() <= kLongest) {
      const std::size_t distance = edit_distance(name, candidate);
      if (distance < best && distance < candidate.size()) {
        best = distance;
        found = candidate;
      }
    }
  }
  return found;
}

std::string counted(std::int64_t count, std::string_view one, std::string_view others) {
  return fmt::format("{} {}", count, count == 1 ? one : others);
}

}  // namespace stof::base
