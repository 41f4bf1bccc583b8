#include "mask/picture.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "error_of.hpp"
#include "mask/evaluate.hpp"

namespace stof::mask {
namespace {

TEST_CASE("picture: a pixel a pair says what the pair and its tile are") {
  const Extent extent{.q_len = 130, .kv_len = 200};
  const Mask mask = sliding_window(70, 3) && !strided(5);
  const base::Image image = draw(build_layout(mask, extent), 0, 1);
  REQUIRE(image.width == 200);
  REQUIRE(image.height == 130);
  Evaluator evaluator(mask, extent);
  for (std::int64_t q = 0; q < 130; ++q) {
    for (std::int64_t k = 0; k < 200; ++k) {
      const base::Rgb pixel = image.row(static_cast<int>(q))[k];
      const bool is_seen = evaluator.at({.query = q}, k);
      CHECK(is_seen == (pixel == kFullTile || pixel == kSeenInPart));
    }
  }
  CHECK(image.row(0)[199] == kEmptyTile);
}

TEST_CASE("picture: tiles that are seen whole, and pixels that stand for many pairs") {
  const MaskLayout layout = build_layout(block_causal(64), {.q_len = 128, .kv_len = 128});
  const base::Image tiles = draw(layout, 0, 64);
  CHECK(tiles.pixels == std::vector{kFullTile, kEmptyTile, kFullTile, kFullTile});
  const base::Image one = draw(layout, 0, 128);  // three parts of one colour, one of the other
  CHECK(one.pixels == std::vector{base::Rgb{85, 120, 167}});

  // Half of the pairs of each 2 x 2 block.
  const MaskLayout half =
      build_layout(Mask((query_position() + key_position()) % 2 == 0), {.q_len = 64, .kv_len = 64});
  for (const base::Rgb& pixel : draw(half, 0, 2).pixels) {
    CHECK(pixel == base::Rgb{234, 170, 124});
  }
}

TEST_CASE("picture: planes of heads differ") {
  const MaskLayout layout = build_layout(Mask(key_position() < 64 * (head_index() + 1)),
                                         {.heads = 2, .q_len = 64, .kv_len = 128});
  CHECK(draw(layout, 0, 64).pixels == std::vector{kFullTile, kEmptyTile});
  CHECK(draw(layout, 1, 64).pixels == std::vector{kFullTile, kFullTile});
  CHECK(test::error_of([&] { draw(layout, 2, 64); }) == "mask: plane 2 is not in 0 to 1");
  CHECK(test::error_of([&] { draw(layout, 0, 3); }) ==
        "mask: a cell of 3 pairs is no power of two");
  MaskLayout large = layout;
  large.extent.q_len = large.extent.kv_len = 100000;
  CHECK(
      test::error_of([&] { draw(large, 0, 1); }) ==
      "mask: a picture of 100000 x 100000 pixels, of 1 x 1 pairs each, has more than 16777216, the "
      "limit; a larger cell makes fewer");
}

TEST_CASE("picture: the cell that keeps a picture small") {
  CHECK(cell_for({.q_len = 1024, .kv_len = 1000}, 1024) == 1);
  CHECK(cell_for({.q_len = 10, .kv_len = 1025}, 1024) == 2);
  CHECK(cell_for({.q_len = 65536, .kv_len = 1}, 1024) == 64);
}

}  // namespace
}  // namespace stof::mask
