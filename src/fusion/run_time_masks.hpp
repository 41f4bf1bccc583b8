#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fusion/mask_arrays.hpp"
#include "fusion/memory.hpp"
#include "fusion/placement.hpp"
#include "graph/ir.hpp"
#include "kernel/program.hpp"
#include "mask/features.hpp"

namespace stof::fusion {

inline constexpr std::size_t kMaskData = 4;  // the first input of attention that carries a mask

// A mask of which each run has another, whose layout is built on the GPU then.
struct RunTimeMask {
  std::string key;                      // equal ones share a layout
  kernel::LayoutBuild build;            // but for where things lie, and which launches read it
  std::vector<int> data;                // the values that carry it, which must be packed
  std::map<std::string, int> captures;  // the values that its expressions read
  std::int64_t readers = 1;             // attentions that share a layout
  mask::MaskFeatures features;          // that may be expected
  std::shared_ptr<MaskArrays> sample;   // which has them
  // Where each query sees a run of keys, whatever arrives: those of its document along this band.
  std::optional<mask::Band> runs;

  bool has_key_rows() const;  // whether there is room for all of them
};

// Of an attention: the mask that is known when the graph is built, and the bound on tiles of the
// one that arrives, 0 for none.
Mask fixed_mask(const graph::Operator& attention);
std::int64_t max_part_tiles(const graph::Operator& attention);

// Lengths of keys that arrive as the mask become kv_lengths where an attention has none: every
// kernel takes those, and nothing has to be built.
graph::Ir with_kv_lengths(graph::Ir ir);

// The mask of an attention with the attribute mask_form, or whose mask reads tensors and is no
// expression; nothing for others. Throws GraphError where it does not fit the shapes.
std::optional<RunTimeMask> run_time_mask(const graph::Ir& ir, const graph::Operator& attention,
                                         const Placement& placement, MaskArraysByMask& masks);

// Of a mask like the attribute `like`, where there is one, and `fixed`.
std::shared_ptr<MaskArrays> expected_mask(const graph::Operator& attention, const Mask& fixed,
                                          const mask::Extent& extent, MaskArraysByMask& masks);

mask::Extent extent_of(const graph::Operator& attention, const Placement& placement);

// The layouts that a program builds, each before the first launch that reads it.
class LayoutBuilds {
 public:
  LayoutBuilds(const Placement& placement, Memory& memory, kernel::Program& program)
      : placement_(placement), memory_(memory), program_(program) {}

  // The array "mask.<name>", which launch number `launch` reads; null where there is none, as of
  // row_first and row_end for a kernel that takes other masks than those of runs too: to it no mask
  // that arrives is one of these.
  kernel::LaunchArgument array(const RunTimeMask& mask, const std::string& name,
                               std::int64_t tile_q, bool takes_runs, int launch);

 private:
  int find_or_add(const RunTimeMask& mask, int launch);

  const Placement& placement_;
  Memory& memory_;
  kernel::Program& program_;
  std::map<std::string, int> known_;  // by key
};

}  // namespace stof::fusion
