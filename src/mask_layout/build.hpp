#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <cuda_runtime_api.h>

#include "cuda/device_array.hpp"
#include "cuda/launches.hpp"
#include "mask/features.hpp"
#include "mask/layout.hpp"
#include "mask_layout/device_mask.hpp"
#include "mask_layout/layout.hpp"
#include "mask_layout/memory.hpp"

namespace stof::mask_layout {

// A layout that was built once, and the memory that it is in.
class BuiltLayout {
 public:
  const Layout& layout() const { return buffers_.layout; }
  const LayoutCounts& counts() const { return counts_; }

  // As mask::measure; for layouts with rows.
  mask::MaskFeatures features(const Mask& mask, const mask::Extent& extent) const;

  friend BuiltLayout build_layout(const DeviceMask& mask, const LayoutRequest& request,
                                  cudaStream_t stream);

 private:
  Buffers buffers_;
  LayoutCounts counts_;
  std::vector<cuda::DeviceArray<std::byte>> memory_;
};

// The arrays of mask::build_layout, and what is asked for besides. Waits for the stream: for the
// tiles that intervals leave open before lists get their memory, for the counts at the end, and,
// where keys are asked for, for their number. Throws GraphError where 32 bits do not count what is
// asked for, or an input holds what it may not; CudaError. That no query sees any key is no error
// here: counts() tells.
BuiltLayout build_layout(const DeviceMask& mask, const LayoutRequest& request = {},
                         cudaStream_t stream = nullptr);

// A layout that is built again on each run, in memory that another gives, without waiting and
// without allocating. Builds with the same mask come one after the other.
class RunTimeLayout {
 public:
  // At most max_part_tiles part tiles (0: as many as there are tiles) and, for key_rows, max_keys
  // seen pairs have room; with more the layout is empty and its status says why. Throws as
  // build_layout, but needs no GPU.
  RunTimeLayout(const Grid& grid, LayoutRequest request, std::int64_t max_part_tiles,
                std::int64_t max_keys = 0);

  std::size_t workspace_bytes() const { return workspace_bytes_; }
  // The layout in a workspace that is aligned to 256 bytes, to be read after a build.
  Layout place(void* workspace) const;
  // Adds the kernels that build the layout of a mask of this grid there. The report, if any, is in
  // memory that the host and the GPU read.
  void build(const DeviceMask& mask, void* workspace, LayoutReport* report,
             cuda::Launches& launches) const;

 private:
  bool has_lists() const;
  // Whether rows are asked for that lists of tiles do not tell.
  bool has_own_rows() const;
  Buffers carve(Carver& carver) const;

  Grid grid_;
  LayoutRequest request_;
  Capacity capacity_;
  std::size_t workspace_bytes_ = 0;
};

}  // namespace stof::mask_layout
