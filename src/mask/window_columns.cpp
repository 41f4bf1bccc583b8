#include "mask/window_columns.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>

#include "base/check.hpp"
#include "base/parallel.hpp"
#include "mask/bits.hpp"

namespace stof::mask {

namespace {

std::uint32_t place(std::int64_t key) {
  return static_cast<std::uint32_t>(128 * key + 16 * (key % kOctet));
}

// The columns of one stage, by n % 8 of their keys: the rows that see one in the upper half of a
// word, its place in the lower.
using ColumnsByClass = std::array<std::vector<std::uint32_t>, kOctet>;

// How many columns of a class an octet needs to take at most, so that it holds `count` at least.
std::int64_t most_of_class(const ColumnsByClass& columns, std::int64_t count) {
  for (std::int64_t most = 1;; ++most) {
    std::int64_t taken = 0;
    for (const auto& of_class : columns) {
      taken += std::min(most, std::ssize(of_class));
    }
    if (taken >= count) {
      return most;
    }
  }
}

// Adds an octet of at least `count` of the columns, of which it takes as few of a class as can be,
// and rather those of which there are more. Those that fill it up come from the banks of the first.
void deal_octet(ColumnsByClass& columns, std::int64_t count, std::vector<std::uint32_t>& octets) {
  const std::int64_t most = most_of_class(columns, count);
  std::array<std::int64_t, kOctet> taken{};
  const std::size_t begin = octets.size();
  for (std::int64_t slot = 0; slot < kOctet; ++slot) {
    std::size_t best = 0;
    for (std::size_t c = 1; c < columns.size(); ++c) {
      const bool is_full = taken[c] == most;
      if (taken[best] == most || (!is_full && columns[c].size() > columns[best].size())) {
        best = c;
      }
    }
    if (taken[best] == most || columns[best].empty()) {
      octets.push_back(octets[begin] & 0xffffU);
      continue;
    }
    ++taken[best];
    octets.push_back(columns[best].back());
    columns[best].pop_back();
  }
}

void deal(ColumnsByClass& columns, std::vector<std::uint32_t>& octets) {
  std::int64_t left = 0;
  for (const auto& of_class : columns) {
    left += std::ssize(of_class);
  }
  while (left > 0) {
    const std::size_t before = octets.size();
    deal_octet(columns, (left - 1) % kOctet + 1, octets);
    left -= std::count_if(octets.begin() + static_cast<std::ptrdiff_t>(before), octets.end(),
                          [](std::uint32_t column) { return column > 0xffffU; });
  }
}

struct WindowList {
  std::vector<std::int32_t> octets;  // of each stage
  std::vector<std::uint32_t> columns;
};

// Of the rows from `first` to `end`.
WindowList list_of(const KeyRows& rows, std::int64_t first, std::int64_t end, std::int64_t kv_len,
                   std::int64_t stage_keys) {
  WindowList list;
  std::array<std::int32_t, kWindow> next{};
  std::copy(rows.row_ptr.begin() + first, rows.row_ptr.begin() + end, next.begin());
  std::vector<std::uint32_t> seen(static_cast<std::size_t>(stage_keys));
  ColumnsByClass columns;
  for (std::int64_t stage = 0; stage * stage_keys < kv_len; ++stage) {
    std::ranges::fill(seen, 0);
    for (std::int64_t row = first; row < end; ++row) {
      std::int32_t& at = next[row - first];
      for (; at < rows.row_ptr[row + 1] && rows.col_idx[at] < (stage + 1) * stage_keys; ++at) {
        seen[rows.col_idx[at] - stage * stage_keys] |= 0x10000U << (row - first);
      }
    }
    for (std::int64_t key = 0; key < stage_keys; ++key) {
      if (seen[key] != 0) {
        columns[key % kOctet].push_back(seen[key] | place(key));
      }
    }
    const std::size_t before = list.columns.size();
    deal(columns, list.columns);
    list.octets.push_back(static_cast<std::int32_t>((list.columns.size() - before) / kOctet));
  }
  return list;
}

// Packs octet n of all.
void pack(const std::uint32_t* columns, std::int64_t n, std::vector<std::uint32_t>& words) {
  std::uint32_t* const group = words.data() + n / kGroup * kGroupWords;
  const std::int64_t octet = n % kGroup;
  for (std::int64_t c = 0; c < kOctet; ++c) {
    for (std::int64_t row = 0; row < kWindow; ++row) {
      const std::int64_t bit = 4 * octet + row / 8 * 2 + c % 2;
      group[row % 8 * 4 + c / 2] |= (columns[c] >> (16 + row) & 1U) << bit;
    }
    group[32 + 4 * octet + c / 2] |= (columns[c] & 0xffffU) << (c % 2 * 16);
  }
}

constexpr std::int64_t kWindows = kTile / kWindow;  // of a tile row

std::array<std::int64_t, kWindows> columns_of_windows(
    std::span<const std::uint64_t, kTileWords> bitmap) {
  const std::array<std::uint64_t, kTile> rows = bitmap_rows(bitmap);
  std::array<std::int64_t, kWindows> columns{};
  for (std::int64_t window = 0; window < kWindows; ++window) {
    std::uint64_t seen = 0;
    for (std::int64_t i = 0; i < kWindow; ++i) {
      seen |= rows[window * kWindow + i];
    }
    columns[window] = std::popcount(seen);
  }
  return columns;
}

}  // namespace

WindowCounts count_window_columns(const MaskLayout& layout) {
  std::vector<std::array<std::int64_t, kWindows>> of_bitmaps;
  for (std::int64_t n = 0; n < std::ssize(layout.bitmaps) / kTileWords; ++n) {
    of_bitmaps.push_back(columns_of_windows(layout.bitmap(n)));
  }
  WindowCounts counts;
  std::int64_t sum = 0;
  std::int64_t span = 0;
  std::int64_t windows = 0;
  for (std::int64_t r = 0; r < layout.row_count(); ++r) {
    std::array<std::int64_t, kWindows> columns{};
    for (const std::int32_t column : layout.full.row(r)) {
      for (std::int64_t& count : columns) {
        count += std::min(kTile, layout.extent.kv_len - column * kTile);
      }
    }
    for (std::int64_t p = layout.part.row_ptr[r]; p < layout.part.row_ptr[r + 1]; ++p) {
      for (std::int64_t window = 0; window < kWindows; ++window) {
        columns[window] += of_bitmaps[layout.part_bitmap[p]][window];
      }
    }
    const auto tiles = layout.load.row(r);
    const std::int64_t keys =
        tiles.empty()
            ? 0
            : std::min((tiles.back() + 1) * kTile, layout.extent.kv_len) - tiles.front() * kTile;
    const std::int64_t first = r % layout.tile_rows * kTile;
    for (std::int64_t window = 0;
         first + window * kWindow < layout.extent.q_len && window < kWindows; ++window) {
      sum += columns[window];
      span += keys;
      ++windows;
      counts.most = std::max(counts.most, columns[window]);
    }
  }
  counts.mean = static_cast<double>(sum) / static_cast<double>(windows);
  counts.span = static_cast<double>(span) / static_cast<double>(windows);
  return counts;
}

WindowColumns window_columns(const KeyRows& rows, std::int64_t planes, std::int64_t q_len,
                             std::int64_t kv_len, std::int64_t stage_keys) {
  STOF_CHECK(stage_keys >= kOctet && stage_keys <= 512) << stage_keys << " keys a stage";
  const std::int64_t plane_windows = ceil_div(q_len, kWindow);
  std::vector<WindowList> lists(static_cast<std::size_t>(planes * plane_windows));
  base::parallel_for(std::ssize(lists), [&](std::int64_t window) {
    const std::int64_t plane = window / plane_windows;
    const std::int64_t query = window % plane_windows * kWindow;
    lists[window] = list_of(rows, plane * q_len + query,
                            plane * q_len + std::min(query + kWindow, q_len), kv_len, stage_keys);
  });
  WindowColumns result{.octet_ptr = {0}, .words = {}};
  for (const WindowList& list : lists) {
    for (const std::int32_t octets : list.octets) {
      result.octet_ptr.push_back(result.octet_ptr.back() + octets);
    }
  }
  const std::int64_t groups = ceil_div(result.octet_ptr.back(), kGroup) + 2;
  result.words.resize(static_cast<std::size_t>(groups * kGroupWords));
  std::int64_t octet = 0;
  for (const WindowList& list : lists) {
    for (std::size_t i = 0; i < list.columns.size(); i += kOctet) {
      pack(list.columns.data() + i, octet++, result.words);
    }
  }
  return result;
}

}  // namespace stof::mask
