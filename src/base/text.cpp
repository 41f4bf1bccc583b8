#include "base/text.hpp"

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

}  // namespace stof::base
