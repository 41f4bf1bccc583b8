#include "mask_layout/device_mask.hpp"

#include <utility>

#include "mask/layout.hpp"
#include "mask_layout/upload.hpp"

namespace stof::mask_layout {

namespace {

Grid grid_of(const mask::MaskLayout& layout) {
  return {.q_len = layout.extent.q_len,
          .kv_len = layout.extent.kv_len,
          .mask_batch = layout.mask_batch,
          .mask_heads = layout.mask_heads,
          .tile_rows = layout.tile_rows,
          .tile_cols = layout.tile_cols};
}

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

DeviceMask::DeviceMask(const Mask& mask, const mask::Extent& extent, const CaptureTensors& captures,
                       std::vector<MaskInput> inputs)
    : batch_(extent.batch), inputs_(std::move(inputs)) {
  mask::check_extent(mask, extent);
  bool by_batch = mask.uses_batch();
  bool by_head = mask.uses_head();
  for (const MaskInput& input : inputs_) {
    by_batch = by_batch || input.form == InputForm::KeyLengths || input.batch > 1;
    by_head = by_head || input.heads > 1;
  }
  grid_ = grid_of(mask::empty_layout(extent, by_batch, by_head));
  Uploader uploader(captures);
  uploader.add(mask);
  for (const MaskInput& input : inputs_) {
    Part part = part_of(input, grid_);
    std::uint64_t* bits = nullptr;
    if (input.form == InputForm::Csr) {
      const std::int64_t words = grid_.q_len * grid_.tile_cols;
      bits = reinterpret_cast<std::uint64_t*>(uploader.allocate(sizeof(std::uint64_t) * words));
      part.data = bits;
    }
    input_bits_.push_back(bits);
    uploader.add(part);
    uploader.intersect();
  }
  view_ = uploader.finish();
  memory_ = uploader.take_memory();
}

void DeviceMask::prepare(LayoutCounts* counts, cudaStream_t stream) const {
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    prepare_input(inputs_[i], grid_, batch_, input_bits_[i], counts, stream);
  }
}

}  // namespace stof::mask_layout
