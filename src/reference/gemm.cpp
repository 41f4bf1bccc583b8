#include "reference/gemm.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "reference/micro_kernel.hpp"

namespace stof::reference {

namespace {

// Blocks of a and b that stay in a second-level cache of 1 MiB while they are used.
constexpr std::int64_t kDepthBlock = 256;
constexpr std::int64_t kRowBlock = 128;
constexpr std::int64_t kColumnBlock = 192;

// Lines that run along the depth: rows of a, or columns of b.
struct Lines {
  Elements elements;
  std::int64_t line_stride = 0;
  std::int64_t depth_stride = 0;
};

// Copies `count` lines into panels of `width` of them, panel[depth][width], the last one filled
// with zeros.
void pack(const Lines& lines, std::int64_t count, std::int64_t depth, std::int64_t width,
          double* to) {
  std::visit(
      [&](const auto* from) {
        for (std::int64_t first = 0; first < count; first += width) {
          const std::int64_t used = std::min(width, count - first);
          const auto* corner = from + first * lines.line_stride;
          for (std::int64_t k = 0; k < depth; ++k) {
            const auto* element = corner + k * lines.depth_stride;
            for (std::int64_t i = 0; i < used; ++i) {
              to[i] = to_double(element[i * lines.line_stride]);
            }
            std::fill(to + used, to + width, 0.0);
            to += width;
          }
        }
      },
      lines.elements);
}

std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

struct BlockSize {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t depth = 0;
};

// Adds the product of packed panels to a block of c.
void add_product(const MicroKernel& kernel, const BlockSize& block, const double* a,
                 const double* b, double* c, std::int64_t c_stride) {
  std::array<double, kMaxTileElements> tile;
  for (std::int64_t column = 0; column < block.columns; column += kernel.columns) {
    const std::int64_t columns = std::min<std::int64_t>(kernel.columns, block.columns - column);
    for (std::int64_t row = 0; row < block.rows; row += kernel.rows) {
      const std::int64_t rows = std::min<std::int64_t>(kernel.rows, block.rows - row);
      kernel.multiply(block.depth, a + row * block.depth, b + column * block.depth, tile.data());
      for (std::int64_t i = 0; i < rows; ++i) {
        double* to = c + (row + i) * c_stride + column;
        const double* from = tile.data() + i * kernel.columns;
        for (std::int64_t j = 0; j < columns; ++j) {
          to[j] += from[j];
        }
      }
    }
  }
}

}  // namespace

Elements operator+(const Elements& elements, std::int64_t offset) {
  return std::visit([&](const auto* from) { return Elements(from + offset); }, elements);
}

void multiply(const MatrixView& a, const MatrixView& b, const GemmExtents& extents, double* c,
              std::int64_t c_stride) {
  for (std::int64_t row = 0; row < extents.m; ++row) {
    std::fill_n(c + row * c_stride, extents.n, 0.0);
  }
  const MicroKernel kernel = best_micro_kernel();
  const std::int64_t depth_block = std::min(kDepthBlock, extents.k);
  const std::int64_t row_block = round_up(std::min(kRowBlock, extents.m), kernel.rows);
  const std::int64_t column_block = round_up(std::min(kColumnBlock, extents.n), kernel.columns);
  std::vector<double> a_panels(static_cast<std::size_t>(row_block * depth_block));
  std::vector<double> b_panels(static_cast<std::size_t>(column_block * depth_block));
  for (std::int64_t column = 0; column < extents.n; column += column_block) {
    for (std::int64_t k = 0; k < extents.k; k += depth_block) {
      BlockSize block{.columns = std::min(column_block, extents.n - column),
                      .depth = std::min(depth_block, extents.k - k)};
      const MatrixView b_block = b.from(k, column);
      pack({b_block.elements, b.column_stride, b.row_stride}, block.columns, block.depth,
           kernel.columns, b_panels.data());
      for (std::int64_t row = 0; row < extents.m; row += row_block) {
        block.rows = std::min(row_block, extents.m - row);
        const MatrixView a_block = a.from(row, k);
        pack({a_block.elements, a.row_stride, a.column_stride}, block.rows, block.depth,
             kernel.rows, a_panels.data());
        add_product(kernel, block, a_panels.data(), b_panels.data(), c + row * c_stride + column,
                    c_stride);
      }
    }
  }
}

}  // namespace stof::reference
