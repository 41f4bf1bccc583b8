#include "compile/check_entry.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

#include <fmt/format.h>

#include "compile/kernel_parameters.hpp"

namespace stof::compile {

void check_entry(const CompiledKernel& kernel, const std::string& file, const std::string& name,
                 std::span<const std::int64_t> argument_bytes,
                 std::span<const std::string> argument_names) {
  const auto is_it = [&](const FunctionResources& function) {
    return function.is_entry && function.name == name;
  };
  if (std::ranges::none_of(kernel.functions, is_it)) {
    throw TemplateError(file, 1, 1,
                        fmt::format("the rendered source has no entry '{}', which is written "
                                    "extern \"C\" __global__ void {{{{ kernel }}}}(..)",
                                    name));
  }
  const std::vector<std::int64_t> parameters = parameter_bytes(kernel.cubin, name);
  if (parameters.size() != argument_bytes.size()) {
    throw TemplateError(file, 1, 1,
                        fmt::format("the kernel has {} parameters, its launch passes {} arguments",
                                    parameters.size(), argument_bytes.size()));
  }
  const auto [parameter, argument] = std::ranges::mismatch(parameters, argument_bytes);
  if (parameter != parameters.end()) {
    const auto number = static_cast<std::size_t>(parameter - parameters.begin());
    const std::string which =
        number < argument_names.size() ? fmt::format(", {},", argument_names[number]) : "";
    throw TemplateError(file, 1, 1,
                        fmt::format("parameter {} of the kernel is of {} bytes, the argument that "
                                    "its launch passes{} of {}",
                                    number, *parameter, which, *argument));
  }
}

}  // namespace stof::compile
