// Intervals settle most tiles: a tile row is halved until the predicate is known to hold or to fail
// on all of a piece, or the piece is one tile. Only the tiles that are left are evaluated pair by
// pair.
#include "mask/layout.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "base/hash.hpp"
#include "base/parallel.hpp"
#include "mask/bits.hpp"
#include "stof/error.hpp"

namespace stof::mask {

namespace {

constexpr std::int64_t kMaxTiles = std::numeric_limits<std::int32_t>::max();
// Tiles that intervals leave open are looked at pair by pair, a second for some hundred thousand,
// and each may need a bitmap: of so many they would take 16 GiB.
constexpr std::int64_t kMostOpenTiles = std::int64_t{1} << 25;
constexpr std::size_t kTilesAtOnce = 32;  // evaluated together, to keep the bits of a row in cache

using Bitmap = std::array<std::uint64_t, kTileWords>;

// A tile row, or the columns [begin, end) of it.
struct TileRange {
  std::int64_t batch = 0;
  std::int64_t head = 0;
  std::int64_t row = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

struct TileRowClasses {
  std::vector<std::int32_t> full;
  std::vector<std::int32_t> part;
  std::vector<Bitmap> bitmaps;  // one a part tile
};

class RowClassifier {
 public:
  RowClassifier(Evaluator evaluator, const Extent& extent)
      : evaluator_(std::move(evaluator)), extent_(extent) {}

  // Of the row, without a look at them.
  std::int64_t count_open(const TileRange& row) {
    settle(row);
    return std::ssize(open_);
  }

  TileRowClasses classify(const TileRange& row) {
    settle(row);
    for (std::size_t i = 0; i < open_.size();) {
      std::size_t end = i + 1;
      while (end < open_.size() && open_[end] == open_[end - 1] + 1 && end - i < kTilesAtOnce) {
        ++end;
      }
      evaluate({.batch = row.batch,
                .head = row.head,
                .row = row.row,
                .begin = open_[i],
                .end = open_[end - 1] + 1});
      i = end;
    }
    std::ranges::sort(classes_.full);
    return std::move(classes_);
  }

 private:
  std::int64_t query_end(std::int64_t row) const {
    return std::min(extent_.q_len, (row + 1) * kTile);
  }
  std::int64_t key_end(std::int64_t col) const { return std::min(extent_.kv_len, col * kTile); }

  void settle(const TileRange& range) {
    const Truth truth = evaluator_.over({.batch = range.batch,
                                         .head = range.head,
                                         .q_begin = range.row * kTile,
                                         .q_end = query_end(range.row),
                                         .k_begin = range.begin * kTile,
                                         .k_end = key_end(range.end)});
    if (truth == Truth::Never) {
      return;
    }
    if (truth == Truth::Always) {
      for (std::int64_t col = range.begin; col < range.end; ++col) {
        classes_.full.push_back(static_cast<std::int32_t>(col));
      }
      return;
    }
    if (range.end - range.begin == 1) {
      open_.push_back(range.begin);
      return;
    }
    const std::int64_t middle = range.begin + (range.end - range.begin) / 2;
    TileRange half = range;
    half.end = middle;
    settle(half);
    half.begin = middle;
    half.end = range.end;
    settle(half);
  }

  // Pairs of the tiles, 64 keys a word.
  void evaluate(const TileRange& tiles) {
    const std::int64_t width = tiles.end - tiles.begin;
    words_.assign(kTile * width, 0);
    const std::int64_t q = tiles.row * kTile;
    for (std::int64_t r = 0; q + r < query_end(tiles.row); ++r) {
      evaluator_.row({.batch = tiles.batch, .head = tiles.head, .query = q + r},
                     tiles.begin * kTile, std::span(words_).subspan(r * width, width));
    }
    for (std::int64_t i = 0; i < width; ++i) {
      std::array<std::uint64_t, kTile> rows{};
      for (std::int64_t r = 0; r < kTile; ++r) {
        rows[r] = words_[r * width + i];
      }
      add_tile(tiles.row, tiles.begin + i, rows);
    }
  }

  void add_tile(std::int64_t row, std::int64_t col, const std::array<std::uint64_t, kTile>& rows) {
    const std::uint64_t existing = low_bits(key_end(col + 1) - col * kTile);
    const auto existing_rows = std::span(rows).first(query_end(row) - row * kTile);
    if (std::ranges::all_of(existing_rows, [&](std::uint64_t word) { return word == 0; })) {
      return;
    }
    if (std::ranges::all_of(existing_rows, [&](std::uint64_t word) { return word == existing; })) {
      classes_.full.push_back(static_cast<std::int32_t>(col));
      return;
    }
    classes_.part.push_back(static_cast<std::int32_t>(col));
    classes_.bitmaps.push_back(bitmap_of_rows(rows));
  }

  Evaluator evaluator_;
  Extent extent_;
  std::vector<std::int64_t> open_;  // tile columns that intervals leave open
  std::vector<std::uint64_t> words_;
  TileRowClasses classes_;
};

// Bitmaps in the order of their first use, each once.
class BitmapPool {
 public:
  std::int32_t index_of(const Bitmap& bitmap) {
    words_.insert(words_.end(), bitmap.begin(), bitmap.end());
    const auto index = static_cast<std::int32_t>(std::ssize(words_) / kTileWords - 1);
    const auto [found, is_new] = known_.insert(index);
    if (!is_new) {
      words_.resize(words_.size() - kTileWords);
    }
    return *found;
  }

