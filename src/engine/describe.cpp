#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

#include "cuda/device.hpp"
#include "render/embedded_templates.hpp"
#include "stof/engine.hpp"
#include "stof/error.hpp"

namespace stof {

namespace {

// Those of kernels; others are what they include.
std::ptrdiff_t template_count() {
  return std::ranges::count_if(render::embedded_templates(), [](const auto& file) {
    return file.path.ends_with(".jinja") && !file.path.starts_with("parts/");
  });
}

std::string gpu_state() {
  try {
    const int count = cuda::device_count();
    return count == 0 ? "none" : fmt::format("{} visible", count);
  } catch (const CudaError& error) {
    return fmt::format("none ({})", error.what());
  }
}

}  // namespace

std::string describe() {
  return fmt::format("stof {}, templates: {}, GPUs: {}", STOF_VERSION, template_count(),
                     gpu_state());
}

}  // namespace stof
