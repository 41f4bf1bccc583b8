#include "mask_layout/build.hpp"

#include <limits>
#include <string>

#include <doctest/doctest.h>

#include "../../tools/bench/masks.hpp"
#include "cuda/stream.hpp"
#include "layouts.hpp"
#include "mask/random_mask.hpp"
#include "stof/error.hpp"

using namespace stof;
using mask::Extent;

TEST_CASE("ready-made masks") {
  const std::vector<Mask> masks = {Mask(),
                                   causal(),
                                   causal_bottom_right(),
                                   sliding_window(100, 30),
                                   dilated(20, 20, 3),
                                   strided(7),
                                   global_tokens(70, 20),
                                   random_tokens(0.01, 5) || Mask(key_position() == 0),
                                   random_blocks(48, 2, 3),
                                   random_blocks(8, 40, 5),
                                   random_blocks(16, 3, 5),
                                   longformer(90, 10),
                                   bigbird(64, 3, 1, 2, 9),
                                   prefix(150) && !global_tokens(40, 2),
                                   documents({0, 100, 101, 400, 1000}) && causal(),
                                   share_question({{0, 33, 200, 1000}}),
                                   block_causal(48),
                                   window_2d(32, 3),
                                   key_padding({{500, 1, 64}})};
  for (const Mask& mask : masks) {
    test::check_build(mask, {.batch = 3, .heads = 1, .q_len = 1000, .kv_len = 777});
  }
}

TEST_CASE("bench masks") {
  for (const std::string_view name : bench::mask_names()) {
    test::check_build(bench::mask(name, 2048), {.q_len = 2048, .kv_len = 2048});
  }
}

TEST_CASE("random masks of expressions and data at hostile lengths") {
  for (const Extent& extent : test::hostile_extents()) {
    test::RandomMask random(static_cast<unsigned>(extent.q_len * 31 + extent.kv_len), extent);
    for (int i = 0; i < 12; ++i) {
      test::check_build(random.next(3).mask || Mask(key_position() == 0), extent);
    }
  }
}

TEST_CASE("planes for batch elements and heads") {
  const Expr reach = query_position() + 64 * head_index() - 30 * batch_index();
  test::check_build(Mask(key_position() <= reach),
                    {.batch = 3, .heads = 5, .q_len = 300, .kv_len = 500});
}

TEST_CASE("a grid that is too large for one cluster") {
  const Extent extent = {.batch = 24, .heads = 24, .q_len = 700, .kv_len = 700};
  const Expr reach = query_position() + 8 * head_index() - 30 * batch_index();
  const Mask mask(key_position() <= reach);
  const mask_layout::DeviceMask device(mask, extent);
  const auto built = mask_layout::build_layout(device, {.tile_q = {16, 64, 128, 256}});
  const mask::MaskLayout expected = mask::build_layout(mask, extent);
  test::check_layout(built.layout(), expected);
  test::check_at_once(device, expected, 0);
}

TEST_CASE("draws and curves by rows, at lengths where they may carry and wrap") {
  const Expr q = query_position();
  const Expr k = key_position();
  const Table groups("groups", std::vector<std::int64_t>{4, 1, 1, 7, -2, 1});
  for (const Extent& extent : test::hostile_extents()) {
    const Mask seen(k == 0);
    test::check_build(random_tokens(0.3, 11) || seen, extent);
    test::check_build(random_tokens(1, 11) || seen, extent);
    test::check_build(Mask(keep(3, k, q, 0.5)) || seen, extent);
    test::check_build(Mask(keep(3, q - k, q, 0.2)) || seen, extent);
    test::check_build(Mask(keep(q, k + 5, 1, 0.7)) || seen, extent);
    test::check_build(Mask((q - k) % 3 == 0 && abs(k - q) <= 70) || seen, extent);
    test::check_build(Mask(groups[k % 6] == groups[q % 6] || groups[k - 3] > q % 5) || seen,
                      extent);
    test::check_build(Mask((k + 7) / 5 >= q / 3 && (q - k - 9) / -4 != 2) || seen, extent);
    test::check_build(Mask((k & 12) == (q & 12)) || Mask(q % 32 > k % 32) || seen, extent);
  }
}

