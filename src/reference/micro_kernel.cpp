// One body, compiled for each vector width: the sums of a tile fill the registers of that width,
// less those for a row of b and one element of a.
#include "reference/micro_kernel.hpp"

#include <cstddef>
#include <cstring>

namespace stof::reference {

namespace {

template <int kLanes>
struct Lanes {
  using Vector [[gnu::vector_size(kLanes * sizeof(double))]] = double;
};

template <int kLanes, int kRows, int kVectors>
[[gnu::always_inline]] inline void multiply_tile(std::int64_t depth, const double* a,
                                                 const double* b, double* tile) {
  using Vector = typename Lanes<kLanes>::Vector;
  Vector sums[kRows][kVectors] = {};
  for (std::int64_t k = 0; k < depth; ++k) {
    Vector row[kVectors];
#pragma GCC unroll 4
    for (std::ptrdiff_t j = 0; j < kVectors; ++j) {
      std::memcpy(&row[j], b + j * kLanes, sizeof(Vector));
    }
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
      for (int j = 0; j < kVectors; ++j) {
        sums[i][j] += a[i] * row[j];
      }
    }
    a += kRows;
    b += std::ptrdiff_t{kLanes} * kVectors;
  }
#pragma GCC unroll 8
  for (std::ptrdiff_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (std::ptrdiff_t j = 0; j < kVectors; ++j) {
      std::memcpy(tile + (i * kVectors + j) * kLanes, &sums[i][j], sizeof(Vector));
    }
  }
}

template <int kLanes, int kRows, int kVectors>
constexpr MicroKernel kernel_of(void (*multiply)(std::int64_t, const double*, const double*,
                                                 double*)) {
  static_assert(kRows * kVectors * kLanes <= kMaxTileElements);
  return {.rows = kRows, .columns = kVectors * kLanes, .multiply = multiply};
}

void multiply_2_lanes(std::int64_t depth, const double* a, const double* b, double* tile) {
  multiply_tile<2, 4, 2>(depth, a, b, tile);
}

#ifdef __x86_64__

[[gnu::target("avx2,fma")]] void multiply_4_lanes(std::int64_t depth, const double* a,
                                                  const double* b, double* tile) {
  multiply_tile<4, 4, 3>(depth, a, b, tile);
}

[[gnu::target("avx512f")]] void multiply_8_lanes(std::int64_t depth, const double* a,
                                                 const double* b, double* tile) {
  multiply_tile<8, 8, 3>(depth, a, b, tile);
}

#endif

}  // namespace

MicroKernel best_micro_kernel() {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx512f")) {
    return kernel_of<8, 8, 3>(multiply_8_lanes);
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    return kernel_of<4, 4, 3>(multiply_4_lanes);
  }
#endif
  return kernel_of<2, 4, 2>(multiply_2_lanes);
}

}  // namespace stof::reference
