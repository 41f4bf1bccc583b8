#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace stof::kernel {

// One kernel before it is rendered: a template and its variables. Equal specs render to equal
// sources.
struct KernelSpec {
  std::string file;   // of the template: "norm/layer_norm.jinja"
  std::string entry;  // the kernel's name
  nlohmann::json variables;

  friend bool operator==(const KernelSpec&, const KernelSpec&) = default;
};

}  // namespace stof::kernel
