#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/environment.hpp"
#include "cache/cache.hpp"
#include "compile/nvrtc_compiler.hpp"
#include "cuda/read_device_profile.hpp"
#include "engine/trial_runner.hpp"
#include "fusion/lower.hpp"
#include "jit/template_jit.hpp"
#include "tune/trial.hpp"

namespace stof::bench {

// The name of the kernel, and its parameters.
inline std::string text_of(const tune::Setting& setting) {
  std::string text = setting.kernel;
  for (const auto& [parameter, value] : setting.config) {
    text += fmt::format(" {}={}", parameter, value);
  }
  return text;
}

// What makes kernels for a GPU of the shipped templates, and of those that come before them in the
// folders of STOF_TEMPLATE_DIRS; each is compiled once and kept in memory, or in a directory where
// there is one. Neither copied nor moved: its parts know each other.
struct Workshop {
  explicit Workshop(int device, jit::OnEvent on_event = {})
      : Workshop(cuda::read_device_profile(device), {}, std::move(on_event)) {}
  Workshop(base::DeviceProfile of_device, std::optional<std::filesystem::path> directory,
           jit::OnEvent on_event = {})
      : profile(std::move(of_device)),
        cache(
            {.directory = std::move(directory), .lock_folder = {}, .packs = {}, .on_warning = {}}),
        renderer(std::make_shared<const render::TemplateStore>(
            render::TemplateStore::open(base::read_environment().template_dirs))),
        templates(fusion::read_templates(renderer.store().texts())),
        jit(cache, compiler, {.on_event = std::move(on_event)}),
        template_jit(cache, compiler, renderer, jit) {}
  Workshop(const Workshop&) = delete;
  Workshop& operator=(const Workshop&) = delete;
  ~Workshop() = default;

  // Of a runner of trials that tells nobody of them; they refer to this workshop.
  engine::TrialTools trial_tools(int device) {
    return {.device = device,
            .profile = &profile,
            .jit = &template_jit,
            .compiler = "",
            .stop = {},
            .tell = [](const auto&, const auto&) {}};
  }

  base::DeviceProfile profile;
  cache::Cache cache;
  render::Renderer renderer;
  fusion::TemplateLibrary templates;
  compile::NvrtcCompiler compiler;
  jit::Jit jit;
  jit::TemplateJit template_jit;
};

}  // namespace stof::bench
