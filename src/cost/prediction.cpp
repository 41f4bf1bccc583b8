#include "cost/prediction.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

namespace stof::cost {

double Prediction::total_us() const {
  return layout_us + launch_us + start_us +
         std::max({dram_us, wait_us, blocks_us + core_us + std::max(tensor_us, l2_us)});
}

std::string Prediction::text() const {
  constexpr double kShown = 0.05;
  const std::array<std::pair<const char*, double>, 9> parts = {{{"layout", layout_us},
                                                                {"launch", launch_us},
                                                                {"start", start_us},
                                                                {"blocks", blocks_us},
                                                                {"core", core_us},
                                                                {"tensor", tensor_us},
                                                                {"l2", l2_us},
                                                                {"wait", wait_us},
                                                                {"dram", dram_us}}};
  std::string text = fmt::format("{:.1f} us", total_us());
  const char* separator = ": ";
  for (const auto& [name, time_us] : parts) {
    if (time_us >= kShown) {
      text += fmt::format("{}{} {:.1f}", separator, name, time_us);
      separator = ", ";
    }
  }
  return text;
}

bool is_faster(const Prediction& a, const Prediction& b) {
  const auto parts_us = [](const Prediction& time) {
    return time.blocks_us + time.core_us + time.tensor_us + time.l2_us + time.wait_us;
  };
  return std::pair(a.total_us(), parts_us(a)) < std::pair(b.total_us(), parts_us(b));
}

}  // namespace stof::cost
