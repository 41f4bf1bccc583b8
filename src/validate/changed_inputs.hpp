#pragma once

#include <cstdint>

#include "validate/hostile_tensors.hpp"

// Inputs that are changed a little, to see how far the results move.
namespace stof::validate {

// Numbers that move the same way.
enum class Together : std::uint8_t {
  None,     // each for itself
  Rows,     // those along the last axis
  Columns,  // those along the axis before it
};

// In float32, floats changed by that much of themselves, up or down at random; 0: as they are.
HostTensors changed(const HostTensors& tensors, double change, Together together,
                    std::uint64_t seed);

}  // namespace stof::validate
