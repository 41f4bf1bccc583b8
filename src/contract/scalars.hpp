#pragma once

#include <array>
#include <string_view>

namespace stof::contract {

// What the expressions of a header may say of the device: fields of base::DeviceProfile.
inline constexpr std::array<std::string_view, 6> kDeviceScalars = {
    "device.sm",                      // 10 * compute capability: 80, 90, 120
    "device.sm_count",                // multiprocessors
    "device.shared_bytes_per_block",  // the most that a block may opt in to
    "device.shared_bytes_per_sm",
    "device.registers_per_sm",
    "device.l2_bytes",
};

}  // namespace stof::contract
