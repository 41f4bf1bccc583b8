#include "cost/attention_work.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "mask/bits.hpp"

namespace stof::cost {

namespace {

std::int64_t tile_count(const TileWork& work) {
  std::int64_t tiles = 0;
  for (const TileGroup& group : work.groups) {
    tiles += group.count;
  }
  return tiles;
}

std::int64_t median_entries(const TileWork& work, std::int64_t count) {
  std::int64_t before = 0;
  for (const TileGroup& group : work.groups) {
    before += group.count;
    if (2 * before >= count) {
      return group.entries;
    }
  }
  return 0;
}

// How many tiles have more entries.
std::int64_t longer_than(const TileWork& work, std::int64_t entries) {
  std::int64_t tiles = 0;
  for (const TileGroup& group : work.groups) {
    tiles += group.entries > entries ? group.count : 0;
  }
  return tiles;
}

Sections sections_of(std::int64_t each, std::int64_t replicas) {
  return {.each = each, .last = (replicas - 1) % each + 1};
}

}  // namespace

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

double layout_us(const mask::MaskFeatures& features, LayoutContent content) {
  constexpr std::int64_t kMostAtOnce = 1 << 14;  // tiles of which lists are built at once
  constexpr double kRunsUs = 1.5;
  constexpr double kAtOnceUs = 9;
  constexpr double kTilesUs = 22;
  constexpr double kKeysUs = 42;
  constexpr double kTileUs = 0.001;
  constexpr double kTileOfKeysUs = 0.004;
  constexpr double kPartTileUs = 0.006;
  const auto tiles = static_cast<double>(features.tiles);
  const auto part_tiles = static_cast<double>(features.part_tiles);
  switch (content) {
    case LayoutContent::Runs:
      return kRunsUs;
    case LayoutContent::Keys:
      return kKeysUs + kTileOfKeysUs * tiles + kPartTileUs * part_tiles;
    case LayoutContent::Tiles:
      break;
  }
  return features.tiles <= kMostAtOnce ? kAtOnceUs
                                       : kTilesUs + kTileUs * tiles + kTileOfKeysUs * part_tiles;
}

bool packs_nothing(const TileWork& packed, const TileWork& plain) {
  constexpr double kLeastGain = 0.02;
  const auto visits = [](const TileWork& work) {
    double count = 0;
    for (const TileGroup& group : work.groups) {
      count += static_cast<double>(group.entries * group.count);
    }
    return count;
  };
  return visits(packed) > (1 - kLeastGain) * visits(plain);
}

Sections sections(std::int64_t replicas, std::int64_t most) {
  return sections_of(mask::ceil_div(replicas, mask::ceil_div(replicas, most)), replicas);
}

Sections sections_of_waves(const TileWork& work, std::int64_t replicas, std::int64_t most,
                           std::int64_t at_once, std::int64_t heads_of_keys) {
  constexpr std::int64_t kMuchLonger = 2;  // than the median
  const std::int64_t tiles = tile_count(work);
  if (tiles == 0) {
    return sections(replicas, most);
  }
  const std::int64_t wave = std::clamp(at_once / tiles, std::int64_t{1}, most);
  const std::int64_t each = wave < heads_of_keys ? wave : wave / heads_of_keys * heads_of_keys;
  const std::int64_t longest = work.groups.front().entries;
  if (longest == work.groups.back().entries) {
    return sections_of(each, replicas);
  }
  if (heads_of_keys > 1 || longest > kMuchLonger * median_entries(work, tiles)) {
    return sections(replicas, most);
  }
  const std::int64_t balanced =
      std::min({most, replicas, mask::ceil_div(2 * at_once, tiles)});  // or up to a wave more
  const std::int64_t last = balanced + (replicas - balanced) % each;
  return {.each = each, .last = last > most ? last - each : last};
}

LongTiles long_tiles(const TileWork& work, std::int64_t replicas, std::int64_t section,
                     std::int64_t sm_count, std::int64_t blocks_per_sm, bool has_wide_values) {
  constexpr std::int64_t kLeastEntries = 4;  // of a part of the longest; it has sums to write
  constexpr std::int64_t kLeastOfShort = 3;  // of a part of any other
  constexpr std::int64_t kMostParts = 16;
  constexpr std::int64_t kLeastOthers = 16;  // to one of a few long tiles
  constexpr std::int64_t kLeastShared = 24;  // entries of tiles of which none is long
  constexpr std::int64_t kLeastOfFull =
      14;  // where all see as much, and there are two more SMs each
  const std::int64_t count = tile_count(work);
  std::int64_t entries = 0;
  for (const TileGroup& group : work.groups) {
    entries += group.entries * group.count;
  }
  if (count == 0) {
    return {};
  }
  const std::int64_t workers = sm_count * blocks_per_sm;
  const std::int64_t longest_row = work.groups.front().entries;
  const std::int64_t median = median_entries(work, count);
  // SMs that would be left over take their shares of tiles that are about as long as each other,
  // and for the most part full: bitmaps take longer than is known here, and rows may be gathered.
  const std::int64_t each = workers / (count * replicas);
  const bool are_alike = longest_row == work.groups.back().entries &&
                         work.groups.front().part == 0 && sm_count / (count * replicas) > 2;
  if (count * replicas <= sm_count && each > 1 &&
      longest_row >= (are_alike ? kLeastOfFull : kLeastShared) && longest_row <= 2 * median &&
      2 * work.groups.front().part <= longest_row) {
    const std::int64_t parts = std::min({kMostParts, each, longest_row / kLeastEntries});
    return {.count = longer_than(work, parts * kLeastOfShort - 1), .parts = parts};
  }
  if (2 * longest_row <= 3 * median) {
    return {};  // two parts would be shorter than most tiles, and one wave of blocks becomes two
  }
  const std::int64_t share = mask::ceil_div(entries * section, workers);
  if (has_wide_values) {
    const bool is_short = longest_row < kLeastShared;
    const bool is_like_most = longest_row <= 2 * median;
    if ((is_like_most && (is_short || longest_row <= 2 * share)) ||
        (is_short && 2 * longest_row <= 3 * share) || longest_row <= share) {
      return {};
    }
  }
  const std::int64_t least = std::max(kLeastEntries, median);
  // Parts are three quarters of what there is for each worker: they come first, and others make up
  // for them. Wholes take 1 to 6 % longer in longformer, bigbird and bigbird_block of 12 heads and
  // 4096 keys, halves up to 13 %.
  const std::int64_t of_part = std::max(least, share * 3 / 4);
  // Many that are little longer, as causal masks have them, balance each other.
  const bool are_few = longer_than(work, of_part) * kLeastOthers <= count;
  const std::int64_t longest = are_few ? of_part : std::max(least, share);
  if (longer_than(work, longest) == 0) {
    return {};
  }
  // Two turns take the sums of eight, so that there are more only where parts are long even so.
  constexpr std::int64_t kInTwoTurns = 8;
  const std::int64_t parts =
      std::min({kMostParts, mask::ceil_div(longest_row, of_part),
                std::max(kInTwoTurns, mask::ceil_div(longest_row, 2 * share))});
  const std::int64_t split = longer_than(work, std::max(longest, parts * kLeastOfShort - 1));
  return split == 0 ? LongTiles{} : LongTiles{.count = split, .parts = parts};
}

TileWork in_parts(const TileWork& work, const LongTiles& long_tiles) {
  TileWork parts{.tile_q = work.tile_q, .groups = {}};
  std::vector<TileGroup> whole;
  std::int64_t left = long_tiles.count;
  for (const TileGroup& group : work.groups) {
    const std::int64_t split = std::min(left, group.count);
    left -= split;
    if (split > 0) {
      parts.groups.push_back({.entries = mask::ceil_div(group.entries, long_tiles.parts),
                              .part = mask::ceil_div(group.part, long_tiles.parts),
                              .count = split * long_tiles.parts});
    }
    if (split < group.count) {
      whole.push_back({.entries = group.entries, .part = group.part, .count = group.count - split});
    }
  }
  parts.groups.insert(parts.groups.end(), whole.begin(), whole.end());
  return parts;
}

}  // namespace stof::cost
