#pragma once

#include <memory>
#include <optional>

#include "fusion/mask_arrays.hpp"
#include "fusion/modifier.hpp"
#include "fusion/placement.hpp"
#include "fusion/run_time_masks.hpp"
#include "graph/ir.hpp"

namespace stof::fusion {

// Mask and score of one attention, as its kernels take them.
struct AttentionMask {
  std::shared_ptr<MaskArrays> arrays;   // shared with attentions of the same mask; or null, and
  std::optional<RunTimeMask> run_time;  // the arrays are made on each run
  mask::MaskFeatures expected;          // of the mask, or of the sample of it that there is
  Modifier modifier;

  const mask::MaskFeatures& features() const { return expected; }
  // The arrays, or those of the sample.
  const std::shared_ptr<MaskArrays>& known() const { return run_time ? run_time->sample : arrays; }
  // Whether each query sees a run of keys.
  bool has_runs() const {
    return run_time ? run_time->runs.has_value()
                    : expected.mask_class == mask::MaskClass::IntervalRows;
  }
  bool has_key_rows() const { return run_time ? run_time->has_key_rows() : arrays->has_key_rows(); }
};

// Throws GraphError where the mask does not fit the shapes.
AttentionMask make_attention_mask(const graph::Ir& ir, const graph::Operator& attention,
                                  const Placement& placement, MaskArraysByMask& masks);

}  // namespace stof::fusion
