#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "fusion/placement.hpp"
#include "graph/ir.hpp"
#include "kernel/program.hpp"

namespace stof::fusion {

// Where the roots of a placement live. Inputs and weights are where the caller has them; a result
// that an output shows whole and packed is made in the output itself; all else is in the arena.
class Memory {
 public:
  Memory(const graph::Ir& ir, const Placement& placement, kernel::Program& program);

  // Of the first element of a view, which launch number `launch` touches.
  kernel::Location locate(const View& view, int launch);
  // A piece of its own for one launch.
  kernel::Location workspace(std::int64_t size_bytes, bool must_be_zero, int launch);

  // Outputs, by their number in the graph, that no kernel writes: they want a copy at the end.
  std::vector<int> outputs_to_copy() const;

 private:
  int touch(std::int64_t size_bytes, int launch);

  const graph::Ir& ir_;
  const Placement& placement_;
  kernel::Program& program_;
  std::map<int, kernel::Location> border_;  // roots that are inputs, weights or outputs
  std::map<int, int> arena_;                // other roots, to their piece of the arena
  std::vector<bool> is_written_;            // outputs that are made in place
};

}  // namespace stof::fusion
