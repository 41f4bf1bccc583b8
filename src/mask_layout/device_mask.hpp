#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>

#include "cuda/device_array.hpp"
#include "mask/extent.hpp"
#include "mask_layout/inputs.hpp"
#include "mask_layout/views.hpp"
#include "stof/mask.hpp"
#include "stof/tensor.hpp"

namespace stof::mask_layout {

// What captures read, by name: tensors of the dtype and rank of the capture. Those on the host are
// copied; those on the GPU are read on each build, and must live as long.
using CaptureTensors = std::map<std::string, TensorView, std::less<>>;

// A mask for one attention on the current GPU, in the form that kernels evaluate: what the mask
// lets see, and each of the inputs too.
class DeviceMask {
 public:
  // Throws GraphError where the mask does not fit (mask::check_extent), there are more tiles than
  // 32 bits count, or a capture has no value or one of another dtype or rank; CudaError.
  DeviceMask(const Mask& mask, const mask::Extent& extent, const CaptureTensors& captures = {},
             std::vector<MaskInput> inputs = {});

  const MaskView& view() const { return view_; }
  const Grid& grid() const { return grid_; }

  // Enqueues what must come before the mask is evaluated: the inputs are checked.
  void prepare(LayoutCounts* counts, cudaStream_t stream) const;

 private:
  MaskView view_;
  Grid grid_;
  std::int64_t batch_ = 1;
  std::vector<MaskInput> inputs_;
  std::vector<std::uint64_t*> input_bits_;  // one an input; null where it needs none
  std::vector<cuda::DeviceArray<std::byte>> memory_;
};

}  // namespace stof::mask_layout
