#include "cost/attention_work.hpp"

#include <doctest/doctest.h>

#include "mask/layout.hpp"

using namespace stof;  // NOLINT(google-build-using-namespace)
using cost::TileGroup;

namespace {

cost::TileWork work(const Mask& mask, std::int64_t length, std::int64_t tile_q) {
  return cost::tile_work(
      mask::attention_tiles(mask::build_layout(mask, {.q_len = length, .kv_len = length}), tile_q));
}

}  // namespace

TEST_CASE("query tiles are grouped by what they visit, the longest first") {
  const cost::TileWork causal_64 = work(causal(), 256, 64);
  CHECK(causal_64.tile_q == 64);
  CHECK(causal_64.groups == std::vector<TileGroup>{{4, 1, 1}, {3, 1, 1}, {2, 1, 1}, {1, 1, 1}});
  // Of the two 64 x 64 parts above the diagonal of 128 rows one is seen by none, which is no mask.
  CHECK(work(causal(), 256, 128).groups == std::vector<TileGroup>{{4, 2, 1}, {2, 2, 1}});
  CHECK(work(Mask(), 1000, 64).groups == std::vector<TileGroup>{{16, 0, 16}});
}

TEST_CASE("what is made of masks that arrive takes about as long as the bench says") {
  using cost::LayoutContent;
  const auto features_of = [](std::int64_t length, std::int64_t part_tiles) {
    const std::int64_t tiles = length / 64 * (length / 64);
    mask::MaskFeatures features;
    features.tiles = tiles;
    features.part_tiles = part_tiles;
    return features;
  };
  const auto close_to = [](double time_us) { return doctest::Approx(time_us).epsilon(0.25); };
  // Of an H200, 2026-11-29: attention with a window and global tokens, which arrive, and are known.
  CHECK(cost::layout_us(features_of(128, 4), LayoutContent::Tiles) == close_to(14.3 - 5.0));
  CHECK(cost::layout_us(features_of(1024, 76), LayoutContent::Tiles) == close_to(19.9 - 10.2));
  CHECK(cost::layout_us(features_of(4096, 316), LayoutContent::Tiles) == close_to(32.5 - 22.0));
  // 2026-11-26: dense and random1; a graph of one kernel takes 2.9.
  CHECK(cost::layout_us(features_of(16384, 65536), LayoutContent::Tiles) == close_to(287.7 - 2.9));
  CHECK(cost::layout_us(features_of(16384, 256), LayoutContent::Tiles) < 100);
  CHECK(cost::layout_us(features_of(1024, 256), LayoutContent::Keys) == close_to(50.1 - 2.9));
  CHECK(cost::layout_us(features_of(4096, 4096), LayoutContent::Keys) == close_to(113.6 - 2.9));
  CHECK(cost::layout_us(features_of(4096, 64), LayoutContent::Keys) == close_to(69.5 - 2.9));
  CHECK(cost::layout_us(features_of(16384, 65536), LayoutContent::Runs) < 3);
}

