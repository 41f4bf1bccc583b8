#pragma once

#include <cstdint>

namespace stof::reference {

// tile[rows x columns] = sum over depth of a[depth][rows] times b[depth][columns], in double and in
// order of depth: the innermost part of a blocked matrix product (Goto and van de Geijn, "Anatomy
// of high-performance matrix multiplication", 2008).
struct MicroKernel {
  int rows = 0;
  int columns = 0;
  void (*multiply)(std::int64_t depth, const double* a, const double* b, double* tile) = nullptr;
};

// Bounds over all kernels.
constexpr int kMaxTileElements = 192;

// The widest one that this CPU runs.
MicroKernel best_micro_kernel();

}  // namespace stof::reference
