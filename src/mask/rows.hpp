#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "mask/layout.hpp"

namespace stof::mask {

// In the lists below query row r = (b * mask_heads + h) * q_len + q, with mask_batch and mask_heads
// of the layout that they come from.

// The first key that each row sees, one past the last, and how many it sees; {0, 0, 0} for none.
struct RowSpans {
  std::vector<std::int32_t> first;
  std::vector<std::int32_t> end;
  std::vector<std::int32_t> count;

  // Each row sees every key from its first to its last.
  bool are_intervals() const;
};

RowSpans row_spans(const MaskLayout& layout);

// Row r sees the keys first[r], …, end[r] - 1.
struct IntervalRows {
  std::vector<std::int32_t> first;
  std::vector<std::int32_t> end;
};

// Nothing where a row sees two intervals or more.
std::optional<IntervalRows> interval_rows(const MaskLayout& layout);

// Query row q sees the keys q + first, …, q + end - 1, as far as they exist. One that no row of the
// mask comes up to is so far away that none could.
struct Band {
  std::int64_t first = 0;
  std::int64_t end = 0;

  friend bool operator==(const Band&, const Band&) = default;
};

// Nothing where the mask is no band that all batch elements and heads share.
std::optional<Band> band(const MaskLayout& layout);

// The keys of row r are col_idx[row_ptr[r]], …, col_idx[row_ptr[r + 1] - 1], ascending.
struct KeyRows {
  std::vector<std::int32_t> row_ptr;
  std::vector<std::int32_t> col_idx;
};

// Throws GraphError where there are more pairs than 32 bits count.
KeyRows key_rows(const MaskLayout& layout);

}  // namespace stof::mask
