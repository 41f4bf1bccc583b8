#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "stof/mask.hpp"

namespace stof::mask {

// The attention that a mask is for.
struct Extent {
  std::int64_t batch = 1;
  std::int64_t heads = 1;
  std::int64_t q_len = 0;
  std::int64_t kv_len = 0;

  friend bool operator==(const Extent&, const Extent&) = default;
};

// Throws GraphError where the mask cannot be for this attention: an extent that is not in 1 to
// kMaxLength; data of other lengths, or for another batch or number of heads; a table as
// check_tables says. The message begins with `what`, as those of check_tables do.
void check_extent(const Mask& mask, const Extent& extent, std::string_view what = "mask");

// Throws GraphError where a table of a mask or score is indexed by batch, head, q_pos or k_pos
// alone and has too few entries; one entry serves every batch element and every head.
void check_tables(const Expr& expression, const Extent& extent, std::string_view what);

struct NamedSize {
  std::string_view name;
  std::int64_t size = 0;
};

// How far a scalar that stands alone as an index runs: {"q_len", 128} for q_pos.
std::optional<NamedSize> range_of(const Expr& index, const Extent& extent);

// Whether `entries` along an axis that is indexed like that are too few.
bool is_too_short(std::int64_t entries, const NamedSize& range);

}  // namespace stof::mask
