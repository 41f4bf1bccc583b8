#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "search_lab.hpp"

// Searches that the one of the library is compared with: parts of it, and others.
namespace stof::bench {

// The model's choice.
SearchLab::Search no_search();
// Schemes, each segment with a few settings.
SearchLab::Search coarse_alone();
// The settings of the scheme that the model proposes first.
SearchLab::Search fine_alone();
// So many trials, drawn at random of all settings of each part of that scheme in turn.
SearchLab::Search at_random(std::int64_t trials);
// All settings of the parts that have no more than that; for each of them its best time as a share
// of that of the winner of `other`.
SearchLab::Search exhaustive(std::size_t most_settings, const Found& other,
                             std::vector<double>& shares);

}  // namespace stof::bench
