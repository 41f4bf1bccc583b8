#pragma once

#include <array>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/device_profile.hpp"
#include "compile/compiler.hpp"
#include "render/renderer.hpp"
#include "validate/numerics.hpp"

// Whether a template can be trusted: the ladder that it climbs.
namespace stof::validate {

// A rung of the ladder:
//
//   contract       the header is read, and its pattern is of operators that there are
//   render         in the cases of template_cases.hpp, for each device
//   compile        what they render to
//   resources      a block of it can be launched, and has the threads that the contract declares
//   numerics       see numerics.hpp; this and all below need a GPU
//   repeatability  equal runs give equal bits, where the contract says so, and right numbers always
//   race           its time against the operators apart; losing is not failing
struct Rung {
  std::string name;
  bool is_passed = true;
  std::string detail;  // what was done, or what went wrong
};

struct TemplateCheck {
  std::string file;
  std::vector<Rung> rungs;  // up to the first that failed
  // Of what compiles: spills, stack frames, lost speed, more registers than declared.
  std::vector<std::string> warnings;

  bool is_passed() const { return rungs.back().is_passed; }
  // Whether it passed on a GPU.
  bool is_validated() const;
  const Rung* find(std::string_view name) const;  // nullptr where the ladder was not climbed so far
};

// Of the rungs that need a GPU.
inline constexpr std::array<std::string_view, 3> kGpuRungs = {"numerics", "repeatability", "race"};

struct CheckTools {
  const render::Renderer* renderer = nullptr;
  const compile::Compiler* compiler = nullptr;
  std::span<const base::DeviceProfile> devices;  // for which it is rendered and compiled
  std::optional<Gpu> gpu = {};                   // nothing: the ladder ends below "numerics"
  std::stop_token stop = {};
};

// Sends a template of the renderer's store up the ladder. Throws CudaError where there is no
// compiler, CancelledError.
TemplateCheck check_template(const CheckTools& tools, const std::string& file);

}  // namespace stof::validate
