#include "base/device_profile.hpp"

#include <array>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/embedded_profiles.hpp"
#include "stof/error.hpp"

namespace stof::base {

namespace {

using Json = nlohmann::ordered_json;

struct TextField {
  const char* name;
  std::string DeviceProfile::*member;
};

struct IntegerField {
  const char* name;
  std::int64_t DeviceProfile::*member;
  std::int64_t max;
};

struct RateField {
  const char* name;
  double DeviceProfile::*member;
};

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
constexpr double kMaxRate = 1e9;

constexpr auto kTexts = std::to_array<TextField>({{"name", &DeviceProfile::name},
                                                  {"target", &DeviceProfile::target},
                                                  {"rates_source", &DeviceProfile::rates_source}});

constexpr auto kIntegers = std::to_array<IntegerField>({
    {"compute_capability", &DeviceProfile::compute_capability, 999},
    {"sm_count", &DeviceProfile::sm_count, 4096},
    {"threads_per_sm", &DeviceProfile::threads_per_sm, 1 << 16},
    {"blocks_per_sm", &DeviceProfile::blocks_per_sm, 1 << 10},
    {"registers_per_sm", &DeviceProfile::registers_per_sm, 1 << 24},
    {"shared_bytes_per_sm", &DeviceProfile::shared_bytes_per_sm, 16 * kMiB},
    {"shared_bytes_per_block", &DeviceProfile::shared_bytes_per_block, 16 * kMiB},
    {"l2_bytes", &DeviceProfile::l2_bytes, kMiB* kMiB},
    {"memory_bytes", &DeviceProfile::memory_bytes, kMiB* kMiB},
});

constexpr auto kRates = std::to_array<RateField>({
    {"clock_mhz", &DeviceProfile::clock_mhz},
    {"memory_clock_mhz", &DeviceProfile::memory_clock_mhz},
    {"dram_gbps", &DeviceProfile::dram_gbps},
    {"l2_gbps", &DeviceProfile::l2_gbps},
    {"tensor_tflops", &DeviceProfile::tensor_tflops},
    {"mma_sync_tflops", &DeviceProfile::mma_sync_tflops},
    {"fma_tflops", &DeviceProfile::fma_tflops},
    {"exp2_gops", &DeviceProfile::exp2_gops},
    {"kernel_step_us", &DeviceProfile::kernel_step_us},
    {"programmatic_step_us", &DeviceProfile::programmatic_step_us},
});

[[noreturn]] void fail(const std::string& message) {
  throw GraphError("device profile: " + message);
}

void check_integer(const IntegerField& field, std::int64_t value) {
  if (value < 1 || value > field.max) {
    fail(fmt::format("{} is {}, not from 1 to {}", field.name, value, field.max));
  }
}

const Json& member(const Json& json, const char* name) {
  const auto found = json.find(name);
  if (found == json.end()) {
    fail(fmt::format("'{}' is missing", name));
  }
  return *found;
}

std::int64_t integer(const Json& json, const IntegerField& field) {
  const Json& value = member(json, field.name);
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > std::uint64_t(field.max)) {
    fail(fmt::format("{} is {}, not an integer from 1 to {}", field.name, value.dump(), field.max));
  }
  return value.get<std::int64_t>();
}

Json as_json(const DeviceProfile& profile) {
  Json json;
  for (const TextField& field : kTexts) {
    json[field.name] = profile.*field.member;
  }
  for (const IntegerField& field : kIntegers) {
    json[field.name] = profile.*field.member;
  }
  for (const RateField& field : kRates) {
    json[field.name] = profile.*field.member;
  }
  return json;
}

void check_names(const Json& json) {
  const Json known = as_json(DeviceProfile());
  for (const auto& [name, value] : json.items()) {
    if (!known.contains(name)) {
      fail(fmt::format("unknown field '{}'", name));
    }
  }
}

std::map<std::string, DeviceProfile> read_shipped_profiles() {
  std::map<std::string, DeviceProfile> profiles;
  for (const EmbeddedProfile& file : embedded_profiles()) {
    profiles.emplace(std::filesystem::path(file.path).stem().string(),
                     device_profile_from_json(file.text));
  }
  return profiles;
}

const DeviceProfile& nearest_shipped(const DeviceProfile& profile) {
  const DeviceProfile* best = nullptr;
  const auto distance = [&profile](const DeviceProfile& other) {
    return other.name == profile.name
               ? -1
               : std::abs(other.compute_capability - profile.compute_capability);
  };
  for (const auto& [name, shipped] : shipped_profiles()) {
    if (best == nullptr || distance(shipped) < distance(*best)) {
      best = &shipped;
    }
  }
  return *best;
}

}  // namespace

