#include <fmt/format.h>

#include "cuda/device.hpp"
#include "render/embedded_templates.hpp"
#include "stof/engine.hpp"
#include "stof/error.hpp"

namespace stof {

namespace {

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
  return fmt::format("stof {}, templates: {}, GPUs: {}", STOF_VERSION,
                     render::embedded_templates().size(), gpu_state());
}

}  // namespace stof
