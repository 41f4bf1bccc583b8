#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cuda/device_array.hpp"
#include "cuda/launches.hpp"
#include "mask/extent.hpp"
#include "mask_layout/inputs.hpp"
#include "mask_layout/stages.hpp"
#include "mask_layout/views.hpp"
#include "stof/mask.hpp"
#include "stof/tensor.hpp"

namespace stof::mask_layout {

// What captures read, by name: tensors of the dtype and rank of the capture. Those on the host are
// copied; those on the GPU are read on each build, and must live as long.
using CaptureTensors = std::map<std::string, TensorView, std::less<>>;

// The extents of the layout of what the mask lets see, and each of the inputs too. Throws
// GraphError where the mask does not fit (mask::check_extent), or there are more tiles than 32 bits
// count.
Grid grid_of(const Mask& mask, const mask::Extent& extent, std::span<const MaskInput> inputs);

// A mask for one attention on the current GPU, in the form that kernels evaluate: what the mask
// lets see, and each of the inputs too.
class DeviceMask {
 public:
  // Throws what grid_of does, GraphError where a capture has no value or one of another dtype or
  // rank, or there are more than kMaxInputs or kMaxCaptures, and CudaError.
  DeviceMask(const Mask& mask, const mask::Extent& extent, const CaptureTensors& captures = {},
             std::vector<MaskInput> inputs = {});

  const MaskView& view() const { return view_; }
  const Grid& grid() const { return grid_; }
  // The view whose inputs are staged where they can be, and what its builds count in. Of a mask
  // without captures the tiles are worked out once, on the first call, and are an input of theirs.
  // That waits for the GPU; throws as build_layout.
  MaskView staged_view() const;
  Arrivals* arrivals() const { return arrivals_; }

  // Other memory of the same shape, for the view and what write_bits adds from then on; row_ptr is
  // that of a Csr.
  void set_input(std::size_t index, const void* data, const std::int32_t* row_ptr = nullptr);
  void set_capture(const std::string& name, const void* data);

  // Adds what writes the bits of inputs that have none. It comes before the first pair is
  // evaluated, and behind what clears the status.
  void write_bits(std::int32_t* status, cuda::Launches& launches) const;

 private:
  // Tiles of the mask without its inputs.
  struct TilesAhead {
    std::optional<Part> part;  // none where every pair is seen
    std::vector<cuda::DeviceArray<std::byte>> memory;
  };
  TilesAhead work_out_ahead() const;

  Mask mask_;
  mask::Extent extent_;
  MaskView view_;
  Grid grid_;
  std::vector<MaskInput> inputs_;
  std::vector<std::uint64_t*> input_bits_;  // one an input; null where it needs none
  Arrivals* arrivals_ = nullptr;
  std::map<std::string, std::vector<std::size_t>> captures_;  // places in the view
  std::vector<cuda::DeviceArray<std::byte>> memory_;
  mutable std::optional<TilesAhead> tiles_ahead_;
};

}  // namespace stof::mask_layout
