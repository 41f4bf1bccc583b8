#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "cache/cache.hpp"
#include "compile/nvrtc_compiler.hpp"
#include "cuda/read_device_profile.hpp"
#include "fusion/lower.hpp"
#include "jit/template_jit.hpp"

namespace stof::bench {

// What makes kernels of the shipped templates for a GPU, each compiled once and kept in memory, or
// in a directory where there is one. Neither copied nor moved: its parts know each other.
struct Workshop {
  explicit Workshop(int device, jit::OnEvent on_event = {})
      : Workshop(cuda::read_device_profile(device), {}, std::move(on_event)) {}
  Workshop(base::DeviceProfile of_device, std::optional<std::filesystem::path> directory,
           jit::OnEvent on_event = {})
      : profile(std::move(of_device)),
        cache(
            {.directory = std::move(directory), .lock_folder = {}, .packs = {}, .on_warning = {}}),
        renderer(std::make_shared<const render::TemplateStore>(render::TemplateStore::open({}))),
        templates(fusion::read_templates(renderer.store().texts())),
        jit(cache, compiler, {.on_event = std::move(on_event)}),
        template_jit(cache, compiler, renderer, jit) {}
  Workshop(const Workshop&) = delete;
  Workshop& operator=(const Workshop&) = delete;
  ~Workshop() = default;

  base::DeviceProfile profile;
  cache::Cache cache;
  render::Renderer renderer;
  fusion::TemplateLibrary templates;
  compile::NvrtcCompiler compiler;
  jit::Jit jit;
  jit::TemplateJit template_jit;
};

}  // namespace stof::bench
