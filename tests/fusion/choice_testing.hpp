// Graphs of an attention, and the kernels that are chosen for them.
#pragma once

#include <optional>
#include <string>

#include "../../tools/bench/masks.hpp"
#include "fusion/lowering_testing.hpp"
#include "stof/stof.hpp"

namespace stof::testing {

inline Graph attention(const char* mask, std::int64_t heads, std::int64_t length,
                       std::int64_t head_dim, const std::optional<Score>& score = {}) {
  Graph graph("attention");
  const Shape shape({1, heads, length, head_dim});
  const auto q = graph.input("q", shape, DType::Float16);
  const auto k = graph.input("k", shape, DType::Float16);
  const auto v = graph.input("v", shape, DType::Float16);
  graph.output("y", graph.attention(q, k, v, {.mask = bench::mask(mask, length), .score = score}));
  return graph;
}

// Of 64 dimensions a head.
inline Graph attention(const Mask& mask, std::int64_t batch, std::int64_t heads,
                       std::int64_t length) {
  Graph graph("attention");
  const auto q = graph.input("q", {batch, heads, length, 64}, DType::Float16);
  graph.output("y", graph.attention(q, q, q, {.mask = mask}));
  return graph;
}

inline std::string kernel_of(const Graph& graph, const char* device = "h200") {
  return lowered_by(graph, {}, device).options.at(0).at(0).kernel;
}

}  // namespace stof::testing
