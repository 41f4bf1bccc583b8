#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kernel/key.hpp"

namespace stof::kernel {

struct HeaderDigest {
  std::string name;  // as the source includes it
  base::Digest digest;
};

// What decides the bytes of a cubin. What does not is left out, so that a cache serves wherever it
// is copied to: paths, the driver, the device, and the template that the source came from.
struct KernelIdentity {
  std::string_view source;            // as rendered
  std::vector<HeaderDigest> headers;  // those that the compiler is given in memory, in any order
  std::vector<std::string> options;   // one string each, in any order
  std::vector<std::string> name_expressions;  // kernels that are to be made, in their order
  std::string architecture;                   // "sm_90a"
  std::string compiler;                       // its build, not its version
};

// Throws InternalError for an option that makes the compiler read or write files, since their
// content is not in the key.
Key make_kernel_key(const KernelIdentity& identity);

}  // namespace stof::kernel
