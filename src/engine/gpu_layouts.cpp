#include "engine/gpu_layouts.hpp"

#include <algorithm>

#include "cuda/device_scope.hpp"
#include "cuda/stream.hpp"
#include "expr/node.hpp"
#include "graph/masking.hpp"
#include "mask_layout/build.hpp"
#include "mask_layout/fetch.hpp"
#include "stof/error.hpp"

namespace stof::engine {

namespace {

// With fewer tiles the host is done before the GPU has begun; with more than that the worst case
// takes gigabytes.
constexpr std::int64_t kLeastTiles = 1024;
constexpr std::int64_t kMostTiles = std::int64_t{1} << 20;

// The libraries of the host and of the GPU round these apart.
bool is_exact(const Expr& expression) {
  const expr::Op op = expression.node().op;
  return op != expr::Op::Exp && op != expr::Op::Log && op != expr::Op::Tanh &&
         std::ranges::all_of(expression.node().operands, is_exact);
}

bool is_for_gpu(const Mask& mask, const mask::Extent& extent) {
  const std::int64_t tiles = mask_layout::grid_of(mask, extent, {}).tile_count();
  return tiles >= kLeastTiles && tiles <= kMostTiles && !mask.has_captures() &&
         std::ranges::all_of(graph::expressions(mask), is_exact);
}

}  // namespace

mask::MaskLayout build_layout(int device, const Mask& mask, const mask::Extent& extent) {
  if (!is_for_gpu(mask, extent)) {
    return mask::build_layout(mask, extent);
  }
  const cuda::DeviceScope scope(device);
  const cuda::Stream stream;
  const mask_layout::DeviceMask on_gpu(mask, extent);
  const mask_layout::BuiltLayout built = mask_layout::build_layout(on_gpu, {}, stream.get());
  mask::MaskLayout layout = mask_layout::fetch(built.layout(), extent);
  mask::check_any_seen(mask, layout);
  return layout;
}

}  // namespace stof::engine