void DeviceProfile::validate() const {
  if (name.empty()) {
    fail("name is empty");
  }
  for (const IntegerField& field : kIntegers) {
    check_integer(field, this->*field.member);
  }
  if (!parse_gpu_target(target).runs_on(static_cast<int>(compute_capability))) {
    fail(fmt::format("kernels for {} do not run on compute capability {}.{}", target,
                     compute_capability / 10, compute_capability % 10));
  }
  if (shared_bytes_per_block > shared_bytes_per_sm) {
    fail(fmt::format("shared_bytes_per_block {} is more than shared_bytes_per_sm {}",
                     shared_bytes_per_block, shared_bytes_per_sm));
  }
  for (const RateField& field : kRates) {
    const double value = this->*field.member;
    if (!(value > 0 && value <= kMaxRate)) {
      fail(fmt::format("{} is {}, not above 0 and at most {}", field.name, value, kMaxRate));
    }
  }
}

std::map<std::string, std::int64_t> DeviceProfile::scalars() const {
  std::map<std::string, std::int64_t> scalars;
  for (const IntegerField& field : kIntegers) {
    scalars[field.name] = this->*field.member;
  }
  scalars.erase("compute_capability");
  scalars["sm"] = compute_capability;
  scalars["has_wgmma"] = parse_gpu_target(target).has_wgmma() ? 1 : 0;
  return scalars;
}

std::string to_json(const DeviceProfile& profile) {
  // Bytes that are no UTF-8, in a name that a driver gave, are replaced and not thrown upon.
  return as_json(profile).dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

DeviceProfile device_profile_from_json(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) {
    fail(json.is_discarded() ? "this is no JSON" : "this is no JSON object");
  }
  check_names(json);
  DeviceProfile profile;
  for (const TextField& field : kTexts) {
    const Json& value = member(json, field.name);
    if (!value.is_string()) {
      fail(fmt::format("{} is {}, not a string", field.name, value.dump()));
    }
    profile.*field.member = value.get<std::string>();
  }
  for (const IntegerField& field : kIntegers) {
    profile.*field.member = integer(json, field);
  }
  for (const RateField& field : kRates) {
    const Json& value = member(json, field.name);
    if (!value.is_number()) {
      fail(fmt::format("{} is {}, not a number", field.name, value.dump()));
    }
    profile.*field.member = value.get<double>();
  }
  profile.validate();
  return profile;
}

const std::map<std::string, DeviceProfile>& shipped_profiles() {
  static const std::map<std::string, DeviceProfile> profiles = read_shipped_profiles();
  return profiles;
}

const DeviceProfile& shipped_profile(std::string_view name) {
  std::string names;
  for (const auto& [short_name, profile] : shipped_profiles()) {
    if (name == short_name || name == profile.name) {
      return profile;
    }
    names += (names.empty() ? "" : ", ") + short_name;
  }
  fail(fmt::format("'{}' is none of {}", name, names));
}

DeviceProfile with_estimated_rates(DeviceProfile profile) {
  const DeviceProfile& nearest = nearest_shipped(profile);
  if (!(profile.clock_mhz > 0)) {
    profile.clock_mhz = nearest.clock_mhz;
  }
  if (!(profile.memory_clock_mhz > 0)) {
    profile.memory_clock_mhz = nearest.memory_clock_mhz;
  }
  const double sm_ratio = static_cast<double>(profile.sm_count) / double(nearest.sm_count);
  const double compute_ratio = sm_ratio * profile.clock_mhz / nearest.clock_mhz;
  for (const auto rate :
       {&DeviceProfile::l2_gbps, &DeviceProfile::tensor_tflops, &DeviceProfile::mma_sync_tflops,
        &DeviceProfile::fma_tflops, &DeviceProfile::exp2_gops}) {
    profile.*rate = nearest.*rate * compute_ratio;
  }
  if (!(profile.dram_gbps > 0) || profile.name == nearest.name) {
    profile.dram_gbps = nearest.dram_gbps;
  }
  profile.kernel_step_us = nearest.kernel_step_us;
  profile.programmatic_step_us = nearest.programmatic_step_us;
  profile.rates_source = fmt::format("estimated from {}", nearest.name);
  profile.validate();
  return profile;
}

}  // namespace stof::base
