#include "compile/compiled_kernel.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/check.hpp"

namespace stof::compile {

const FunctionResources& CompiledKernel::entry(const std::string& name) const {
  const auto found = std::ranges::find_if(functions, [&name](const FunctionResources& function) {
    return function.is_entry && function.name == name;
  });
  STOF_CHECK(found != functions.end()) << "no entry function '" << name << "'";
  return *found;
}

bool is_performance_loss(const CompileMessage& message) {
  return message.text.find("Potential Performance Loss") != std::string::npos;
}

bool is_injected_wait(const CompileMessage& message) {
  return message.code == "C7517" || message.code == "C7519";
}

std::vector<std::string> quality_faults(const CompiledKernel& kernel) {
  std::vector<std::string> faults;
  for (const FunctionResources& function : kernel.functions) {
    if (function.spill_store_bytes > 0 || function.spill_load_bytes > 0) {
      faults.push_back(fmt::format("{} spills {} bytes and loads {} back", function.name,
                                   function.spill_store_bytes, function.spill_load_bytes));
    }
    if (function.stack_bytes > 0) {
      faults.push_back(
          fmt::format("{} has a stack frame of {} bytes", function.name, function.stack_bytes));
    }
  }
  for (const CompileMessage& message : kernel.messages) {
    if (is_performance_loss(message) || is_injected_wait(message)) {
      faults.push_back(message.str());
    }
  }
  return faults;
}

}  // namespace stof::compile
