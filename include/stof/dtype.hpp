#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace stof {

enum class DType : std::uint8_t { Float16, BFloat16, Float32, Int32, Int64, UInt8, Bool };

// Bytes of one element; Bool takes one.
int size_bytes(DType dtype);

// "float16", "bfloat16", "float32", "int32", "int64", "uint8", "bool".
std::string_view name(DType dtype);
std::optional<DType> dtype_from_name(std::string_view name);

bool is_floating(DType dtype);

}  // namespace stof
