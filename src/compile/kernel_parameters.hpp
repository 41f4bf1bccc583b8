#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace stof::compile {

// The bytes of each parameter of a kernel, in their order, as its cubin declares them. None where
// the cubin has no such kernel, whatever its bytes are.
std::vector<std::int64_t> parameter_bytes(std::span<const std::byte> cubin,
                                          const std::string& kernel);

}  // namespace stof::compile
