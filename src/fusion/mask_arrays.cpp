#include "fusion/mask_arrays.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/check.hpp"
#include "fusion/constant_array.hpp"
#include "mask/bits.hpp"
#include "mask/longest_first.hpp"

namespace stof::fusion {

using mask::ceil_div;
using mask::kTile;

namespace {

mask::AttentionTiles unknown_tiles(const mask::Extent& extent, std::int64_t tile_q) {
  const auto rows = static_cast<std::int32_t>(ceil_div(extent.q_len, tile_q));
  const auto columns = static_cast<std::int32_t>(ceil_div(extent.kv_len, kTile));
  mask::AttentionTiles tiles;
  tiles.tile_q = tile_q;
  tiles.row_ptr.push_back(0);
  for (std::int32_t row = 0; row < rows; ++row) {
    tiles.order.push_back(row);
    for (std::int32_t column = 0; column < columns; ++column) {
      tiles.tile_col.push_back(column);
    }
    tiles.row_ptr.push_back((row + 1) * columns);
  }
  tiles.tile_bitmap.assign(tiles.tile_col.size() * static_cast<std::size_t>(tiles.parts()), 0);
  return tiles;
}

std::string arrays_key(const std::string& digest, const mask::Extent& extent) {
  return fmt::format("{} {} {} {} {}", digest, extent.batch, extent.heads, extent.q_len,
                     extent.kv_len);
}

}  // namespace

MaskArrays::MaskArrays(const Mask& mask, mask::MaskLayout layout)
    : layout_(std::move(layout)), features_(mask::measure(mask, *layout_)) {}

MaskArrays::MaskArrays(const mask::Extent& extent) {
  features_.mask_class = mask::MaskClass::InlinePredicate;
  features_.extent = extent;
  features_.density = 1;
  features_.longest_tile_row = ceil_div(extent.kv_len, kTile);
  features_.tiles = ceil_div(extent.q_len, kTile) * features_.longest_tile_row;
  features_.part_tiles = features_.tiles;
  features_.mean_keys = static_cast<double>(extent.kv_len);
  for (std::int64_t* const keys :
       {&features_.min_keys, &features_.median_keys, &features_.percentile_90_keys,
        &features_.percentile_99_keys, &features_.max_keys}) {
    *keys = extent.kv_len;
  }
}

kernel::ConstantArray MaskArrays::array(const std::string& name, std::int64_t tile_q,
                                        std::int64_t stage_keys) {
  const std::string key = fmt::format("{}:{}:{}", name, tile_q, stage_keys);
  if (const auto found = arrays_.find(key); found != arrays_.end()) {
    return found->second;
  }
  return arrays_.emplace(key, make_array(name, tile_q, stage_keys)).first->second;
}

kernel::ConstantArray MaskArrays::make_array(const std::string& name, std::int64_t tile_q,
                                             std::int64_t stage_keys) {
  if (name.starts_with("packed_")) {
    return packed_array(name, tile_q);
  }
  if (name.starts_with("global_") || name.starts_with("local_")) {
    return global_local_array(name);
  }
  if (name == "order") {
    return constant_array(tiles(tile_q).order);
  }
  if (name == "row_ptr") {
    return constant_array(tiles(tile_q).row_ptr);
  }
  if (name == "tile_col") {
    return constant_array(tiles(tile_q).tile_col);
  }
  if (name == "tile_bitmap") {
    return constant_array(tiles(tile_q).tile_bitmap);
  }
  if (name == "bitmaps") {
    return features_.mask_class == mask::MaskClass::Bitmap
               ? constant_array(mask::lane_ordered_bitmaps(*layout_))
               : nullptr;
  }
  if (name == "all_bitmaps") {
    return constant_array(mask::bitmaps_of_all_tiles(*layout_));
  }
  if (name == "row_first" || name == "row_end") {
    if (features_.mask_class != mask::MaskClass::IntervalRows) {
      return nullptr;
    }
    const auto rows = mask::interval_rows(*layout_);
    STOF_CHECK(rows.has_value()) << "a mask of class interval_rows has no intervals";
    return constant_array(name == "row_first" ? rows->first : rows->end);
  }
  if (name == "key_row_ptr") {
    return constant_array(key_rows().row_ptr);
  }
  if (name == "key_col") {
    return constant_array(key_rows().col_idx);
  }
  if (name == "window_ptr") {
    return constant_array(window_columns(stage_keys).octet_ptr);
  }
  if (name == "window_col") {
    return constant_array(window_columns(stage_keys).words);
  }
  STOF_CHECK(name == "row_order") << "mask." << name;
  return constant_array(mask::longest_first(key_rows().row_ptr));
}

kernel::ConstantArray MaskArrays::packed_array(const std::string& name, std::int64_t tile_q) {
  const mask::PackedTiles& packed = packed_tiles(tile_q);
  return name == "packed_order"    ? constant_array(packed.lists.order)
         : name == "packed_rows"   ? constant_array(packed.rows)
         : name == "packed_ptr"    ? constant_array(packed.lists.row_ptr)
         : name == "packed_keys"   ? constant_array(packed.keys)
         : name == "packed_status" ? constant_array(packed.lists.tile_bitmap)
                                   : constant_array(packed.bitmaps);
}

kernel::ConstantArray MaskArrays::global_local_array(const std::string& name) {
  const std::optional<mask::GlobalLocal>& split = global_local();
  STOF_CHECK(split.has_value()) << "mask." << name << " of a mask without global tokens";
  if (name == "local_bits" || name == "global_bits") {
    if (!global_local_bits_) {
      global_local_bits_ = mask::global_local_bits(*layout_, *split);
    }
    return constant_array(name == "local_bits" ? global_local_bits_->local
                                               : global_local_bits_->global);
  }
  return name == "local_status"        ? constant_array(split->local_status)
         : name == "global_key_groups" ? constant_array(split->key_groups)
         : name == "global_row_groups" ? constant_array(split->row_groups)
         : name == "global_status"     ? constant_array(split->global_status)
                                       : constant_array(split->bitmaps);
}

const std::optional<mask::GlobalLocal>& MaskArrays::global_local() {
  // Lists of the groups of rows that see more take long to make.
  constexpr std::int64_t kMostTiles = 16;  // of 64 rows, in the mean
  if (!global_local_) {
    const bool may_be = layout_ && features_.mask_class == mask::MaskClass::Bitmap &&
                        features_.active_tiles() <= kMostTiles * layout_->row_count();
    global_local_.emplace(may_be ? mask::global_local(*layout_) : std::nullopt);
  }
  return *global_local_;
}

const std::optional<mask::Band>& MaskArrays::band() {
  using mask::MaskClass;
  if (!band_) {
    const bool may_be = layout_ && (features_.mask_class == MaskClass::None ||
                                    features_.mask_class == MaskClass::IntervalRows);
    band_.emplace(may_be ? mask::band(*layout_) : std::nullopt);
  }
  return *band_;
}

const mask::WindowCounts& MaskArrays::window_counts() {
  if (!window_counts_) {
    window_counts_ = mask::count_window_columns(*layout_);
  }
  return *window_counts_;
}

const mask::AttentionTiles& MaskArrays::tiles(std::int64_t tile_q) {
  const auto found = tiles_.find(tile_q);
  if (found != tiles_.end()) {
    return found->second;
  }
  return tiles_
      .emplace(tile_q, layout_ ? mask::attention_tiles(*layout_, tile_q)
                               : unknown_tiles(features_.extent, tile_q))
      .first->second;
}

const mask::PackedTiles& MaskArrays::packed_tiles(std::int64_t tile_q) {
  const auto found = packed_tiles_.find(tile_q);
  return found != packed_tiles_.end()
             ? found->second
             : packed_tiles_.emplace(tile_q, mask::packed_tiles(*layout_, tile_q)).first->second;
}

const mask::KeyRows& MaskArrays::key_rows() {
  if (!key_rows_) {
    key_rows_ = mask::key_rows(*layout_);
  }
  return *key_rows_;
}

const mask::WindowColumns& MaskArrays::window_columns(std::int64_t stage_keys) {
  const auto found = window_columns_.find(stage_keys);
  if (found != window_columns_.end()) {
    return found->second;
  }
  return window_columns_
      .emplace(stage_keys,
               mask::window_columns(key_rows(), layout_->mask_batch * layout_->mask_heads,
                                    layout_->extent.q_len, layout_->extent.kv_len, stage_keys))
      .first->second;
}

BuildLayout remembering(BuildLayout build_layout) {
  using Key = std::tuple<std::string, std::int64_t, std::int64_t, std::int64_t, std::int64_t>;
  auto known = std::make_shared<std::map<Key, mask::MaskLayout>>();
  return [known, build = std::move(build_layout)](const Mask& mask, const mask::Extent& extent) {
    const Key key{mask.digest(), extent.batch, extent.heads, extent.q_len, extent.kv_len};
    const auto found = known->find(key);
    return found != known->end() ? found->second
                                 : known->emplace(key, build(mask, extent)).first->second;
  };
}

MaskArraysByMask::MaskArraysByMask(BuildLayout build_layout)
    : build_layout_(std::move(build_layout)) {
  if (!build_layout_) {
    build_layout_ = [](const Mask& mask, const mask::Extent& extent) {
      return mask::build_layout(mask, extent);
    };
  }
}

std::shared_ptr<MaskArrays> MaskArraysByMask::get(const Mask& mask, const mask::Extent& extent) {
  std::shared_ptr<MaskArrays>& arrays = known_[arrays_key(mask.digest(), extent)];
  if (!arrays) {
    arrays = std::make_shared<MaskArrays>(mask, build_layout_(mask, extent));
  }
  return arrays;
}

std::shared_ptr<MaskArrays> MaskArraysByMask::unknown(const mask::Extent& extent) {
  std::shared_ptr<MaskArrays>& arrays = known_[arrays_key("", extent)];
  if (!arrays) {
    arrays = std::make_shared<MaskArrays>(extent);
  }
  return arrays;
}

}  // namespace stof::fusion
