#include "io/safetensors_writer.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/checked.hpp"
#include "base/files.hpp"
#include "base/text.hpp"
#include "io/safetensors_header.hpp"
#include "stof/error.hpp"

namespace stof::io {

static_assert(std::endian::native == std::endian::little);

namespace {

using base::quote;
using Metadata = std::map<std::string, std::string, std::less<>>;

std::string json_string(const std::string& text) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::type_error&) {
    throw GraphError(fmt::format("safetensors: {} is not UTF-8", quote(text)));
  }
}

void check_tensor(const NamedTensor& tensor) {
  if (tensor.name == kSafetensorsMetadata) {
    throw GraphError(fmt::format("safetensors: a tensor may not be named {}", quote(tensor.name)));
  }
  const TensorView& view = tensor.view;
  if (view.location != Location::Host) {
    throw GraphError(fmt::format("safetensors: {} is in device memory", quote(tensor.name)));
  }
  if (view.shape.size() > kMaxSafetensorsRank) {
    throw GraphError(fmt::format("safetensors: {} has rank {}, over the limit of {}",
                                 quote(tensor.name), view.shape.size(), kMaxSafetensorsRank));
  }
}

// In the order of the data: large elements first, so that every tensor is aligned.
std::vector<const NamedTensor*> data_order(std::span<const NamedTensor> tensors) {
  std::vector<const NamedTensor*> order;
  std::set<std::string_view> names;
  order.reserve(tensors.size());
  for (const NamedTensor& tensor : tensors) {
    check_tensor(tensor);
    if (!names.insert(tensor.name).second) {
      throw GraphError(fmt::format("safetensors: two tensors are named {}", quote(tensor.name)));
    }
    order.push_back(&tensor);
  }
  std::ranges::sort(order, {}, [](const NamedTensor* tensor) {
    return std::pair(-size_bytes(tensor->view.dtype), std::string_view(tensor->name));
  });
  return order;
}

std::string metadata_item(const Metadata& metadata) {
  std::vector<std::string> pairs;
  for (const auto& [key, value] : metadata) {
    pairs.push_back(json_string(key) + ":" + json_string(value));
  }
  return fmt::format("\"{}\":{{{}}}", kSafetensorsMetadata, fmt::join(pairs, ","));
}

// The length of the header, then the header.
std::string header_bytes(std::span<const NamedTensor* const> order, const Metadata& metadata) {
  std::vector<std::string> items;
  if (!metadata.empty()) {
    items.push_back(metadata_item(metadata));
  }
  std::int64_t begin = 0;
  for (const NamedTensor* tensor : order) {
    const TensorView& view = tensor->view;
    const auto end = base::checked_add(begin, view.element_count() * size_bytes(view.dtype));
    if (!end) {
      throw GraphError("safetensors: the tensors are over 64 bits of bytes");
    }
    items.push_back(fmt::format("{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}",
                                json_string(tensor->name), safetensors_name(view.dtype),
                                fmt::join(view.shape, ","), begin, *end));
    begin = *end;
  }
  std::string json = fmt::format("{{{}}}", fmt::join(items, ","));
  json.append((8 - json.size() % 8) % 8, ' ');
  if (json.size() > kMaxSafetensorsHeaderBytes) {
    throw GraphError(fmt::format("safetensors: a header of {} bytes is over the limit of {}",
                                 json.size(), kMaxSafetensorsHeaderBytes));
  }
  std::string length;
  for (std::size_t i = 0; i < kSafetensorsLengthBytes; ++i) {
    length += static_cast<char>(json.size() >> (8 * i));
  }
  return length + json;
}

}  // namespace

void write_safetensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                       const Metadata& metadata) {
  const std::vector<const NamedTensor*> order = data_order(tensors);
  const std::string header = header_bytes(order, metadata);
  base::AtomicFile file(path);
  file.write(header);
  for (const NamedTensor* tensor : order) {
    const TensorView& view = tensor->view;
    if (view.is_contiguous() && view.data != nullptr) {
      const auto size = static_cast<std::size_t>(view.element_count() * size_bytes(view.dtype));
      file.write(std::span(static_cast<const std::byte*>(view.data), size));
    } else {
      file.write(HostTensor(view).bytes());
    }
  }
  file.commit();
}

}  // namespace stof::io
