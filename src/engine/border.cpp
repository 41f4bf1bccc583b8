#include "engine/border.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "execute/arena.hpp"
#include "stof/error.hpp"

namespace stof::engine {

std::string describe(DType dtype, std::span<const std::int64_t> shape) {
  return fmt::format("{}[{}]", name(dtype), fmt::join(shape, ", "));
}

std::string list_names(const std::vector<TensorInfo>& tensors) {
  constexpr std::size_t kMost = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(tensors.size(), kMost); ++i) {
    text += fmt::format("{}'{}'", i == 0 ? "" : ", ", tensors[i].name);
  }
  if (tensors.size() > kMost) {
    text += fmt::format(", … ({} in all)", tensors.size());
  }
  return text.empty() ? "none" : text;
}

namespace {

// What kernels rely on.
void check_device_layout(std::string_view call, std::string_view kind, const std::string& name,
                         const TensorView& view, bool is_contiguous) {
  constexpr std::uintptr_t kAlignment = 16;
  if (!is_contiguous) {
    throw GraphError(
        fmt::format("{}: {} '{}' has strides [{}], the GPU backend takes contiguous tensors", call,
                    kind, name, fmt::join(view.strides, ", ")));
  }
  if (reinterpret_cast<std::uintptr_t>(view.data) % kAlignment != 0) {
    throw GraphError(fmt::format("{}: {} '{}' is at {}, the GPU backend takes multiples of {}",
                                 call, kind, name, view.data, kAlignment));
  }
}

}  // namespace

void check_view(std::string_view call, std::string_view kind, const TensorInfo& info,
                const TensorView& view, const DimValues& dims, Location where) {
  const std::vector<std::int64_t> shape = info.shape.sizes(dims);
  if (view.location != where) {
    throw GraphError(fmt::format(
        "{}: {} '{}' lies on {}", call, kind, info.name,
        where == Location::Host ? "a device, the reference backend reads the host"
                                : "the host, the GPU backend reads its device (Engine::allocate)"));
  }
  if (view.dtype != info.dtype || view.shape != shape) {
    throw GraphError(fmt::format("{}: {} '{}' is {}, the plan takes {}", call, kind, info.name,
                                 describe(view.dtype, view.shape), describe(info.dtype, shape)));
  }
  const bool is_contiguous = view.is_contiguous();  // throws where the strides are none
  if (where == Location::Device) {
    check_device_layout(call, kind, info.name, view, is_contiguous);
  }
  if (view.data == nullptr && view.element_count() > 0) {
    throw GraphError(fmt::format("{}: {} '{}' is a null pointer", call, kind, info.name));
  }
}

void check_workspace(const void* workspace) {
  if (reinterpret_cast<std::uintptr_t>(workspace) % execute::kArenaAlignment != 0) {
    throw GraphError(fmt::format("bind: the workspace is at {}, not at a multiple of {}", workspace,
                                 execute::kArenaAlignment));
  }
}

void copy(const HostTensor& from, const TensorView& to) {
  const auto item_bytes = static_cast<std::size_t>(size_bytes(to.dtype));
  auto* target = static_cast<std::byte*>(to.data);
  if (to.is_contiguous()) {
    std::copy(from.bytes().begin(), from.bytes().end(), target);
    return;
  }
  std::vector<std::int64_t> index(to.shape.size(), 0);
  for (std::size_t item = 0; item < from.bytes().size(); item += item_bytes) {
    std::int64_t offset = 0;
    for (std::size_t axis = 0; axis < index.size(); ++axis) {
      offset += index[axis] * to.strides[axis];
    }
    std::memcpy(target + offset * static_cast<std::int64_t>(item_bytes), &from.bytes()[item],
                item_bytes);
    for (std::size_t axis = index.size(); axis-- > 0 && ++index[axis] == to.shape[axis];) {
      index[axis] = 0;
    }
  }
}

}  // namespace stof::engine