TEST_CASE("tiles that see what is drawn, or all but that, beside tiles that do not") {
  // As many tiles as the kernel for what is drawn asks for, and few.
  const Extent extent = {.batch = 2, .heads = 1, .q_len = 6500, .kv_len = 6700};
  const Extent small = {.batch = 2, .heads = 1, .q_len = 330, .kv_len = 700};
  const Mask drawn = random_tokens(0.02, 3);
  const Mask few = random_tokens(0.0001, 3);
  const Mask diagonal(query_position() == key_position());
  const Expr by_batch = keep(batch_index(), query_position() % 5, key_position(), 0.4);
  for (const Mask& mask :
       {drawn || diagonal, drawn && causal(), !drawn && causal(), !(drawn && causal()),
        few || diagonal, Mask(by_batch) && causal(), (drawn && causal()) || random_tokens(0.01, 9),
        drawn && Mask(query_position() * key_position() % 7 < 5)}) {
    test::check_build(mask, extent);
    test::check_build(mask, small);
  }
  const auto drawn_part = [](const Mask& mask, const Extent& of) {
    return mask_layout::DeviceMask(mask, of).view().drawn_part;
  };
  CHECK(drawn_part(drawn || diagonal, extent) == 0);
  CHECK(drawn_part(causal() && !(few || diagonal), extent) == 1);
  CHECK(drawn_part(drawn || few, extent) == -1);
  CHECK(drawn_part(diagonal, extent) == -1);
  CHECK(drawn_part(drawn || diagonal, small) == -1);
}

TEST_CASE("rows of a wide decode are one tile row") {
  test::check_build(strided(5) || sliding_window(3000, 0),
                    {.batch = 2, .heads = 1, .q_len = 1, .kv_len = 40000});
}

TEST_CASE("masks that are too deep for a plain walk") {
  Mask mask = causal();
  const Extent extent = {.q_len = 100, .kv_len = 100};
  std::vector<std::uint64_t> words(200);
  for (int i = 0; i < 100; ++i) {
    words[2 * i + i / 64] |= std::uint64_t{1} << (i % 64);
    mask = Mask::bits(words, {100, 100}) || (mask && Mask::bits(words, {100, 100}));
  }
  test::check_build(mask, extent);
}

TEST_CASE("a mask that nobody sees has no entries, and an extent that does not fit is refused") {
  const Extent extent = {.q_len = 100, .kv_len = 200};
  const mask_layout::DeviceMask nothing(Mask(key_position() > 500), extent);
  const mask_layout::BuiltLayout built =
      mask_layout::build_layout(nothing, {.tile_q = {128}, .rows = true, .key_rows = true});
  CHECK(built.counts().full_tiles + built.counts().part_tiles == 0);
  CHECK(built.counts().empty_rows == 100);
  CHECK(test::fetch(built.layout().load.row_ptr, 3) == test::Indices{0, 0, 0});
  CHECK_THROWS_WITH_AS(mask_layout::build_layout(nothing, {.tile_q = {48}}),
                       "mask: tiles of 48 queries; 16, 32, 64, 128, 192 and 256 can be derived",
                       GraphError);
  CHECK_THROWS_WITH_AS(mask_layout::build_layout(nothing, {.tile_q = {64, 64}}),
                       "mask: tiles of 64 queries are asked for twice", GraphError);
  CHECK_THROWS_AS(mask_layout::DeviceMask(causal(), {.q_len = 0, .kv_len = 9}), GraphError);
}

TEST_CASE("what is not asked for is not there") {
  const Extent extent = {.q_len = 100, .kv_len = 200};
  const mask_layout::BuiltLayout built =
      mask_layout::build_layout(mask_layout::DeviceMask(causal(), extent));
  CHECK(built.layout().attention_tiles.empty());
  CHECK(built.layout().rows.first == nullptr);
  CHECK(built.layout().rows.key_col == nullptr);
}

TEST_CASE("linear masks whose numbers wrap") {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  const Expr q = query_position();
  const Expr k = key_position();
  const Extent extent = {.q_len = 100, .kv_len = 300};
  for (const std::int64_t gap : {0, 1, 64, 130}) {
    test::check_build(Mask(k + (kMost - gap) > q || k == 0), extent);
    test::check_build(Mask(q + (kMost - gap) - k != q || k == 0), extent);
    test::check_build(Mask((k >= q + gap) == (q >= 50)) && Mask(!(k > 250)), extent);
  }
}
