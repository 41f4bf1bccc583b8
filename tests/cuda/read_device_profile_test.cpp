#include "cuda/read_device_profile.hpp"

#include <doctest/doctest.h>

#include "stof/error.hpp"

using stof::base::DeviceProfile;
using stof::base::shipped_profiles;

TEST_CASE("a GPU's profile is read, and agrees with the one that ships for it") {
  const DeviceProfile profile = stof::cuda::read_device_profile(0);
  CHECK_NOTHROW(profile.validate());
  for (const auto& [name, shipped] : shipped_profiles()) {
    if (shipped.name == profile.name) {
      CHECK(profile.target == shipped.target);
      CHECK(profile.sm_count == shipped.sm_count);
      CHECK(profile.threads_per_sm == shipped.threads_per_sm);
      CHECK(profile.blocks_per_sm == shipped.blocks_per_sm);
      CHECK(profile.shared_bytes_per_sm == shipped.shared_bytes_per_sm);
      CHECK(profile.shared_bytes_per_block == shipped.shared_bytes_per_block);
      CHECK(profile.registers_per_sm == shipped.registers_per_sm);
      CHECK(profile.l2_bytes == shipped.l2_bytes);
      CHECK(profile.clock_mhz == doctest::Approx(shipped.clock_mhz).epsilon(0.1));
      CHECK(profile.memory_clock_mhz == doctest::Approx(shipped.memory_clock_mhz).epsilon(0.1));
    }
  }
}

TEST_CASE("a GPU that is not there is an error") {
  CHECK_THROWS_AS(stof::cuda::read_device_profile(1000), stof::CudaError);
}