TEST_CASE("tiles that others would wait for are worked on in parts") {
  using cost::LongTiles;
  const auto long_tiles = [](const cost::TileWork& tiles, std::int64_t replicas,
                             std::int64_t workers) {
    return cost::long_tiles(tiles, replicas, replicas, 1, workers);
  };
  const cost::TileWork global{.tile_q = 64, .groups = {{64, 10, 2}, {5, 4, 62}}};
  // 438 entries for each replica: three quarters of what each of 400 workers has are 10.
  CHECK(long_tiles(global, 12, 400) == LongTiles{2, 7});
  // More than eight only where parts are long even so.
  CHECK(long_tiles(global, 12, 660) == LongTiles{2, 8});
  CHECK(long_tiles({.tile_q = 64, .groups = {{256, 10, 2}, {5, 4, 62}}}, 12, 660) ==
        LongTiles{2, 9});
  // A few are long where they are three quarters of it, many where they are more than all of it.
  CHECK(long_tiles({.tile_q = 64, .groups = {{32, 10, 2}, {5, 4, 30}}}, 40, 264) ==
        LongTiles{2, 2});
  CHECK(long_tiles({.tile_q = 64, .groups = {{32, 10, 3}, {5, 4, 29}}}, 37, 264) == LongTiles{});
  // More work than that for each: the long ones are done before the rest.
  CHECK(long_tiles(global, 1000, 400) == LongTiles{});
  // Parts are not made shorter than most tiles are, nor than pays.
  CHECK(long_tiles(global, 1, 10000) == LongTiles{2, 13});
  CHECK(long_tiles({.tile_q = 64, .groups = {{90, 0, 1}, {1, 0, 9}}}, 1, 10000) ==
        LongTiles{1, 16});
  CHECK(long_tiles({.tile_q = 64, .groups = {{4, 0, 9}}}, 1, 10000) == LongTiles{});
  // Sums of wide values take longer: of rows as uneven as causal ones those of more than two
  // shares, of others more than one.
  const auto wide = [](const cost::TileWork& tiles, std::int64_t replicas) {
    return cost::long_tiles(tiles, replicas, replicas, 132, 1, true);
  };
  const cost::TileWork like_causal{.tile_q = 64, .groups = {{32, 0, 4}, {20, 0, 8}, {16, 0, 12}}};
  CHECK(wide(like_causal, 3).count > 0);
  CHECK(long_tiles(like_causal, 5, 132).count > 0);
  CHECK(wide(like_causal, 5) == LongTiles{});
  const cost::TileWork short_causal{.tile_q = 64, .groups = {{16, 0, 4}, {10, 0, 8}, {8, 0, 12}}};
  CHECK(long_tiles(short_causal, 3, 132).count > 0);
  CHECK(wide(short_causal, 3) == LongTiles{});
  const cost::TileWork bigbird{.tile_q = 64, .groups = {{16, 0, 1}, {7, 0, 15}}};
  CHECK(wide(bigbird, 8).count > 0);
  CHECK(long_tiles(bigbird, 18, 132).count > 0);
  CHECK(wide(bigbird, 18) == LongTiles{});
  CHECK(long_tiles({.tile_q = 64, .groups = {}}, 1, 100) == LongTiles{});
  // Two parts of the longest would be shorter than a part may be.
  CHECK(long_tiles({.tile_q = 64, .groups = {{5, 0, 2}, {1, 0, 60}}}, 1, 100) == LongTiles{});
  const cost::TileWork causal_64 = work(causal(), 1024, 64);
  CHECK(long_tiles(causal_64, 12, 396) == LongTiles{7, 2});

  CHECK(cost::in_parts(global, {2, 5}).groups == std::vector<TileGroup>{{13, 2, 10}, {5, 4, 62}});
  CHECK(cost::in_parts(global, {1, 64}).groups ==
        std::vector<TileGroup>{{1, 1, 64}, {64, 10, 1}, {5, 4, 62}});
  CHECK(cost::in_parts(global, {}) == global);
}

