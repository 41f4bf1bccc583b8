#include "cost/norm.hpp"

#include <cstdint>

#include "mask/bits.hpp"

namespace stof::cost {

namespace {

using kernel::KernelConfig;

// By its shape and parameters, so that a template that somebody adds competes with those that ship.
bool is_norm(const Problem& problem) {
  const auto& dims = problem.scope->dims;
  if (!dims.contains("rows") || !dims.contains("hidden")) {
    return false;
  }
  const KernelConfig names = contract::default_config(*problem.contract);
  return names.contains("threads_per_row") && names.contains("rows_per_block") &&
         names.contains("vector");
}

// Vectors of the threads of a row that end where it ends, 0 if there are none.
std::int64_t whole_vector(std::int64_t hidden, std::int64_t threads) {
  for (const std::int64_t vector : {8, 4, 2}) {
    if (hidden % (threads * vector) == 0) {
      return vector;
    }
  }
  return 0;
}

}  // namespace

std::optional<double> norm_start_us(const Sm& sm, const Problem& problem,
                                    const KernelConfig& config) {
  if (!is_norm(problem)) {
    return std::nullopt;
  }
  const Norm& c = sm.coefficients.norm;
  constexpr std::int64_t kWarp = 32;
  const std::int64_t threads = config.at("threads_per_row");
  const std::int64_t vector = config.at("vector");
  const std::int64_t elements =
      vector * mask::ceil_div(problem.scope->dims.at("hidden"), threads * vector);
  const std::int64_t warps = mask::ceil_div(threads, kWarp);
  return c.start_us + sm.us(static_cast<double>(elements) * c.element_ns +
                            static_cast<double>(warps - 1) * c.warp_ns);
}

// With many rows memory is what counts, and the default is made for that.
std::vector<KernelConfig> norm_settings(const Sm& sm, const Problem& problem) {
  constexpr std::int64_t kFewRows = 2;  // of an SM
  if (!is_norm(problem) || problem.scope->dims.at("rows") > kFewRows * sm.device.sm_count) {
    return {};
  }
  std::vector<KernelConfig> settings = {contract::default_config(*problem.contract)};
  for (const auto& [threads, rows] : {std::pair(64, 2), std::pair(128, 1)}) {
    if (const auto vector = whole_vector(problem.scope->dims.at("hidden"), threads); vector > 0) {
      settings.push_back(
          {{"threads_per_row", threads}, {"rows_per_block", rows}, {"vector", vector}});
    }
  }
  return settings;
}

}  // namespace stof::cost
