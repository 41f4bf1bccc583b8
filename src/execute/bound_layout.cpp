#include "execute/bound_layout.hpp"

#include <algorithm>
#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/check.hpp"
#include "stof/error.hpp"

namespace stof::execute {

using kernel::LayoutArray;
using kernel::LayoutArrayKind;
using kernel::LayoutBuild;
using kernel::Location;
using mask::InputForm;
using mask_layout::MaskInput;

namespace {

std::vector<MaskInput> inputs_of(const LayoutBuild& build, const BoundLayout::Address& address) {
  std::vector<MaskInput> inputs;
  for (const kernel::MaskData& data : build.inputs) {
    MaskInput input{.form = data.form,
                    .data = address(data.data),
                    .count = data.count,
                    .batch = data.batch,
                    .heads = data.heads};
    if (data.form == InputForm::Csr) {
      input.row_ptr = reinterpret_cast<const std::int32_t*>(address(data.row_ptr));
    }
    inputs.push_back(input);
  }
  return inputs;
}

mask_layout::CaptureTensors captures_of(const LayoutBuild& build,
                                        const BoundLayout::Address& address) {
  mask_layout::CaptureTensors captures;
  for (const auto& [name, capture] : build.captures) {
    captures.emplace(name, TensorView{.data = address(capture.data),
                                      .dtype = capture.dtype,
                                      .shape = capture.shape,
                                      .strides = capture.strides,
                                      .location = stof::Location::Device});
  }
  return captures;
}

// What its values must be.
std::string rule_of(const LayoutBuild& build) {
  const mask::Extent& extent = build.extent;
  switch (build.inputs.front().form) {
    case InputForm::KeyLengths:
      return fmt::format("lengths are from 0 to {}", extent.kv_len);
    case InputForm::CuSeqlens:
      return fmt::format("offsets start with 0, do not fall and end at most at {}",
                         std::max(extent.q_len, extent.kv_len));
    case InputForm::Csr:
      return fmt::format(
          "row_ptr starts with 0, does not fall and ends at most at {}, and col_idx is from 0 to "
          "{}",
          build.inputs.front().count, extent.kv_len - 1);
    case InputForm::Dense:
      break;
  }
  return "any will do";
}

}  // namespace

mask_layout::RunTimeLayout run_time_layout(const LayoutBuild& build) {
  const std::vector<MaskInput> inputs =
      inputs_of(build, [](const Location&) -> std::byte* { return nullptr; });
  return {mask_layout::grid_of(build.mask, build.extent, inputs),
          {.tile_q = build.tile_q,
           .key_rows = build.has_key_rows,
           .runs = build.runs,
           .tile_lists = build.has_key_rows},
          build.max_part_tiles,
          build.has_key_rows ? build.max_keys : 0};
}

BoundLayout::BoundLayout(const LayoutBuild& build, const Address& address, void* workspace)
    : build_(build),
      workspace_(workspace),
      mask_(build.mask, build.extent, captures_of(build, address), inputs_of(build, address)),
      layout_(run_time_layout(build)),
      arrays_(layout_.place(workspace)) {
  make_launches();
}

void BoundLayout::make_launches() {
  launches_ = {};
  layout_.build(mask_, workspace_, report_.get(), launches_);
}

void* BoundLayout::array(const LayoutArray& array) const {
  const auto tiles = std::ranges::find(arrays_.attention_tiles, array.tile_q,
                                       &mask_layout::AttentionTiles::tile_q);
  STOF_CHECK(array.kind > LayoutArrayKind::TileBitmap || tiles != arrays_.attention_tiles.end())
      << "layout of '" << build_.name << "' has no tiles of " << array.tile_q << " queries";
  switch (array.kind) {
    case LayoutArrayKind::Order:
      return tiles->order;
    case LayoutArrayKind::RowPtr:
      return tiles->row_ptr;
    case LayoutArrayKind::TileCol:
      return tiles->tile_col;
    case LayoutArrayKind::TileBitmap:
      return tiles->tile_bitmap;
    case LayoutArrayKind::Bitmaps:
      return arrays_.lane_bitmaps;
    case LayoutArrayKind::KeyRowPtr:
      return arrays_.rows.key_row_ptr;
    case LayoutArrayKind::KeyCol:
      return arrays_.rows.key_col;
    case LayoutArrayKind::RowOrder:
      return arrays_.rows.order;
    case LayoutArrayKind::RowFirst:
      return arrays_.rows.first;
    case LayoutArrayKind::RowEnd:
      break;
  }
  return arrays_.rows.end;
}

bool BoundLayout::reads(kernel::MemorySpace space, int index) const {
  const auto is_it = [&](const Location& location) {
    return location.space == space && location.index == index;
  };
  return std::ranges::any_of(build_.inputs,
                             [&](const kernel::MaskData& input) {
                               return is_it(input.data) ||
                                      (input.form == InputForm::Csr && is_it(input.row_ptr));
                             }) ||
         std::ranges::any_of(build_.captures,
                             [&](const auto& capture) { return is_it(capture.second.data); });
}

void BoundLayout::set(const Address& address) {
  const std::vector<MaskInput> inputs = inputs_of(build_, address);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    mask_.set_input(i, inputs[i].data, inputs[i].row_ptr);
  }
  for (const auto& [name, capture] : build_.captures) {
    mask_.set_capture(name, address(capture.data));
  }
  make_launches();
}

void BoundLayout::check() const {
  const std::int32_t status = std::atomic_ref(report_.get()->status).exchange(0);
  if ((status & mask_layout::kInvalidData) != 0) {
    throw GraphError(fmt::format("launch: mask '{}' holds a value that is out of range: {}",
                                 build_.name, rule_of(build_)));
  }
  if (status != 0) {
    throw GraphError(fmt::format(
        "launch: mask '{}' has {} tiles of 64 x 64 that are neither empty nor full, "
        "max_part_tiles is {}",
        build_.name, std::atomic_ref(report_.get()->part_tiles).load(), build_.max_part_tiles));
  }
}

}  // namespace stof::execute
