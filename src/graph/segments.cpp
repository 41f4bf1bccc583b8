#include "graph/segments.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <vector>

#include <fmt/format.h>

#include "graph/encode.hpp"
#include "stof/error.hpp"

namespace stof::graph {

namespace {

// Each segment, and each operator that is in none, as one node.
struct Groups {
  std::vector<std::size_t> of_operator;
  std::vector<int> segments;                      // of each group; -1
  std::vector<std::vector<std::size_t>> readers;  // of each group
};

Groups group(const Ir& ir) {
  Groups groups;
  std::map<int, std::size_t> group_of_segment;
  for (const Operator& op : ir.operators) {
    const std::size_t fresh = groups.segments.size();
    const std::size_t own =
        op.segment < 0 ? fresh : group_of_segment.emplace(op.segment, fresh).first->second;
    if (own == fresh) {
      groups.segments.push_back(op.segment);
      groups.readers.emplace_back();
    }
    groups.of_operator.push_back(own);
    for (const int id : operand_ids(op)) {
      const int producer = ir.values[static_cast<std::size_t>(id)]->producer;
      if (producer >= 0 && groups.of_operator[static_cast<std::size_t>(producer)] != own) {
        groups.readers[groups.of_operator[static_cast<std::size_t>(producer)]].push_back(own);
      }
    }
  }
  return groups;
}

}  // namespace

void check_segments(const Ir& ir) {
  const Groups groups = group(ir);
  std::vector<int> waits_for(groups.segments.size());
  for (const std::vector<std::size_t>& readers : groups.readers) {
    for (const std::size_t reader : readers) {
      ++waits_for[reader];
    }
  }
  std::vector<std::size_t> ready;
  for (std::size_t i = 0; i < waits_for.size(); ++i) {
    if (waits_for[i] == 0) {
      ready.push_back(i);
    }
  }
  while (!ready.empty()) {
    const std::size_t next = ready.back();
    ready.pop_back();
    for (const std::size_t reader : groups.readers[next]) {
      if (--waits_for[reader] == 0) {
        ready.push_back(reader);
      }
    }
  }
  for (std::size_t i = 0; i < waits_for.size(); ++i) {
    if (waits_for[i] > 0 && groups.segments[i] >= 0) {
      throw GraphError(fmt::format("segment {}: operators outside of it stand between its own",
                                   groups.segments[i]));
    }
  }
}

}  // namespace stof::graph
