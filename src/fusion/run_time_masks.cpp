#include "fusion/run_time_masks.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/check.hpp"
#include "expr/node.hpp"
#include "graph/masking.hpp"
#include "graph/op_info.hpp"

namespace stof::fusion {

using kernel::LayoutArrayKind;
using kernel::LayoutBuild;
using mask::InputForm;

namespace {

constexpr std::size_t kKvLengths = 3;                      // input of attention
constexpr std::int64_t kMostKeys = std::int64_t{1} << 26;  // in a list: 256 MiB

InputForm input_form(std::string_view name) {
  switch (graph::mask_form_from_name(name).value()) {
    case MaskForm::KeyLengths:
      return InputForm::KeyLengths;
    case MaskForm::CuSeqlens:
      return InputForm::CuSeqlens;
    case MaskForm::Dense:
      return InputForm::Dense;
    case MaskForm::Csr:
      break;
  }
  return InputForm::Csr;
}

// The two inputs of a Csr are "m.row_ptr" and "m.col_idx".
std::string mask_name(const graph::Ir& ir, const RunTimeMask& mask) {
  constexpr std::string_view kRowPtr = ".row_ptr";
  std::string name =
      graph::value_at(ir, mask.data.empty() ? mask.captures.begin()->second : mask.data.front())
          .name;
  if (mask.data.size() == 2 && name.ends_with(kRowPtr)) {
    name.resize(name.size() - kRowPtr.size());
  }
  return name;
}

kernel::MaskData mask_data(const std::string& form, const std::vector<int>& data,
                           const Placement& placement) {
  kernel::MaskData result;
  result.form = input_form(form);
  const std::vector<std::int64_t>& extents = placement.extents(data.back());
  if (result.form == InputForm::Dense) {
    result.batch = extents[0];
    result.heads = extents[1];
  }
  result.count = 1;
  for (const std::int64_t extent : extents) {
    result.count *= extent;
  }
  return result;
}

// Planes of the layout, and with them the keys that there can be.
void set_planes(RunTimeMask& mask) {
  LayoutBuild& build = mask.build;
  bool by_batch = build.mask.uses_batch();
  bool by_head = build.mask.uses_head();
  std::int64_t plane_keys = build.extent.q_len * build.extent.kv_len;
  for (const kernel::MaskData& input : build.inputs) {
    by_batch = by_batch || input.form == InputForm::KeyLengths || input.batch > 1;
    by_head = by_head || input.heads > 1;
    if (input.form == InputForm::Csr) {
      plane_keys = std::min(plane_keys, input.count);
    }
  }
  mask.features = mask::with_planes(mask.features, by_batch ? build.extent.batch : 1,
                                    by_head ? build.extent.heads : 1);
  build.max_keys = mask.features.mask_batch * mask.features.mask_heads * plane_keys;
}

// The values that the expressions of the fixed mask read, by name.
std::map<std::string, int> captures_of_mask(const graph::Operator& attention) {
  std::map<std::string, int> captures;
  for (const Expr& expression : graph::expressions(fixed_mask(attention))) {
    for (const auto& [name, capture] : expr::names_used(expression).captures) {
      captures.emplace(name, attention.captures.at(name));
    }
  }
  return captures;
}

// The values that carry what arrives.
std::vector<int> data_of_mask(const graph::Operator& attention) {
  const bool arrives = graph::find_attribute<std::string>(attention, "mask_form") != nullptr;
  return arrives ? std::vector<int>(attention.inputs.begin() + kMaskData, attention.inputs.end())
                 : std::vector<int>();
}

// All that a layout depends on: attentions for which it is the same share one.
std::string layout_key(const graph::Operator& attention, const Placement& placement) {
  const auto* form = graph::find_attribute<std::string>(attention, "mask_form");
  const mask::Extent extent = extent_of(attention, placement);
  return fmt::format("{} {} {} {} {} {} {} {} {}", fixed_mask(attention).digest(), extent.batch,
                     extent.heads, extent.q_len, extent.kv_len, form == nullptr ? "" : *form,
                     data_of_mask(attention), captures_of_mask(attention),
                     max_part_tiles(attention));
}

constexpr std::array<std::pair<std::string_view, LayoutArrayKind>, 10> kKinds = {
    {{"order", LayoutArrayKind::Order},
     {"row_ptr", LayoutArrayKind::RowPtr},
     {"tile_col", LayoutArrayKind::TileCol},
     {"tile_bitmap", LayoutArrayKind::TileBitmap},
     {"bitmaps", LayoutArrayKind::Bitmaps},
     {"key_row_ptr", LayoutArrayKind::KeyRowPtr},
     {"key_col", LayoutArrayKind::KeyCol},
     {"row_order", LayoutArrayKind::RowOrder},
     {"row_first", LayoutArrayKind::RowFirst},
     {"row_end", LayoutArrayKind::RowEnd}}};

bool is_of_runs(LayoutArrayKind kind) {
  return kind == LayoutArrayKind::RowFirst || kind == LayoutArrayKind::RowEnd;
}

}  // namespace

Mask fixed_mask(const graph::Operator& attention) {
  const auto* given = graph::find_attribute<Mask>(attention, "mask");
  return given == nullptr ? Mask() : *given;
}

std::int64_t max_part_tiles(const graph::Operator& attention) {
  const auto* most = graph::find_attribute<std::int64_t>(attention, "max_part_tiles");
  return most == nullptr ? 0 : *most;
}

bool RunTimeMask::has_key_rows() const {
  return build.max_keys <= kMostKeys;
}

graph::Ir with_kv_lengths(graph::Ir ir) {
  for (graph::Operator& op : ir.operators) {
    const auto* form = graph::find_attribute<std::string>(op, "mask_form");
    if (op.kind == graph::OpKind::Attention && form != nullptr &&
        *form == graph::name(MaskForm::KeyLengths) && op.inputs[kKvLengths] < 0) {
      op.inputs[kKvLengths] = op.inputs[kMaskData];
      op.inputs.resize(kMaskData);
      op.attributes.erase("mask_form");
      op.attributes.erase("max_part_tiles");
    }
  }
  return ir;
}

mask::Extent extent_of(const graph::Operator& attention, const Placement& placement) {
  const std::vector<std::int64_t>& q = placement.extents(attention.inputs[0]);
  const std::vector<std::int64_t>& k = placement.extents(attention.inputs[1]);
  return {.batch = q[0], .heads = q[1], .q_len = q[2], .kv_len = k[2]};
}

std::shared_ptr<MaskArrays> expected_mask(const graph::Operator& attention, const Mask& fixed,
                                          const mask::Extent& extent, MaskArraysByMask& masks) {
  const auto* like = graph::find_attribute<Mask>(attention, "like");
  const bool has_sample = like != nullptr && !like->is_full();
  const bool is_known = !fixed.is_full() && !fixed.has_captures();
  if (!has_sample && !is_known) {
    return masks.unknown(extent);
  }
  const Mask sample = has_sample && is_known ? *like && fixed : has_sample ? *like : fixed;
  return masks.get(sample, extent);
}

std::optional<RunTimeMask> run_time_mask(const graph::Ir& ir, const graph::Operator& attention,
                                         const Placement& placement, MaskArraysByMask& masks) {
  const Mask fixed = fixed_mask(attention);
  const auto* form = graph::find_attribute<std::string>(attention, "mask_form");
  if (form == nullptr && (fixed.is_expression() || !fixed.has_captures())) {
    return std::nullopt;
  }
  RunTimeMask mask;
  mask.build.mask = fixed;
  mask.build.extent = extent_of(attention, placement);
  mask.captures = captures_of_mask(attention);
  mask.data = data_of_mask(attention);
  if (form != nullptr) {
    mask.build.inputs.push_back(mask_data(*form, mask.data, placement));
    mask.build.max_part_tiles = max_part_tiles(attention);
  }
  mask.key = layout_key(attention, placement);
  mask.readers = std::ranges::count_if(ir.operators, [&](const graph::Operator& other) {
    return other.kind == graph::OpKind::Attention && layout_key(other, placement) == mask.key;
  });
  mask.build.name = mask_name(ir, mask);
  mask.sample = expected_mask(attention, fixed, mask.build.extent, masks);
  mask.features = mask.sample->features();
  mask.features.mask_class = mask::MaskClass::Bitmap;
  set_planes(mask);
  const bool has_one_plane = mask.features.mask_batch * mask.features.mask_heads == 1;
  if (form != nullptr && *form == graph::name(MaskForm::CuSeqlens) && mask.captures.empty() &&
      has_one_plane) {
    mask.runs = masks.get(fixed, mask.build.extent)->band();
  }
  return mask;
}

kernel::LaunchArgument LayoutBuilds::array(const RunTimeMask& mask, const std::string& name,
                                           std::int64_t tile_q, bool takes_runs, int launch) {
  const auto* const kind = std::ranges::find(kKinds, name, &decltype(kKinds)::value_type::first);
  STOF_CHECK(kind != kKinds.end()) << "mask." << name;
  if (is_of_runs(kind->second) && !takes_runs) {
    return nullptr;
  }
  const int index = find_or_add(mask, launch);
  LayoutBuild& build = program_.layouts[static_cast<std::size_t>(index)];
  build.last_launch = launch;
  kernel::LayoutArray array{.layout = index, .kind = kind->second};
  if (array.kind <= LayoutArrayKind::TileBitmap) {
    array.tile_q = tile_q;
    if (std::ranges::find(build.tile_q, tile_q) == build.tile_q.end()) {
      build.tile_q.push_back(tile_q);
    }
  }
  if (is_of_runs(array.kind)) {
    build.runs = mask.runs;
  } else if (array.kind >= LayoutArrayKind::KeyRowPtr) {
    build.has_key_rows = true;
  }
  return array;
}

int LayoutBuilds::find_or_add(const RunTimeMask& mask, int launch) {
  const auto [known, is_new] = known_.emplace(mask.key, static_cast<int>(program_.layouts.size()));
  if (!is_new) {
    return known->second;
  }
  LayoutBuild build = mask.build;
  build.first_launch = launch;
  const auto locate = [&](int value) {
    return memory_.locate(placement_.view(value).value(), launch);
  };
  if (!mask.data.empty()) {
    kernel::MaskData& input = build.inputs.front();
    input.data = locate(mask.data.back());
    if (input.form == InputForm::Csr) {
      input.row_ptr = locate(mask.data.front());
    }
  }
  for (const auto& [name, value] : mask.captures) {
    const View view = placement_.view(value).value();
    build.captures.emplace(name, kernel::MaskCapture{.data = memory_.locate(view, launch),
                                                     .dtype = view.dtype,
                                                     .shape = view.extents,
                                                     .strides = view.strides});
  }
  program_.layouts.push_back(std::move(build));
  return known->second;
}

}  // namespace stof::fusion
