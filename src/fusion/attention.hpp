#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "fusion/group.hpp"
#include "fusion/placement.hpp"
#include "graph/ir.hpp"
#include "kernel/program.hpp"
#include "mask/attention_tiles.hpp"
#include "mask/features.hpp"
#include "mask/layout.hpp"

namespace stof::fusion {

// An argument that an expression brings along: a literal, an array or a tensor's pointer, extents
// and strides.
struct ModArgument {
  std::string type;  // of C: "const int*", "float"
  std::string name;
  kernel::LaunchArgument value = nullptr;  // of a scalar
  kernel::ConstantArray table = nullptr;   // of a pointer to a table
  View capture = {};                       // of a pointer to a tensor, where root >= 0
};

// Mask and score of one attention, as its kernels take them. Built once, asked by every candidate.
class AttentionMask {
 public:
  // Throws GraphError where the mask does not fit the shapes, or has a form that no kernel takes.
  AttentionMask(const graph::Ir& ir, const graph::Operator& attention, const Placement& placement);

  mask::MaskClass mask_class() const { return class_; }
  // Keys that are seen in a 64 x 64 tile of which some are; 4096 where that is not known.
  double keys_per_tile() const { return keys_per_tile_; }
  // The share of all pairs that is seen; 1 where that is not known.
  double density() const { return density_; }
  // The most tiles of 64 keys that 64 query rows look at.
  std::int64_t longest_tile_row() const { return longest_tile_row_; }
  // Whether lists of keys can be had: not for masks that differ from run to run.
  bool has_key_rows() const { return layout_ != nullptr; }

  // Planes; 1 where they are shared.
  std::int64_t batch() const { return layout_ ? layout_->mask_batch : 1; }
  std::int64_t heads() const { return layout_ ? layout_->mask_heads : 1; }
  // The array "mask.<name>" for a kernel of tile_q query rows a tile; null where there is none.
  kernel::ConstantArray array(const std::string& name, std::int64_t tile_q);

  // What the template calls `mod`, and the arguments of its parameters.
  const nlohmann::json& mod() const { return mod_; }
  const std::vector<ModArgument>& arguments() const { return arguments_; }

 private:
  void read_mask(const graph::Ir& ir, const graph::Operator& op);
  void add_expression(const char* field, const Expr& expression, const graph::Ir& ir,
                      const graph::Operator& op, const Placement& placement);
  const mask::AttentionTiles& tiles(std::int64_t tile_q);

  mask::Extent extent_;
  std::unique_ptr<const mask::MaskLayout> layout_;  // null: known at run time only
  std::unique_ptr<const Expr> predicate_;           // what kernels evaluate; null: nothing
  mask::MaskClass class_ = mask::MaskClass::None;
  double keys_per_tile_ = 0;
  double density_ = 1;
  std::int64_t longest_tile_row_ = 0;
  std::map<std::int64_t, mask::AttentionTiles> tiles_;
  std::map<std::string, kernel::ConstantArray> arrays_;
  nlohmann::json mod_;
  std::vector<ModArgument> arguments_;
};

}  // namespace stof::fusion
