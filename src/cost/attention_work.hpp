#pragma once

#include <cstdint>
#include <vector>

#include "mask/attention_tiles.hpp"
#include "mask/features.hpp"
#include "mask/window_columns.hpp"

namespace stof::cost {

// Query tiles that visit equally many key tiles.
struct TileGroup {
  std::int64_t entries = 0;  // key tiles, of 64 keys
  std::int64_t part = 0;     // 64 rows (or the whole query tile, if less) x 64 keys with a mask
  std::int64_t count = 0;    // query tiles

  friend bool operator==(const TileGroup&, const TileGroup&) = default;
};

// What a mask leaves to do for query tiles of one size.
struct TileWork {
  std::int64_t tile_q = 0;
  std::vector<TileGroup> groups;  // in the order in which they are begun: the most entries first

  friend bool operator==(const TileWork&, const TileWork&) = default;
};

TileWork tile_work(const mask::AttentionTiles& tiles);

// What is made of a mask that arrives on each run: ends of the run of keys that each query sees,
// lists of tiles, or of keys.
enum class LayoutContent : std::uint8_t { Runs, Tiles, Keys };

// How long that takes, by times on an H200: of launches with it and without where tiles are so few
// that their lists are built at once, else of bench.layout_build but for the start of a graph.
double layout_us(const mask::MaskFeatures& features, LayoutContent content);

// Whether packing leaves query tiles next to as many key tiles as they had.
bool packs_nothing(const TileWork& packed, const TileWork& plain);

// The first `count` query tiles, of those of one replica of the mask with the most entries first,
// are worked on in `parts` parts each.
struct LongTiles {
  std::int64_t count = 0;
  std::int64_t parts = 1;

  friend bool operator==(const LongTiles&, const LongTiles&) = default;
};

// Which query tiles take so much longer than their share of all the work that others would wait for
// them, or are so few that SMs would have nothing to do. Each is there `replicas` times, `section`
// of which are worked on at a time. Sums of wide values take longer: of tiles that are not few
// only those that are longer than a block's share of the work, half as long again if they are
// short, and where the longest are but twice as long as most, as those of causal masks, only long
// ones of more than two shares.
LongTiles long_tiles(const TileWork& work, std::int64_t replicas, std::int64_t section,
                     std::int64_t sm_count, std::int64_t blocks_per_sm,
                     bool has_wide_values = false);

// Lists go along the replicas of a mask's plane, (batch, head) pairs, in sections of `each`, the
// last of which has `last`: through all tiles or rows of a section, from the longest to the
// shortest, before the next begins.
struct Sections {
  std::int64_t each = 1;
  std::int64_t last = 1;

  friend bool operator==(const Sections&, const Sections&) = default;
};

// Those of which `most` replicas have room in L2 together, all as long as each other but for one.
Sections sections(std::int64_t replicas, std::int64_t most);

// Those of one wave of blocks, `at_once` of them, where no tile has more than twice the entries of
// the median one, so that others would wait for it; else as above, and of uneven tiles of heads
// that share keys too, `heads_of_keys` of them, which read little. Memory then has as much to do in
// each wave: of more heads at once the first wave reads all their keys, and those after it none.
// What is left at the end is balanced in two waves, unless all tiles have as many entries.
Sections sections_of_waves(const TileWork& work, std::int64_t replicas, std::int64_t most,
                           std::int64_t at_once, std::int64_t heads_of_keys);

// The same work with those in parts, which come first, in the order in which it is done.
TileWork in_parts(const TileWork& work, const LongTiles& long_tiles);

// The work of one attention.
struct AttentionWork {
  const mask::MaskFeatures* features = nullptr;
  const TileWork* tiles = nullptr;  // of the setting's tile_q, or 64; null if rows are gathered
  LongTiles long_tiles;             // of these
  mask::WindowCounts windows;       // where keys are gathered for windows of rows
  bool has_score = false;
  bool reads_captures = false;  // the modifier, an element for each pair
};

}  // namespace stof::cost
