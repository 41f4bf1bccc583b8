#include "mask/picture.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <vector>

#include <fmt/format.h>

#include "stof/error.hpp"

namespace stof::mask {

namespace {

enum PairClass : std::uint8_t { FullTile, SeenInPart, HiddenInPart, EmptyTile };

constexpr std::array kColours = {kFullTile, kSeenInPart, kHiddenInPart, kEmptyTile};

constexpr std::int64_t kMaxPixels = 1 << 24;

// How many pairs of each class a pixel stands for.
using Counts = std::array<std::int64_t, kColours.size()>;

base::Rgb mean_colour(const Counts& counts) {
  std::array<std::int64_t, 3> sums = {};
  std::int64_t pairs = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    sums[0] += counts[i] * kColours[i].red;
    sums[1] += counts[i] * kColours[i].green;
    sums[2] += counts[i] * kColours[i].blue;
    pairs += counts[i];
  }
  const auto mean = [&](std::int64_t sum) {
    return static_cast<std::uint8_t>((sum + pairs / 2) / pairs);
  };
  return {mean(sums[0]), mean(sums[1]), mean(sums[2])};
}

class Drawing {
 public:
  Drawing(const Extent& extent, std::int64_t cell)
      : extent_(extent),
        cell_(cell),
        width_(ceil_div(extent.kv_len)),
        height_(ceil_div(extent.q_len)),
        counts_(static_cast<std::size_t>(checked_pixels())) {}

  // The existing pairs of a tile, by the class that `class_of(row, column)` gives.
  template <typename ClassOf>
  void add_tile(std::int64_t tile_row, std::int64_t tile_col, const ClassOf& class_of) {
    const std::int64_t q = tile_row * kTile, k = tile_col * kTile;
    const std::int64_t rows = std::min(kTile, extent_.q_len - q);
    const std::int64_t columns = std::min(kTile, extent_.kv_len - k);
    for (std::int64_t row = 0; row < rows; ++row) {
      Counts* line = &counts_[static_cast<std::size_t>((q + row) / cell_ * width_)];
      for (std::int64_t column = 0; column < columns; ++column) {
        ++line[(k + column) / cell_][class_of(row, column)];
      }
    }
  }

  base::Image image() const {
    base::Image image{.width = static_cast<int>(width_), .height = static_cast<int>(height_)};
    image.pixels.reserve(counts_.size());
    for (const Counts& counts : counts_) {
      image.pixels.push_back(mean_colour(counts));
    }
    return image;
  }

 private:
  std::int64_t ceil_div(std::int64_t length) const { return (length + cell_ - 1) / cell_; }

  std::int64_t checked_pixels() const {
    if (width_ > kMaxPixels / height_) {
      throw GraphError(
          fmt::format("mask: a picture of {} x {} pixels, of {} x {} pairs each, has more than {}, "
                      "the limit; a "
                      "larger cell makes fewer",
                      width_, height_, cell_, cell_, kMaxPixels));
    }
    return width_ * height_;
  }

  Extent extent_;
  std::int64_t cell_, width_, height_;
  std::vector<Counts> counts_;
};

// Which tiles of a tile row are listed, and where in the list.
std::vector<std::int64_t> positions(const TileRows& rows, std::int64_t r, std::int64_t tile_cols) {
  std::vector<std::int64_t> result(static_cast<std::size_t>(tile_cols), -1);
  for (std::int64_t i = rows.row_ptr[r]; i < rows.row_ptr[r + 1]; ++i) {
    result[static_cast<std::size_t>(rows.col_idx[i])] = i;
  }
  return result;
}

}  // namespace

base::Image draw(const MaskLayout& layout, std::int64_t plane, std::int64_t cell) {
  if (cell < 1 || !std::has_single_bit(static_cast<std::uint64_t>(cell))) {
    throw GraphError(fmt::format("mask: a cell of {} pairs is no power of two", cell));
  }
  const std::int64_t planes = layout.mask_batch * layout.mask_heads;
  if (plane < 0 || plane >= planes) {
    throw GraphError(fmt::format("mask: plane {} is not in 0 to {}", plane, planes - 1));
  }
  Drawing drawing(layout.extent, cell);
  for (std::int64_t i = 0; i < layout.tile_rows; ++i) {
    const std::int64_t r = plane * layout.tile_rows + i;
    const auto full = positions(layout.full, r, layout.tile_cols);
    const auto part = positions(layout.part, r, layout.tile_cols);
    for (std::int64_t j = 0; j < layout.tile_cols; ++j) {
      const auto column = static_cast<std::size_t>(j);
      if (part[column] < 0) {
        const PairClass all = full[column] < 0 ? EmptyTile : FullTile;
        drawing.add_tile(i, j, [&](std::int64_t, std::int64_t) { return all; });
        continue;
      }
      const auto rows = bitmap_rows(layout.bitmap(layout.part_bitmap[part[column]]));
      drawing.add_tile(i, j, [&](std::int64_t row, std::int64_t key) {
        return (rows[static_cast<std::size_t>(row)] >> key & 1) != 0 ? SeenInPart : HiddenInPart;
      });
    }
  }
  return drawing.image();
}

std::int64_t cell_for(const Extent& extent, std::int64_t max_pixels) {
  std::int64_t cell = 1;
  while (std::max(extent.q_len, extent.kv_len) > cell * max_pixels) {
    cell *= 2;
  }
  return cell;
}

}  // namespace stof::mask
