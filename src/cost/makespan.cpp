#include "cost/makespan.hpp"

#include <algorithm>
#include <functional>

#include "base/check.hpp"

namespace stof::cost {

double makespan(const std::vector<WorkGroup>& groups, std::int64_t workers) {
  STOF_CHECK(workers > 0) << "makespan: " << workers << " workers";
  double dealt = 0;  // to each
  std::vector<double> busy_until(static_cast<std::size_t>(workers));
  for (const WorkGroup& group : groups) {
    const std::int64_t rounds = std::max<std::int64_t>(group.count / workers - 1, 0);
    dealt += group.cost * static_cast<double>(rounds);
    for (std::int64_t i = rounds * workers; i < group.count; ++i) {
      std::pop_heap(busy_until.begin(), busy_until.end(), std::greater<>());
      busy_until.back() += group.cost;
      std::push_heap(busy_until.begin(), busy_until.end(), std::greater<>());
    }
  }
  return dealt + *std::max_element(busy_until.begin(), busy_until.end());
}

}  // namespace stof::cost
