#pragma once

#include <cstdint>

#include "stof/precision.hpp"

namespace stof {

// What runs a plan.
enum class Backend : std::uint8_t {
  Reference,  // the CPU, exactly: for tests, and for machines without a GPU
};

struct EngineOptions {
  Backend backend = Backend::Reference;
  Precision precision = Precision::Model;  // of the reference backend
};

}  // namespace stof
