#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stof/dtype.hpp"

namespace stof::io {

// A file begins with the length of its header as a little-endian integer.
inline constexpr std::size_t kSafetensorsLengthBytes = 8;
inline constexpr std::uint64_t kMaxSafetensorsHeaderBytes = 32 << 20;  // some 300,000 tensors
inline constexpr std::size_t kMaxSafetensorsRank = 32;
inline constexpr std::string_view kSafetensorsMetadata = "__metadata__";

// "F32" for Float32.
std::string_view safetensors_name(DType dtype);
std::optional<DType> dtype_from_safetensors(std::string_view name);

// What the header says of one tensor.
struct SafetensorsEntry {
  std::string dtype;  // "F32"; any name, also of a dtype that stof does not have
  std::vector<std::int64_t> shape;
  std::size_t begin = 0;  // bytes from the start of the data
  std::size_t end = 0;
};

struct SafetensorsHeader {
  std::map<std::string, SafetensorsEntry, std::less<>> entries;
  std::map<std::string, std::string, std::less<>> metadata;
};

// Parses the JSON of a header. Each range is of the size that shape and dtype take, and all
// together cover the data without overlap or hole. Throws GraphError without naming the file.
SafetensorsHeader parse_safetensors_header(std::string_view json, std::size_t data_bytes);

}  // namespace stof::io
