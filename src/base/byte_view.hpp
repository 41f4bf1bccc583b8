#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

namespace stof::base {

// The part of some bytes that a header claims, cut off where they end.
inline std::span<const std::byte> slice(std::span<const std::byte> bytes, std::uint64_t offset,
                                        std::uint64_t size) {
  const auto rest = bytes.subspan(std::min<std::uint64_t>(offset, bytes.size()));
  return rest.first(std::min<std::uint64_t>(size, rest.size()));
}

// What lies at an offset, wherever that is in memory; nothing where the bytes end before it does.
template <typename T>
std::optional<T> read(std::span<const std::byte> bytes, std::uint64_t offset) {
  const auto part = slice(bytes, offset, sizeof(T));
  if (part.size() < sizeof(T)) {
    return std::nullopt;
  }
  T value;
  std::memcpy(&value, part.data(), sizeof value);
  return value;
}

}  // namespace stof::base
