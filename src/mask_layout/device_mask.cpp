#include "mask_layout/device_mask.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "cuda/check.hpp"
#include "mask/layout.hpp"
#include "mask_layout/build.hpp"
#include "mask_layout/upload.hpp"
#include "stof/error.hpp"

namespace stof::mask_layout {

namespace {

Part part_of(const MaskInput& input, const Grid& grid) {
  Part part{.data = input.data,
            .batch = input.batch,
            .heads = input.heads,
            .rows = grid.q_len,
            .columns = grid.kv_len};
  switch (input.form) {
    case InputForm::KeyLengths:
      part.kind = PartKind::KeyLengths;
      break;
    case InputForm::CuSeqlens:
      part.kind = PartKind::Documents;
      part.columns = input.count;
      break;
    case InputForm::Dense:
      part.kind = PartKind::Bytes;
      break;
    case InputForm::Csr:
      part.kind = PartKind::Bits;
      break;
  }
  return part;
}

}  // namespace

Grid grid_of(const Mask& mask, const mask::Extent& extent, std::span<const MaskInput> inputs) {
  mask::check_extent(mask, extent);
  bool by_batch = mask.uses_batch();
  bool by_head = mask.uses_head();
  for (const MaskInput& input : inputs) {
    by_batch = by_batch || input.form == InputForm::KeyLengths || input.batch > 1;
    by_head = by_head || input.heads > 1;
  }
  const mask::MaskLayout layout = mask::empty_layout(extent, by_batch, by_head);
  return {.q_len = extent.q_len,
          .kv_len = extent.kv_len,
          .mask_batch = layout.mask_batch,
          .mask_heads = layout.mask_heads,
          .tile_rows = layout.tile_rows,
          .tile_cols = layout.tile_cols};
}

// The kernel for tiles of what is drawn took 30 us more than the other on an H200 with 256 tiles,
// 20 more with 4096, and 200 less with 65536, when it interpreted rows itself; both are faster
// since.
constexpr std::int64_t kLeastDrawnTiles = 10240;

DeviceMask::DeviceMask(const Mask& mask, const mask::Extent& extent, const CaptureTensors& captures,
                       std::vector<MaskInput> inputs)
    : mask_(mask),
      extent_(extent),
      grid_(grid_of(mask, extent, inputs)),
      inputs_(std::move(inputs)) {
  if (inputs_.size() > kMaxInputs) {
    throw GraphError(
        fmt::format("mask: {} inputs, more than the limit of {}", inputs_.size(), kMaxInputs));
  }
  Uploader uploader(captures);
  uploader.add(mask);
  for (const MaskInput& input : inputs_) {
    const std::int64_t words = input.form == InputForm::Csr ? grid_.q_len * grid_.tile_cols : 0;
    input_bits_.push_back(words == 0 ? nullptr
                                     : reinterpret_cast<std::uint64_t*>(
                                           uploader.allocate(sizeof(std::uint64_t) * words)));
  }
  arrivals_ = reinterpret_cast<Arrivals*>(uploader.allocate(sizeof(Arrivals)));
  STOF_CUDA(cudaMemset(arrivals_, 0, sizeof(Arrivals)));
  view_ = uploader.finish();
  if (grid_.tile_count() < kLeastDrawnTiles) {
    view_.drawn_part = -1;
  }
  if (view_.drawn_part >= 0) {
    view_.row_numbers = reinterpret_cast<std::int64_t*>(
        uploader.allocate(sizeof(std::int64_t) * static_cast<std::size_t>(grid_.query_rows())));
  }
  for (const MaskInput& input : inputs_) {
    Part& part = view_.inputs[view_.input_count];
    part = part_of(input, grid_);
    if (input.form == InputForm::Csr) {
      part.data = input_bits_[view_.input_count];
    }
    ++view_.input_count;
  }
  captures_ = uploader.take_device_captures();
  memory_ = uploader.take_memory();
}

MaskView DeviceMask::staged_view() const {
  MaskView view = view_;
  view.is_staged = true;
  view.drawn_part = -1;
  if (mask_.has_captures()) {
    return view;
  }
  if (!tiles_ahead_.has_value()) {
    tiles_ahead_ = work_out_ahead();
  }
  if (tiles_ahead_->part.has_value()) {
    view.inputs[view.input_count++] = *tiles_ahead_->part;
  }
  view.part_count = 0;
  view.step_count = 0;
  view.slots = 0;
  view.row_slots = 0;
  return view;
}

DeviceMask::TilesAhead DeviceMask::work_out_ahead() const {
  TilesAhead ahead;
  const BuiltLayout built = build_layout(DeviceMask(mask_, extent_));
  const Layout& layout = built.layout();
  const Grid& grid = layout.grid;
  if (built.counts().full_tiles == grid.tile_count()) {
    return ahead;
  }
  const auto keep = [&]<typename T>(const T* values, std::int64_t count) {
    const std::size_t size_bytes = sizeof(T) * static_cast<std::size_t>(count);
    std::byte* memory = ahead.memory.emplace_back(std::max<std::size_t>(size_bytes, 1)).data();
    STOF_CUDA(cudaMemcpy(memory, values, size_bytes, cudaMemcpyDeviceToDevice));
    return reinterpret_cast<const T*>(memory);
  };
  ahead.part =
      Part{.kind = PartKind::Tiles,
           .data = keep(layout.bitmaps, built.counts().distinct_bitmaps * mask::kTileWords),
           .row_ptr = keep(layout.tile_codes, grid.tile_count()),
           .batch = grid.mask_batch,
           .heads = grid.mask_heads,
           .rows = grid.tile_rows,
           .columns = grid.tile_cols};
  STOF_CUDA(cudaStreamSynchronize(nullptr));  // copies; other streams do not wait for them
  return ahead;
}

void DeviceMask::set_input(std::size_t index, const void* data, const std::int32_t* row_ptr) {
  inputs_.at(index).data = data;
  inputs_.at(index).row_ptr = row_ptr;
  if (input_bits_[index] == nullptr) {
    view_.inputs[index].data = data;
  }
}

void DeviceMask::set_capture(const std::string& name, const void* data) {
  for (const std::size_t place : captures_[name]) {
    view_.captures[place].data = data;
  }
}

void DeviceMask::write_bits(std::int32_t* status, cuda::Launches& launches) const {
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (input_bits_[i] != nullptr) {
      write_input_bits(inputs_[i], grid_, input_bits_[i], status, launches);
    }
  }
}

}  // namespace stof::mask_layout
