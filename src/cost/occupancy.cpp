#include "cost/occupancy.hpp"

#include <algorithm>

#include "mask/bits.hpp"

namespace stof::cost {

std::int64_t blocks_per_sm(const base::DeviceProfile& device, const BlockResources& block) {
  constexpr std::int64_t kReservedSharedBytes = 1024;  // of each block, by CUDA
  constexpr std::int64_t kWarp = 32;
  constexpr std::int64_t kRegisterStep = 8;  // registers come by 8 for each thread of a warp
  const std::int64_t threads =
      kWarp * mask::ceil_div(std::max<std::int64_t>(block.threads, 1), kWarp);
  const std::int64_t registers =
      threads * kRegisterStep *
      mask::ceil_div(std::max<std::int64_t>(block.registers, 1), kRegisterStep);
  const std::int64_t blocks = std::min(
      {device.blocks_per_sm, device.threads_per_sm / threads, device.registers_per_sm / registers,
       device.shared_bytes_per_sm / (block.shared_bytes + kReservedSharedBytes)});
  return std::max<std::int64_t>(blocks, 1);
}

}  // namespace stof::cost
