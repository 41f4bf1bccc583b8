#include "search_cells.hpp"

#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "models/zoo.hpp"
#include "stof/stof.hpp"

namespace stof::bench {

std::string SearchCell::name() const {
  return fmt::format("{}:{}:{}:{}", model, batch, sequence,
                     layers == 0 ? "all" : std::to_string(layers));
}

std::vector<SearchCell> search_cells() {
  constexpr std::string_view kFirst = "bert-base";
  std::vector<SearchCell> cells;
  for (const auto& [batch, sequence] : {std::pair(1, 128), std::pair(16, 2048)}) {
    cells.push_back({.model = kFirst, .batch = batch, .sequence = sequence, .layers = 0});
  }
  const std::vector<std::pair<int, int>> shapes = {{1, 128}, {8, 512}, {16, 2048}};
  for (const auto& [batch, sequence] : shapes) {
    cells.push_back(
        {.model = kFirst, .batch = batch, .sequence = sequence, .is_repeated = batch < 16});
  }
  for (const auto& [batch, sequence] : shapes) {
    for (const std::string_view model : models::kNames) {
      if (model != kFirst) {
        cells.push_back({.model = model, .batch = batch, .sequence = sequence});
      }
    }
  }
  return cells;
}

Graph graph_of(const SearchCell& cell) {
  const bool is_vit = cell.model == "vit-base";
  const auto side = static_cast<std::int64_t>(std::sqrt(static_cast<double>(cell.sequence)));
  const bool is_causal = cell.model == "gpt2" || cell.model == "llama-7b";
  const Mask mask = is_vit ? Mask() : sliding_window(side, is_causal ? 0 : side);
  return models::by_name(cell.model,
                         {.batch = cell.batch,
                          .sequence = is_vit ? side * side + 1 : cell.sequence,
                          .layers = cell.layers},
                         DType::Float16, mask);
}

}  // namespace stof::bench
