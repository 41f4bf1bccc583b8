#pragma once

#include <string>
#include <string_view>

namespace stof::base {

// What a kernel is compiled for: "sm_90a" is compute capability 9.0 with what only that chip has.
struct GpuTarget {
  int capability = 0;   // 10 * major + minor
  char variant = '\0';  // 'a': this chip alone, 'f': its family, '\0': this chip and later minors

  std::string text() const;
  // Whether a cubin for this target runs on a GPU of that compute capability.
  bool runs_on(int capability_of_gpu) const;
  bool has_wgmma() const;
  friend bool operator==(const GpuTarget&, const GpuTarget&) = default;
};

// Throws GraphError unless text names a target that stof compiles for: sm_80 and later.
GpuTarget parse_gpu_target(std::string_view text);

// The target that makes the most of a GPU with the templates that there are: sm_90a for 90, else
// the plain target of the same or the nearest older chip of its generation. Throws GraphError
// below 80.
GpuTarget native_target(int capability_of_gpu);

}  // namespace stof::base
