#include "fusion/prepare.hpp"

#include "fusion/grouped_queries.hpp"
#include "fusion/masks_in_scores.hpp"
#include "fusion/residue_classes.hpp"
#include "fusion/run_time_masks.hpp"

namespace stof::fusion {

graph::Ir prepare(const graph::Ir& ir, MaskArraysByMask& masks) {
  return with_residue_classes(
      with_grouped_queries(with_masks_in_scores(with_kv_lengths(ir)), masks), masks);
}

}  // namespace stof::fusion