TEST_CASE("sections have room in L2, or are waves of tiles of which none is much longer") {
  using cost::Sections;
  CHECK(cost::sections(60, 60) == Sections{60, 60});
  CHECK(cost::sections(61, 60) == Sections{31, 30});
  CHECK(cost::sections(192, 60) == Sections{48, 48});
  const cost::TileWork full{.tile_q = 128, .groups = {{8, 0, 4}}};
  CHECK(cost::sections_of_waves(full, 1024, 60, 132, 1) == Sections{33, 1});
  CHECK(cost::sections_of_waves(full, 33, 60, 132, 1) == Sections{33, 33});
  CHECK(cost::sections_of_waves(full, 1024, 20, 132, 1) == Sections{20, 4});
  CHECK(cost::sections_of_waves(full, 1024, 60, 132, 4) == Sections{32, 32});
  CHECK(cost::sections_of_waves(full, 1024, 60, 12, 4) == Sections{3, 1});
  const cost::TileWork longer{.tile_q = 128, .groups = {{200, 0, 200}}};
  CHECK(cost::sections_of_waves(longer, 10, 6, 132, 1) == Sections{1, 1});
  // Uneven ones are balanced in the last two waves, or as many as L2 has room for.
  const cost::TileWork causal{.tile_q = 128,
                              .groups = {{8, 2, 1}, {6, 2, 1}, {4, 2, 1}, {2, 2, 1}}};
  CHECK(cost::sections_of_waves(causal, 600, 90, 132, 1) == Sections{33, 72});
  CHECK(cost::sections_of_waves(causal, 600, 40, 132, 1) == Sections{33, 39});
  CHECK(cost::sections_of_waves(causal, 60, 90, 132, 1) == Sections{33, 60});
  // One that others would wait for comes first, of all that have room.
  CHECK(cost::sections_of_waves(causal, 600, 90, 132, 4) == Sections{86, 84});
  CHECK(cost::sections_of_waves({.tile_q = 128, .groups = {{13, 2, 1}, {6, 2, 3}}}, 600, 90, 132,
                                1) == Sections{86, 84});
  CHECK(cost::sections_of_waves({.tile_q = 128, .groups = {}}, 4, 90, 132, 1) == Sections{4, 4});
}

TEST_CASE("tiles that leave SMs with nothing to do are worked on in parts") {
  using cost::LongTiles;
  const cost::TileWork full{.tile_q = 64, .groups = {{64, 0, 4}}};
  // As many parts as there are blocks for, 264, of four entries or more and no more than 16.
  CHECK(cost::long_tiles(full, 4, 4, 132, 2) == LongTiles{4, 16});
  CHECK(cost::long_tiles(full, 12, 12, 132, 2) == LongTiles{4, 5});
  CHECK(cost::long_tiles(full, 33, 33, 132, 2) == LongTiles{4, 2});
  CHECK(cost::long_tiles(full, 33, 33, 132, 1) == LongTiles{});
  CHECK(cost::long_tiles(full, 34, 34, 132, 3) == LongTiles{});
  CHECK(cost::long_tiles({.tile_q = 64, .groups = {{24, 0, 4}}}, 4, 4, 132, 2) == LongTiles{4, 6});
  // Shorter ones only where all see as much, and leave two SMs idle each: 5 to 32 % less.
  const auto parts = [](std::vector<TileGroup> groups, std::int64_t replicas) {
    return cost::long_tiles({.tile_q = 64, .groups = std::move(groups)}, replicas, replicas, 132,
                            1);
  };
  CHECK(parts({{14, 0, 4}}, 11) == LongTiles{4, 3});
  CHECK(parts({{14, 0, 4}}, 12) == LongTiles{});  // 18.3 us, and 19.6 in two parts
  CHECK(parts({{13, 0, 4}}, 4) == LongTiles{});
  CHECK(cost::long_tiles({.tile_q = 64, .groups = {{14, 0, 4}}}, 33, 33, 132, 4) == LongTiles{});
  CHECK(parts({{23, 0, 2}, {22, 0, 2}}, 4) == LongTiles{});
  CHECK(parts({{23, 1, 4}}, 4) == LongTiles{});
  CHECK(cost::long_tiles({.tile_q = 64, .groups = {{64, 33, 4}}}, 4, 4, 132, 2) == LongTiles{});
  // All replicas count, though fewer are worked on at a time.
  CHECK(cost::long_tiles(full, 12, 1, 132, 2) == LongTiles{4, 5});
  // The tiles of a causal mask that are no shorter than their parts would be.
  CHECK(cost::long_tiles(work(causal(), 2048, 64), 2, 2, 132, 2) == LongTiles{21, 4});
  // Tiles of a chunk of the last queries: none is so much longer that two would be better.
  const cost::TileWork chunk{
      .tile_q = 64, .groups = {{64, 1, 1}, {63, 1, 1}, {62, 1, 1}, {61, 1, 1}, {60, 1, 1}}};
  CHECK(cost::long_tiles(chunk, 32, 12, 132, 2) == LongTiles{});
}
