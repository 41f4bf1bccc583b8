#include "base/device_profile.hpp"

#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "stof/error.hpp"

using namespace stof::base;  // NOLINT(google-build-using-namespace)
using Json = nlohmann::json;

namespace {

Json h200() {
  return Json::parse(to_json(shipped_profile("h200")));
}

DeviceProfile read(const Json& json) {
  return device_profile_from_json(json.dump());
}

}  // namespace

TEST_CASE("profiles ship for the GPUs that stof knows") {
  std::string names;
  for (const auto& [name, profile] : shipped_profiles()) {
    CHECK_NOTHROW(profile.validate());
    names += name + " ";
  }
  CHECK(names == "a10 a100 b200 h100 h200 l40s rtx4090 rtx5090 ");
  CHECK(shipped_profile("NVIDIA H200") == shipped_profile("h200"));
  CHECK(shipped_profile("h200").shared_bytes_per_block == 227 * 1024);
  CHECK_THROWS_WITH_AS(
      shipped_profile("v100"),
      "device profile: 'v100' is none of a10, a100, b200, h100, h200, l40s, rtx4090, rtx5090",
      stof::GraphError);
}

// What the units of an SM do in a clock: CUDA programming guide, arithmetic throughput.
TEST_CASE("shipped rates are those that units and clocks allow") {
  for (const auto& entry : shipped_profiles()) {
    const stof::base::DeviceProfile& profile = entry.second;
    CAPTURE(entry.first);
    const double sm_ghz = static_cast<double>(profile.sm_count) * profile.clock_mhz * 1e-3;
    CHECK(profile.exp2_gops <= 16 * sm_ghz * 1.001);
    CHECK(profile.exp2_gops >= 16 * sm_ghz * 0.9);
    const double fma_per_sm = profile.compute_capability == 80 ? 64 : 128;
    CHECK(profile.fma_tflops * 1e3 <= 2 * fma_per_sm * sm_ghz * 1.02);
    CHECK(profile.fma_tflops * 1e3 >= 2 * fma_per_sm * sm_ghz * 0.9);
    CHECK(profile.mma_sync_tflops <= profile.tensor_tflops);
    CHECK(profile.dram_gbps < profile.l2_gbps);
    CHECK(profile.programmatic_step_us <= profile.kernel_step_us);
  }
}

TEST_CASE("a profile survives JSON") {
  for (const auto& [name, profile] : shipped_profiles()) {
    CHECK(device_profile_from_json(to_json(profile)) == profile);
  }
}

TEST_CASE("a field that is missing, unknown, of a wrong type or impossible is named") {
  Json json = h200();
  json.erase("sm_count");
  CHECK_THROWS_WITH_AS(read(json), "device profile: 'sm_count' is missing", stof::GraphError);
  json = h200();
  json["smcount"] = 1;
  CHECK_THROWS_WITH(read(json), "device profile: unknown field 'smcount'");
  json = h200();
  json["l2_bytes"] = "60 MiB";
  CHECK_THROWS_WITH(
      read(json), "device profile: l2_bytes is \"60 MiB\", not an integer from 1 to 1099511627776");
  json["l2_bytes"] = 18446744073709551615U;
  CHECK_THROWS_WITH(read(json),
                    "device profile: l2_bytes is 18446744073709551615, not an integer "
                    "from 1 to 1099511627776");
  json = h200();
  json["sm_count"] = 0;
  CHECK_THROWS_WITH(read(json), "device profile: sm_count is 0, not from 1 to 4096");
  json = h200();
  json["name"] = nullptr;
  CHECK_THROWS_WITH(read(json), "device profile: name is null, not a string");
  json = h200();
  json["dram_gbps"] = 0;
  CHECK_THROWS_WITH(read(json),
                    "device profile: dram_gbps is 0, not above 0 and at most 1000000000");
  json = h200();
  json["shared_bytes_per_block"] = 233473;
  CHECK_THROWS_WITH(
      read(json),
      "device profile: shared_bytes_per_block 233473 is more than shared_bytes_per_sm 233472");
  json = h200();
  json["target"] = "sm_100";
  CHECK_THROWS_WITH(read(json),
                    "device profile: kernels for sm_100 do not run on compute capability 9.0");
  CHECK_THROWS_WITH(device_profile_from_json("{\"name\": "), "device profile: this is no JSON");
  CHECK_THROWS_WITH(device_profile_from_json("[]"), "device profile: this is no JSON object");
  CHECK_THROWS_AS(device_profile_from_json(std::string(100000, '[')), stof::GraphError);
}

TEST_CASE("templates see integers under device") {
  const auto scalars = shipped_profile("h200").scalars();
  CHECK(scalars.at("sm") == 90);
  CHECK(scalars.at("has_wgmma") == 1);
  CHECK(scalars.at("sm_count") == 132);
  CHECK(scalars.at("shared_bytes_per_block") == 232448);
  CHECK(scalars.count("compute_capability") == 0);
  CHECK(shipped_profile("b200").scalars().at("has_wgmma") == 0);
}

TEST_CASE("a GPU that ships no profile takes the rates of its nearest kin, to scale") {
  const DeviceProfile& l40s = shipped_profile("l40s");
  DeviceProfile half = l40s;
  half.name = "NVIDIA of half the SMs";
  half.sm_count = l40s.sm_count / 2;
  half.dram_gbps = 432;
  half.tensor_tflops = 0;
  const DeviceProfile estimated = with_estimated_rates(half);
  CHECK(estimated.exp2_gops == doctest::Approx(l40s.exp2_gops / 2));
  CHECK(estimated.dram_gbps == 432);
  CHECK(estimated.rates_source.starts_with("estimated from NVIDIA "));
}

TEST_CASE("a GPU that ships a profile takes its rates") {
  DeviceProfile blank = shipped_profile("h200");
  blank.tensor_tflops = 0;
  blank.dram_gbps = 4917;
  const DeviceProfile estimated = with_estimated_rates(blank);
  CHECK(estimated.tensor_tflops == shipped_profile("h200").tensor_tflops);
  CHECK(estimated.dram_gbps == shipped_profile("h200").dram_gbps);
}
