#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "stof/graph.hpp"

// What tools/bench/search tunes.
namespace stof::bench {

struct SearchCell {
  std::string_view model;  // of models::kNames
  std::int64_t batch = 1;
  std::int64_t sequence = 128;
  std::int64_t layers = 1;   // 0: all
  bool is_repeated = false;  // at once, and not only where time is left

  std::string name() const;  // "bert-base:1:128:1"
};

// What tells the most first.
std::vector<SearchCell> search_cells();

// In float16, with a sliding window; ViT has no mask, and a square of patches for its sequence.
Graph graph_of(const SearchCell& cell);

}  // namespace stof::bench
