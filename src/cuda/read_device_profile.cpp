#include "cuda/read_device_profile.hpp"

#include <cstdint>

#include <cuda_runtime_api.h>

#include "cuda/check.hpp"

namespace stof::cuda {

namespace {

int attribute(cudaDeviceAttr which, int device) {
  int value = 0;
  STOF_CUDA(cudaDeviceGetAttribute(&value, which, device));
  return value;
}

}  // namespace

base::DeviceProfile read_device_profile(int device) {
  cudaDeviceProp properties = {};
  STOF_CUDA(cudaGetDeviceProperties(&properties, device));
  const double memory_clock_mhz = attribute(cudaDevAttrMemoryClockRate, device) * 1e-3;  // from kHz
  const double bus_bytes = properties.memoryBusWidth / 8.0;
  const int capability = 10 * properties.major + properties.minor;
  return base::with_estimated_rates({
      .name = properties.name,
      .target = base::native_target(capability).text(),
      .rates_source = "",
      .compute_capability = capability,
      .sm_count = properties.multiProcessorCount,
      .threads_per_sm = properties.maxThreadsPerMultiProcessor,
      .blocks_per_sm = properties.maxBlocksPerMultiProcessor,
      .registers_per_sm = properties.regsPerMultiprocessor,
      .shared_bytes_per_sm = static_cast<std::int64_t>(properties.sharedMemPerMultiprocessor),
      .shared_bytes_per_block = static_cast<std::int64_t>(properties.sharedMemPerBlockOptin),
      .l2_bytes = properties.l2CacheSize,
      .memory_bytes = static_cast<std::int64_t>(properties.totalGlobalMem),
      .clock_mhz = attribute(cudaDevAttrClockRate, device) * 1e-3,  // from kHz
      .memory_clock_mhz = memory_clock_mhz,
      .dram_gbps = 2 * memory_clock_mhz * 1e-3 * bus_bytes,  // two transfers a clock
  });
}

}  // namespace stof::cuda
