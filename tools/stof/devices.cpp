// stof devices and stof version: what there is to run on.
#include <memory>

#include <nlohmann/json.hpp>

#include "base/device_profile.hpp"
#include "command.hpp"
#include "cuda/device.hpp"
#include "cuda/read_device_profile.hpp"

namespace stof::command {

namespace {

constexpr const char* kDevicesExamples = R"(Examples:
  stof devices
  stof devices --profiles
  stof devices --json | jq '.[0].sm_count')";

struct DeviceOptions {
  bool lists_profiles = false;
  bool is_json = false;
};

void add(const std::string& name, const base::DeviceProfile& profile, bool is_json,
         nlohmann::ordered_json& list) {
  if (is_json) {
    list.push_back(nlohmann::ordered_json::parse(base::to_json(profile)));
    list.back()["id"] = name;
    return;
  }
  print(fmt::format("{:<8} {:<24} {:<8} {:>3} SMs, {:>5.0f} GiB, {:>5.0f} GB/s", name, profile.name,
                    profile.target, profile.sm_count,
                    static_cast<double>(profile.memory_bytes) / (1 << 30), profile.dram_gbps));
}

void list_devices(const DeviceOptions& options) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  if (options.lists_profiles) {
    for (const auto& [name, profile] : base::shipped_profiles()) {
      add(name, profile, options.is_json, list);
    }
  } else {
    const int count = cuda::device_count();
    for (int device = 0; device < count; ++device) {
      add(std::to_string(device), cuda::read_device_profile(device), options.is_json, list);
    }
    if (count == 0 && !options.is_json) {
      print("no GPU that this process may use");
    }
  }
  if (options.is_json) {
    print_json(list);
  }
}

}  // namespace

void add_devices(CLI::App& stof) {
  auto options = std::make_shared<DeviceOptions>();
  CLI::App* app = stof.add_subcommand("devices", "List the GPUs of this machine");
  app->add_flag("--profiles", options->lists_profiles,
                "Those that the library knows, for --device-profile");
  app->add_flag("--json", options->is_json, "For programs");
  app->footer(kDevicesExamples);
  app->callback([options] { list_devices(*options); });
}

void add_version(CLI::App& stof) {
  stof.add_subcommand("version", "Print the version, and what the library sees of this machine")
      ->callback([] { print(describe()); });
}

}  // namespace stof::command
