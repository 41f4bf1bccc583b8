#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/gpu_target.hpp"

namespace stof::base {

// What the cost model and the constraints of templates know of a GPU, with or without one at hand.
struct DeviceProfile {
  std::string name;          // as the driver gives it: "NVIDIA H200"
  std::string target;        // what kernels for it are compiled for: "sm_90a"
  std::string rates_source;  // where the rates below come from, in words

  std::int64_t compute_capability = 0;  // 10 * major + minor
  std::int64_t sm_count = 0;
  std::int64_t threads_per_sm = 0;  // most that are resident
  std::int64_t blocks_per_sm = 0;   // most that are resident
  std::int64_t registers_per_sm = 0;
  std::int64_t shared_bytes_per_sm = 0;
  std::int64_t shared_bytes_per_block = 0;  // with opt-in
  std::int64_t l2_bytes = 0;
  std::int64_t memory_bytes = 0;

  double clock_mhz = 0;             // highest of the SMs
  double memory_clock_mhz = 0;      // two transfers a clock
  double dram_gbps = 0;             // 1e9 bytes a second, read
  double l2_gbps = 0;               // L2 to all SMs
  double tensor_tflops = 0;         // f16 × f16 into f32, dense, fastest instruction of the target
  double mma_sync_tflops = 0;       // the same by mma.sync
  double fma_tflops = 0;            // f32
  double exp2_gops = 0;             // 1e9 ex2.approx f32 a second
  double kernel_step_us = 0;        // one short kernel after another in a CUDA graph
  double programmatic_step_us = 0;  // the same on a programmatic edge

  // Throws GraphError naming the field that no GPU can have.
  void validate() const;
  // The integers that templates call device.*: sm (the compute capability), sm_count,
  // shared_bytes_per_block, has_wgmma (0 or 1) and so on.
  std::map<std::string, std::int64_t> scalars() const;

  friend bool operator==(const DeviceProfile&, const DeviceProfile&) = default;
};

// One JSON object with the members above as its fields, all of them and no others. Reading throws
// GraphError.
std::string to_json(const DeviceProfile& profile);
DeviceProfile device_profile_from_json(std::string_view json);

// Profiles that ship with the library, by short name in order: "a10", "a100", "h200", ...
const std::map<std::string, DeviceProfile>& shipped_profiles();

// By short name or by the driver's name. Throws GraphError naming those that there are.
const DeviceProfile& shipped_profile(std::string_view name);

// Fills in the rates of a GPU whose other fields are known: those of the shipped profile that comes
// nearest, by name, else by compute capability, scaled by SMs and clock. A dram_gbps above 0 stays.
// Throws GraphError as validate() does.
DeviceProfile with_estimated_rates(DeviceProfile profile);

}  // namespace stof::base
