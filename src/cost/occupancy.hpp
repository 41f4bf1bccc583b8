#pragma once

#include <cstdint>

#include "base/device_profile.hpp"

namespace stof::cost {

struct BlockResources {
  std::int64_t threads = 0;
  std::int64_t shared_bytes = 0;
  std::int64_t registers = 0;  // a thread
};

// How many such blocks an SM holds at once, at least 1.
std::int64_t blocks_per_sm(const base::DeviceProfile& device, const BlockResources& block);

}  // namespace stof::cost
