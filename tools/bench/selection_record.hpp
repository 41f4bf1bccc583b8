#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "cost/attention_work.hpp"
#include "kernel/kernel_config.hpp"
#include "mask/features.hpp"

// What tools/bench/selection measured: all that the choice of an attention kernel depends on, and
// the times of the candidates.
namespace stof::bench {

struct SelectionCandidate {
  std::string kernel;  // the contract's name
  kernel::KernelConfig config;
  std::optional<double> measured_us;  // nothing: predicted to be far slower than others
  double predicted_us = 0;            // when it was measured
  bool is_in_place = true;            // the model may choose it: bands have a kernel of their own
};

struct SelectionCase {
  std::map<std::string, std::int64_t> dims;  // of the contract
  std::vector<SelectionCandidate> candidates;
};

// Attentions of one mask.
struct SelectionMask {
  std::string family;
  std::string variant;
  std::int64_t length = 0;
  double seen_of_16 = 0;  // share of its 16 x 16 tiles of which something is seen
  // As the kernels see it: dilated masks are of other shapes then.
  mask::MaskFeatures features;
  std::map<std::int64_t, cost::TileWork> tiles;   // by tile_q: 64, 128 and 192
  std::map<std::int64_t, cost::TileWork> packed;  // the same; none where tiles are not packed
  mask::WindowCounts windows;
  std::int64_t global_tiles = 1;  // of its global queries, if it is a window with global tokens
  std::vector<SelectionCase> cases;
};

nlohmann::json to_json(const std::vector<SelectionMask>& masks);
// Throws nlohmann::json::exception for what to_json does not write.
std::vector<SelectionMask> selection_from_json(const nlohmann::json& written);

}  // namespace stof::bench
