#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "kernel/program.hpp"
#include "mask/attention_tiles.hpp"
#include "mask/features.hpp"
#include "mask/global_local.hpp"
#include "mask/layout.hpp"
#include "mask/packed_tiles.hpp"
#include "mask/rows.hpp"
#include "mask/window_columns.hpp"

namespace stof::fusion {

// mask::build_layout, or what gives the same.
using BuildLayout = std::function<mask::MaskLayout(const Mask&, const mask::Extent&)>;

// The layout of a mask as the arrays that kernels take, each made when it is first asked for.
class MaskArrays {
 public:
  // Of a mask that is known before it runs, and its layout.
  MaskArrays(const Mask& mask, mask::MaskLayout layout);
  // Of a mask of which nothing is known: every tile has to be looked at, by a predicate.
  explicit MaskArrays(const mask::Extent& extent);

  // Where nothing is known, those of a mask of part tiles alone that hides nothing.
  const mask::MaskFeatures& features() const { return features_; }
  // Whether lists of keys can be had: not for masks that differ from run to run.
  bool has_key_rows() const { return layout_.has_value(); }

  // Nothing where the mask is no band or nothing is known.
  const std::optional<mask::Band>& band();
  // Nothing where the mask is no window with global tokens, or nothing is known.
  const std::optional<mask::GlobalLocal>& global_local();
  // Of the windows of 16 rows; only where the mask is known before it runs.
  const mask::WindowCounts& window_counts();
  // The tiles that a kernel of tile_q query rows a tile visits; valid as long as this object.
  const mask::AttentionTiles& tiles(std::int64_t tile_q);
  // The same packed; only where the mask is known before it runs.
  const mask::PackedTiles& packed_tiles(std::int64_t tile_q);
  // The array "mask.<name>" for a kernel of tile_q query rows a tile, or of stage_keys keys a
  // stage; null where there is none.
  kernel::ConstantArray array(const std::string& name, std::int64_t tile_q,
                              std::int64_t stage_keys = 0);

 private:
  kernel::ConstantArray make_array(const std::string& name, std::int64_t tile_q,
                                   std::int64_t stage_keys);
  kernel::ConstantArray packed_array(const std::string& name, std::int64_t tile_q);
  kernel::ConstantArray global_local_array(const std::string& name);
  const mask::KeyRows& key_rows();
  const mask::WindowColumns& window_columns(std::int64_t stage_keys);

  std::optional<mask::MaskLayout> layout_;  // nothing: known at run time only
  mask::MaskFeatures features_;
  // Nothing: not looked for yet.
  std::optional<std::optional<mask::Band>> band_;
  std::optional<std::optional<mask::GlobalLocal>> global_local_;
  std::optional<mask::GlobalLocalBits> global_local_bits_;
  std::map<std::int64_t, mask::AttentionTiles> tiles_;
  std::map<std::int64_t, mask::PackedTiles> packed_tiles_;
  std::optional<mask::KeyRows> key_rows_;
  std::optional<mask::WindowCounts> window_counts_;
  std::map<std::int64_t, mask::WindowColumns> window_columns_;  // by keys of a stage
  std::map<std::string, kernel::ConstantArray> arrays_;
};

// A builder that keeps every layout that it has built, for graphs that are looked at several times.
// Copies share them. From one thread.
BuildLayout remembering(BuildLayout build_layout);

// The masks of a graph: attentions of equal masks and extents share what was made of them.
class MaskArraysByMask {
 public:
  // Without a function that builds layouts the host does.
  explicit MaskArraysByMask(BuildLayout build_layout = {});

  // Throws GraphError where the mask does not fit the extent.
  std::shared_ptr<MaskArrays> get(const Mask& mask, const mask::Extent& extent);
  // Of a mask of which nothing is known.
  std::shared_ptr<MaskArrays> unknown(const mask::Extent& extent);

 private:
  BuildLayout build_layout_;
  std::map<std::string, std::shared_ptr<MaskArrays>> known_;
};

}  // namespace stof::fusion
