#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stof/engine.hpp"

// Tensors where they cross the border between a caller and a plan.
namespace stof::engine {

// Throws GraphError unless the view has the dtype, and the shape under these dims, of the plan's
// tensor, and lies where the backend takes it: "bind: input 'x' is float32[8, 512], the plan takes
// float16[8, 512]".
void check_view(std::string_view call, std::string_view kind, const TensorInfo& info,
                const TensorView& view, const DimValues& dims, Location where);

// Throws GraphError for a workspace that is not aligned as BindOptions says; null is one.
void check_workspace(const void* workspace);

// Copies into a host view of the same dtype and shape, strided or not.
void copy(const HostTensor& from, const TensorView& to);

// "float16[8, 512]".
std::string describe(DType dtype, std::span<const std::int64_t> shape);

// "'a', 'b', 'c'", at most eight and then "… (20 in all)"; "none".
std::string list_names(const std::vector<TensorInfo>& tensors);

}  // namespace stof::engine
