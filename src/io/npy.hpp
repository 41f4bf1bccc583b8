#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include "stof/tensor.hpp"

// Files of one NumPy array (.npy), versions 1 to 3 of the format in numpy.lib.format. An array is
// little-endian float16, float32, int32, int64, uint8 or bool, in C or Fortran order.
namespace stof::io {

// Throws GraphError "npy: NAME: …" for anything else, and never takes more memory than the bytes.
HostTensor parse_npy(std::span<const std::byte> bytes, const std::string& name);
HostTensor read_npy(const std::filesystem::path& path);

// What stands before the elements of a contiguous array, in version 1. Throws GraphError where
// NumPy has no such dtype or too small a rank.
std::string npy_header(DType dtype, std::span<const std::int64_t> shape);

// Writes any host view, atomically; bfloat16, which NumPy does not have, as float32. Throws
// GraphError.
void write_npy(const std::filesystem::path& path, const TensorView& view);

}  // namespace stof::io
