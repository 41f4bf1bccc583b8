#include "cost/attention_work.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "mask/bits.hpp"

namespace stof::cost {

TileWork tile_work(const mask::AttentionTiles& tiles) {
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t, std::greater<>> counts;
  const std::int64_t parts = tiles.parts();
  for (std::size_t row = 0; row + 1 < tiles.row_ptr.size(); ++row) {
    const std::int64_t begin = tiles.row_ptr[row];
    const std::int64_t end = tiles.row_ptr[row + 1];
    std::int64_t part = 0;
    for (std::int64_t e = begin * parts; e < end * parts; ++e) {
      part += tiles.tile_bitmap[static_cast<std::size_t>(e)] >= 0 ? 1 : 0;
    }
    ++counts[{end - begin, part}];
  }
  TileWork work{.tile_q = tiles.tile_q, .groups = {}};
  for (const auto& [row, count] : counts) {
    work.groups.push_back({.entries = row.first, .part = row.second, .count = count});
  }
  return work;
}

TileWork mean_tile_work(const mask::MaskFeatures& features, std::int64_t tile_q) {
  const std::int64_t planes = features.mask_batch * features.mask_heads;
  const std::int64_t rows_of_64 = planes * mask::ceil_div(features.extent.q_len, mask::kTile);
  const std::int64_t parts = std::max<std::int64_t>(1, tile_q / mask::kTile);
  const std::int64_t active = features.full_tiles + features.part_tiles;
  return {.tile_q = tile_q,
          .groups = {{.entries = mask::ceil_div(active, rows_of_64),
                      .part = mask::ceil_div(features.part_tiles * parts, rows_of_64),
                      .count = planes * mask::ceil_div(features.extent.q_len, tile_q)}}};
}

}  // namespace stof::cost
