#include "mask/tiles.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include <fmt/format.h>

#include "base/parallel.hpp"
#include "mask/bits.hpp"
#include "mask/longest_first.hpp"
#include "stof/error.hpp"

namespace stof::mask {

namespace {

// Every tile_k is whole groups of 8 keys and every tile_q whole groups of 8 rows, so a band of rows
// is summed up in two bits a group: whether some pair of it is seen, and whether every existing
// one.
struct BandSummary {
  std::vector<std::uint64_t> any;
  std::vector<std::uint64_t> all;  // 1 for groups beyond kv_len
};

// Rows of a tile row of the layout, in inner tiles.
struct Band {
  std::int64_t tile_row = 0;     // of the layout
  std::int64_t first_inner = 0;  // 0 to 7
  std::int64_t inner_rows = 0;   // 1 to 8
};

// Whether bits [begin, end) hold one that is 1.
bool any_bit(const std::vector<std::uint64_t>& words, std::int64_t begin, std::int64_t end) {
  for (std::int64_t at = begin; at < end;) {
    const std::int64_t stop = std::min(end, (at / kWordBits + 1) * kWordBits);
    if ((words[at / kWordBits] >> (at % kWordBits) & low_bits(stop - at)) != 0) {
      return true;
    }
    at = stop;
  }
  return false;
}

bool all_bits(const std::vector<std::uint64_t>& words, std::int64_t begin, std::int64_t end) {
  for (std::int64_t at = begin; at < end;) {
    const std::int64_t stop = std::min(end, (at / kWordBits + 1) * kWordBits);
    if ((~words[at / kWordBits] >> (at % kWordBits) & low_bits(stop - at)) != 0) {
      return false;
    }
    at = stop;
  }
  return true;
}

// The pairs of an inner tile that exist, where `rows` and `columns` do from its corner on.
std::uint64_t existing_pairs(std::int64_t rows, std::int64_t columns) {
  constexpr std::uint64_t kFirstColumn = 0x0101010101010101;
  const std::uint64_t row = low_bits(std::clamp<std::int64_t>(columns, 0, kInnerTile));
  return row * (kFirstColumn & low_bits(std::clamp<std::int64_t>(rows, 0, kInnerTile) * 8));
}

// Bytes of 8 groups: one 64-key tile of a summary.
struct TileSummary {
  std::uint64_t any = 0;
  std::uint64_t all = 0;
};

TileSummary summarise_bitmap(std::span<const std::uint64_t, kTileWords> bitmap, const Band& band,
                             std::int64_t rows, std::int64_t columns) {
  TileSummary summary;
  for (std::int64_t group = 0; group < 8; ++group) {
    bool any = false;
    bool all = true;
    for (std::int64_t i = band.first_inner; i < band.first_inner + band.inner_rows; ++i) {
      const std::uint64_t seen = bitmap[group * 8 + i];
      const std::uint64_t existing =
          existing_pairs(rows - i * kInnerTile, columns - group * kInnerTile);
      any = any || seen != 0;
      all = all && (existing & ~seen) == 0;
    }
    summary.any |= std::uint64_t{any} << group;
    summary.all |= std::uint64_t{all} << group;
  }
  return summary;
}

BandSummary summarise(const MaskLayout& layout, const Band& band) {
  const std::int64_t words = ceil_div(layout.tile_cols, 8);
  const std::int64_t groups = ceil_div(layout.extent.kv_len, kInnerTile);
  BandSummary summary{.any = std::vector<std::uint64_t>(words),
                      .all = std::vector<std::uint64_t>(words)};
  for (const std::int64_t col : layout.full.row(band.tile_row)) {
    set_bits(summary.any, col * 8, std::min<std::int64_t>(groups, col * 8 + 8));
    set_bits(summary.all, col * 8, col * 8 + 8);
  }
  const std::int64_t rows = layout.extent.q_len - band.tile_row % layout.tile_rows * kTile;
  for (std::int32_t p = layout.part.row_ptr[band.tile_row];
       p < layout.part.row_ptr[band.tile_row + 1]; ++p) {
    const std::int64_t col = layout.part.col_idx[p];
    const TileSummary tile = summarise_bitmap(layout.bitmap(layout.part_bitmap[p]), band, rows,
                                              layout.extent.kv_len - col * kTile);
    summary.any[col / 8] |= tile.any << (col % 8 * 8);
    summary.all[col / 8] |= tile.all << (col % 8 * 8);
  }
  set_bits(summary.all, groups, words * kWordBits);
  return summary;
}

TileClass classify(const BandSummary& band, std::int64_t begin, std::int64_t end) {
  if (!any_bit(band.any, begin, end)) {
    return TileClass::Empty;
  }
  return all_bits(band.all, begin, end) ? TileClass::Full : TileClass::Part;
}

struct QueryTile {
  std::vector<std::int32_t> col_idx;
  std::vector<TileClass> classes;
  std::vector<std::uint8_t> sub_classes;
};

// The bands of query tile `tile`, each within 64 rows; only those of which a row exists.
std::vector<BandSummary> bands_of(const MaskLayout& layout, std::int64_t tile_q, std::int64_t plane,
                                  std::int64_t tile) {
  std::vector<BandSummary> bands;
  const std::int64_t end = std::min(layout.extent.q_len, (tile + 1) * tile_q);
  const std::int64_t step = std::min(tile_q, kTile);
  for (std::int64_t q = tile * tile_q; q < end; q += step) {
    bands.push_back(summarise(layout, {.tile_row = plane * layout.tile_rows + q / kTile,
                                       .first_inner = q % kTile / kInnerTile,
                                       .inner_rows = step / kInnerTile}));
  }
  return bands;
}

QueryTile list_tiles(const std::vector<BandSummary>& bands, std::int64_t kv_tiles,
                     std::int64_t tile_k) {
  QueryTile list;
  const std::int64_t groups = std::ssize(bands.front().any) * kWordBits;
  for (std::int64_t c = 0; c < kv_tiles; ++c) {
    const std::int64_t begin = c * tile_k / kInnerTile;
    const std::int64_t end = std::min(groups, begin + tile_k / kInnerTile);
    unsigned sub_classes = 0;
    bool is_full = true;
    for (std::size_t s = 0; s < bands.size(); ++s) {
      const TileClass sub = classify(bands[s], begin, end);
      sub_classes |= static_cast<unsigned>(sub) << (2 * s);
      is_full = is_full && sub == TileClass::Full;
    }
    if (sub_classes != 0) {
      list.col_idx.push_back(static_cast<std::int32_t>(c));
      list.classes.push_back(is_full ? TileClass::Full : TileClass::Part);
      list.sub_classes.push_back(static_cast<std::uint8_t>(sub_classes));
    }
  }
  return list;
}

void check_tile(std::int64_t tile_q, std::int64_t tile_k) {
  constexpr std::array<std::int64_t, 6> kTileQ = {16, 32, 64, 128, 192, 256};
  if (std::ranges::find(kTileQ, tile_q) == kTileQ.end()) {
    throw GraphError(fmt::format(
        "mask: tiles of {} queries; 16, 32, 64, 128, 192 and 256 can be derived", tile_q));
  }
  if (tile_k < 8 || tile_k > 256 || tile_k % 8 != 0) {
    throw GraphError(
        fmt::format("mask: tiles of {} keys; multiples of 8 from 8 to 256 can be derived", tile_k));
  }
}

void append(const QueryTile& tile, TileLists& lists) {
  lists.col_idx.insert(lists.col_idx.end(), tile.col_idx.begin(), tile.col_idx.end());
  lists.classes.insert(lists.classes.end(), tile.classes.begin(), tile.classes.end());
  lists.sub_classes.insert(lists.sub_classes.end(), tile.sub_classes.begin(),
                           tile.sub_classes.end());
  if (std::ssize(lists.col_idx) > std::numeric_limits<std::int32_t>::max()) {
    throw GraphError(fmt::format("mask: more active tiles of {} x {} than the limit of {}",
                                 lists.tile_q, lists.tile_k,
                                 std::numeric_limits<std::int32_t>::max()));
  }
  lists.row_ptr.push_back(static_cast<std::int32_t>(lists.col_idx.size()));
}

}  // namespace

TileLists derive_tiles(const MaskLayout& layout, std::int64_t tile_q, std::int64_t tile_k) {
  check_tile(tile_q, tile_k);
  TileLists lists{.tile_q = tile_q,
                  .tile_k = tile_k,
                  .q_tiles = ceil_div(layout.extent.q_len, tile_q),
                  .kv_tiles = ceil_div(layout.extent.kv_len, tile_k),
                  .mask_batch = layout.mask_batch,
                  .mask_heads = layout.mask_heads,
                  .row_ptr = {0},
                  .col_idx = {},
                  .classes = {},
                  .sub_classes = {},
                  .order = {}};
  const std::int64_t count = lists.mask_batch * lists.mask_heads * lists.q_tiles;
  if (count > std::numeric_limits<std::int32_t>::max()) {
    throw GraphError(fmt::format("mask: {} tiles of {} queries, more than the limit of {}", count,
                                 tile_q, std::numeric_limits<std::int32_t>::max()));
  }
  std::vector<QueryTile> tiles(count);
  base::parallel_for(std::ssize(tiles), [&](std::int64_t r) {
    tiles[r] = list_tiles(bands_of(layout, tile_q, r / lists.q_tiles, r % lists.q_tiles),
                          lists.kv_tiles, tile_k);
  });
  for (const QueryTile& tile : tiles) {
    append(tile, lists);
  }
  lists.order = longest_first(lists.row_ptr);
  return lists;
}

}  // namespace stof::mask
