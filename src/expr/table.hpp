#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/hash.hpp"
#include "stof/expr.hpp"

namespace stof::expr {

inline constexpr int kTableBlock = 64;

// Entries and bounds are 64-bit words as in a Program: integers, or the bits of doubles.
struct TableData {
  std::string name;
  ScalarType type = ScalarType::Int;
  std::vector<std::int64_t> entries;
  std::vector<std::int64_t> block_low;   // of entries 64 i to 64 i + 63; NaN entries are left out
  std::vector<std::int64_t> block_high;  // below block_low where all entries are NaN
  std::int64_t low = 0;                  // of all entries
  std::int64_t high = 0;
  bool has_nan = false;
  base::Digest digest;  // of type and entries, not of the name
};

}  // namespace stof::expr
