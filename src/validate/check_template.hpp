#pragma once

#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "base/device_profile.hpp"
#include "compile/compiler.hpp"
#include "render/renderer.hpp"

// Whether a template can be trusted, as far as that shows without a GPU.
namespace stof::validate {

// A rung of the ladder: "contract", "render", "compile".
struct Rung {
  std::string name;
  bool is_passed = true;
  std::string detail;  // what was done, or what went wrong
};

struct TemplateCheck {
  std::string file;
  std::vector<Rung> rungs;  // up to the first that failed
  // Of what compiles: spills, stack frames, lost speed.
  std::vector<std::string> warnings;

  bool is_passed() const { return rungs.back().is_passed; }
};

// Reads the contract of a template of the store, then renders and compiles it for each device that
// its constraints admit, in the cases of template_cases.hpp. Throws CudaError where there is no
// compiler, CancelledError.
TemplateCheck check_template(const render::Renderer& renderer, const std::string& file,
                             const compile::Compiler& compiler,
                             std::span<const base::DeviceProfile> devices,
                             const std::stop_token& stop = {});

}  // namespace stof::validate
