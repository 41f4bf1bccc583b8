#include "compile/check_entry.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace stof::compile {

void check_entry(const CompiledKernel& kernel, const std::string& file, const std::string& name) {
  const auto is_it = [&](const FunctionResources& function) {
    return function.is_entry && function.name == name;
  };
  if (std::ranges::none_of(kernel.functions, is_it)) {
    throw TemplateError(file, 1, 1,
                        fmt::format("the rendered source has no entry '{}', which is written "
                                    "extern \"C\" __global__ void {{{{ kernel }}}}(..)",
                                    name));
  }
}

}  // namespace stof::compile
