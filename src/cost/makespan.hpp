#pragma once

#include <cstdint>
#include <vector>

namespace stof::cost {

// Pieces of work that take equally long.
struct WorkGroup {
  double cost = 0;
  std::int64_t count = 0;
};

// When the last of `workers` is done if each takes the next piece as soon as it is free, in the
// order given. Of groups with many pieces for each worker all but the last two are dealt out
// evenly.
double makespan(const std::vector<WorkGroup>& groups, std::int64_t workers);

}  // namespace stof::cost
