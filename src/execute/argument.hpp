#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <variant>
#include <vector>

#include <cuda.h>

#include "kernel/program.hpp"

namespace stof::execute {

// The value of an argument as a kernel reads it: its first argument_bytes() bytes.
using ArgumentSlot = std::uint64_t;

inline bool is_pointer(const kernel::LaunchArgument& argument) {
  return std::holds_alternative<std::nullptr_t>(argument) ||
         std::holds_alternative<kernel::Location>(argument) ||
         std::holds_alternative<kernel::LayoutArray>(argument);
}

inline std::size_t argument_bytes(const kernel::LaunchArgument& argument) {
  if (std::holds_alternative<kernel::TensorMap>(argument)) {
    return sizeof(CUtensorMap);
  }
  return is_pointer(argument)
             ? sizeof(void*)
             : std::visit([](const auto& value) { return sizeof(value); }, argument);
}

// Of the arguments that the launches of one kernel of the program pass.
inline std::vector<std::int64_t> argument_bytes(const kernel::Program& program, int kernel) {
  const auto launch = std::ranges::find(program.launches, kernel, &kernel::LaunchRecord::kernel);
  std::vector<std::int64_t> bytes;
  if (launch != program.launches.end()) {
    for (const kernel::LaunchArgument& argument : launch->arguments) {
      bytes.push_back(static_cast<std::int64_t>(argument_bytes(argument)));
    }
  }
  return bytes;
}

// Of a number; 0, the null pointer, for a pointer or a tensor map.
inline ArgumentSlot to_slot(const kernel::LaunchArgument& argument) {
  ArgumentSlot slot = 0;
  const auto copy = [&slot](const auto& value) {
    if constexpr (std::is_arithmetic_v<std::decay_t<decltype(value)>>) {
      std::memcpy(&slot, &value, sizeof(value));
    }
  };
  if (!is_pointer(argument)) {
    std::visit(copy, argument);
  }
  return slot;
}

inline ArgumentSlot to_slot(const void* pointer) {
  ArgumentSlot slot = 0;
  static_assert(sizeof(slot) == sizeof(pointer));
  std::memcpy(&slot, &pointer, sizeof(pointer));
  return slot;
}

}  // namespace stof::execute
