#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace stof::kernel {

// One choice of every tunable parameter of a kernel.
using KernelConfig = std::map<std::string, std::int64_t>;

struct ConfigParameter {
  std::string name;
  std::vector<std::int64_t> values;  // distinct, in the order of the template
  std::int64_t default_value = 0;    // one of them
};

}  // namespace stof::kernel
