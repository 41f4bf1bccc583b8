#include "base/gpu_target.hpp"

#include <array>
#include <charconv>

#include <fmt/format.h>

#include "stof/error.hpp"

namespace stof::base {

namespace {

struct Chip {
  int capability;
  std::string_view variants;
};

// What NVRTC 13.0 compiles for, from Ampere on.
constexpr auto kChips = std::to_array<Chip>({{80, ""},
                                             {86, ""},
                                             {87, ""},
                                             {88, ""},
                                             {89, ""},
                                             {90, "a"},
                                             {100, "af"},
                                             {103, "af"},
                                             {110, "af"},
                                             {120, "af"},
                                             {121, "af"}});

constexpr int kHopper = 90;

int major_of(int capability) {
  return capability / 10;
}

bool is_supported(const GpuTarget& target) {
  for (const Chip& chip : kChips) {
    if (chip.capability == target.capability) {
      return target.variant == '\0' || chip.variants.find(target.variant) != std::string_view::npos;
    }
  }
  return false;
}

std::string supported_targets() {
  std::string list;
  for (const Chip& chip : kChips) {
    list += fmt::format("{}sm_{}", list.empty() ? "" : ", ", chip.capability);
    for (const char variant : chip.variants) {
      list += fmt::format(", sm_{}{}", chip.capability, variant);
    }
  }
  return list;
}

}  // namespace

std::string GpuTarget::text() const {
  std::string text = fmt::format("sm_{}", capability);
  if (variant != '\0') {
    text += variant;
  }
  return text;
}

bool GpuTarget::runs_on(int capability_of_gpu) const {
  if (variant == 'a') {
    return capability == capability_of_gpu;
  }
  return major_of(capability) == major_of(capability_of_gpu) && capability <= capability_of_gpu;
}

bool GpuTarget::has_wgmma() const {
  return capability == kHopper && variant == 'a';
}

GpuTarget parse_gpu_target(std::string_view text) {
  constexpr std::string_view kPrefix = "sm_";
  GpuTarget target;
  if (text.starts_with(kPrefix)) {
    const char* const end = text.data() + text.size();
    const auto [rest, error] =
        std::from_chars(text.data() + kPrefix.size(), end, target.capability);
    if (error == std::errc() && end - rest == 1) {
      target.variant = *rest;
    }
    // Written back it must be the same text, so that "sm_090" and "sm_90 " are none.
    if (error == std::errc() && is_supported(target) && target.text() == text) {
      return target;
    }
  }
  throw GraphError(fmt::format("target: '{}' is none of {}", text, supported_targets()));
}

GpuTarget native_target(int capability_of_gpu) {
  GpuTarget target;
  for (const Chip& chip : kChips) {
    if (GpuTarget{.capability = chip.capability}.runs_on(capability_of_gpu)) {
      target.capability = chip.capability;
    }
  }
  if (target.capability == 0) {
    throw GraphError(fmt::format("target: compute capability {}.{} is none that stof compiles for",
                                 capability_of_gpu / 10, capability_of_gpu % 10));
  }
  target.variant = target.capability == kHopper ? 'a' : '\0';
  return target;
}

}  // namespace stof::base
