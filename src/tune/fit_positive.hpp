#pragma once

#include <functional>
#include <vector>

namespace stof::tune {

// log(predicted / measured) of each observation, for positive numbers of which the predictions are
// made. Called from several threads at once.
using LogErrors = std::function<std::vector<double>(const std::vector<double>& values)>;

struct FitOptions {
  double most = 1e4;    // times as much, or as little, as a number was
  double prior = 1e-5;  // how much numbers want to stay where they are: this times log(ratio)², for
                        // each observation
  int rounds = 30;  // at most
};

// The numbers, moved so that the errors come nearest to 0: Levenberg's and Marquardt's descent on
// their logarithms, with weights that let go of observations that are far off. What no observation
// depends on stays. Deterministic. Throws InternalError for a number that is not above 0.
std::vector<double> fit_positive(const std::vector<double>& values, const LogErrors& errors,
                                 const FitOptions& options = {});

}  // namespace stof::tune
