#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "kernel/program.hpp"

namespace stof::fusion {

template <typename T>
kernel::ConstantArray constant_array(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return std::make_shared<const std::vector<std::byte>>(bytes.begin(), bytes.end());
}

}  // namespace stof::fusion