  std::vector<std::uint64_t> take() { return std::move(words_); }

 private:
  std::span<const std::uint64_t> at(std::int32_t index) const {
    return std::span(words_).subspan(index * kTileWords, kTileWords);
  }

  struct Hash {
    const BitmapPool* pool;
    std::size_t operator()(std::int32_t index) const {
      return base::hash(std::as_bytes(pool->at(index))).low;
    }
  };
  struct Equal {
    const BitmapPool* pool;
    bool operator()(std::int32_t a, std::int32_t b) const {
      return std::ranges::equal(pool->at(a), pool->at(b));
    }
  };

  std::vector<std::uint64_t> words_;
  std::unordered_set<std::int32_t, Hash, Equal> known_{0, Hash{this}, Equal{this}};
};

void append(std::span<const std::int32_t> columns, TileRows& rows) {
  rows.col_idx.insert(rows.col_idx.end(), columns.begin(), columns.end());
  rows.row_ptr.push_back(static_cast<std::int32_t>(rows.col_idx.size()));
}

MaskLayout assemble(MaskLayout layout, const std::vector<TileRowClasses>& rows) {
  BitmapPool pool;
  for (const TileRowClasses& row : rows) {
    std::vector<std::int32_t> load;
    std::ranges::merge(row.full, row.part, std::back_inserter(load));
    append(row.full, layout.full);
    append(row.part, layout.part);
    append(load, layout.load);
    for (const Bitmap& bitmap : row.bitmaps) {
      layout.part_bitmap.push_back(pool.index_of(bitmap));
    }
  }
  layout.bitmaps = pool.take();
  return layout;
}

TileRange whole_row(const MaskLayout& layout, std::int64_t r) {
  const std::int64_t plane = r / layout.tile_rows;
  return {.batch = plane / layout.mask_heads,
          .head = plane % layout.mask_heads,
          .row = r % layout.tile_rows,
          .begin = 0,
          .end = layout.tile_cols};
}

// Refuses what would take hours, by the open tiles of some rows.
void check_open_tiles(const Mask& mask, const Evaluator& evaluator, const MaskLayout& layout) {
  constexpr std::int64_t kLooks = 64;
  const std::int64_t rows = layout.row_count();
  if (rows * layout.tile_cols <= kMostOpenTiles) {
    return;
  }
  std::int64_t open = 0;
  // By the golden ratio: even steps would meet the same rows of every plane.
  constexpr double kStep = 0.6180339887498949;
  for (std::int64_t look = 0; look < kLooks; ++look) {
    const double place = std::fmod(static_cast<double>(look) * kStep, 1.0);
    const auto r = static_cast<std::int64_t>(place * static_cast<double>(rows));
    open += RowClassifier(evaluator, layout.extent).count_open(whole_row(layout, r));
  }
  const auto about =
      static_cast<double>(open) * static_cast<double>(rows) / static_cast<double>(kLooks);
  if (about > static_cast<double>(kMostOpenTiles)) {
    throw GraphError(
        fmt::format("mask: with {} queries and {} keys about {:.2g} tiles of 64 x 64 would be "
                    "looked at pair by "
                    "pair, more than the limit of {}: {:.200}",
                    layout.extent.q_len, layout.extent.kv_len, about, kMostOpenTiles, mask.text()));
  }
}

}  // namespace

MaskLayout empty_layout(const Extent& extent, bool by_batch, bool by_head) {
  MaskLayout layout;
  layout.extent = extent;
  layout.mask_batch = by_batch ? extent.batch : 1;
  layout.mask_heads = by_head ? extent.heads : 1;
  layout.tile_rows = ceil_div(extent.q_len, kTile);
  layout.tile_cols = ceil_div(extent.kv_len, kTile);
  for (TileRows* rows : {&layout.full, &layout.part, &layout.load}) {
    rows->row_ptr.push_back(0);
  }
  std::int64_t tiles = 1;
  for (const std::int64_t count :
       {layout.mask_batch, layout.mask_heads, layout.tile_rows, layout.tile_cols}) {
    if (count > kMaxTiles / tiles) {
      throw GraphError(fmt::format(
          "mask: {} x {} x {} x {} tiles of 64 x 64 (batch, heads, rows, columns) pass the limit "
          "of {}",
          layout.mask_batch, layout.mask_heads, layout.tile_rows, layout.tile_cols, kMaxTiles));
    }
    tiles *= count;
  }
  return layout;
}

MaskLayout build_layout(const Mask& mask, const Extent& extent, const CaptureValues& captures) {
  const Evaluator evaluator(mask, extent, captures);
  MaskLayout layout = empty_layout(extent, mask.uses_batch(), mask.uses_head());
  check_open_tiles(mask, evaluator, layout);
  std::vector<TileRowClasses> rows(layout.row_count());
  base::parallel_for(layout.row_count(), [&](std::int64_t r) {
    rows[r] = RowClassifier(evaluator, extent).classify(whole_row(layout, r));
  });
  layout = assemble(std::move(layout), rows);
  check_any_seen(mask, layout);
  return layout;
}

void check_any_seen(const Mask& mask, const MaskLayout& layout) {
  if (layout.load.col_idx.empty()) {
    throw GraphError(fmt::format("mask: no query sees any key with {} queries and {} keys: {:.200}",
                                 layout.extent.q_len, layout.extent.kv_len, mask.text()));
  }
}

}  // namespace stof::mask
