#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>

#include "stof/tensor.hpp"

namespace stof::io {

// Writes host views of any strides to a safetensors file, one after the other; the file appears
// when it is whole. Every tensor is aligned in it. Throws GraphError.
void write_safetensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                       const std::map<std::string, std::string, std::less<>>& metadata = {});

}  // namespace stof::io
