#pragma once

#include <cstdint>
#include <vector>

#include <cuda.h>

namespace stof::cuda {

// A tile of a tensor in device memory as TMA copies it, as in the CUDA driver API's section on
// tensor maps. Axes run from the innermost, which is contiguous.
struct TensorMapSpec {
  void* data = nullptr;  // aligned to 16 bytes
  CUtensorMapDataType dtype = CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
  std::vector<std::uint64_t> extents;        // 1 to 5 axes, in elements
  std::vector<std::uint64_t> strides_bytes;  // of every axis but the innermost
  std::vector<std::uint32_t> box;            // extents of the tile
  CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_128B;
  CUtensorMapL2promotion l2_promotion = CU_TENSOR_MAP_L2_PROMOTION_L2_256B;
};

// Touches no GPU, but needs a driver. Elements out of bounds read as 0. Throws CudaError for what
// the driver refuses, such as strides that 16 does not divide.
CUtensorMap encode_tensor_map(const TensorMapSpec& spec);

}  // namespace stof::cuda
