// Any bytes are a file or a GraphError; every tensor of a file can be read, or is of a foreign
// dtype.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/check.hpp"
#include "io/safetensors.hpp"
#include "stof/error.hpp"

namespace {

std::optional<stof::io::SafetensorsFile> parse(std::span<const std::byte> bytes) {
  try {
    return stof::io::SafetensorsFile::parse(bytes, "input");
  } catch (const stof::GraphError&) {
    return std::nullopt;
  }
}

std::optional<stof::TensorView> view(const stof::io::SafetensorsFile& file,
                                     const std::string& name) {
  try {
    return file.view(name);
  } catch (const stof::GraphError&) {
    return std::nullopt;
  }
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer calls it by this name
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto file = parse(std::as_bytes(std::span(data, size)));
  if (!file) {
    return 0;
  }
  for (const std::string& name : file->names()) {
    if (const auto tensor = view(*file, name)) {
      const auto address = reinterpret_cast<std::uintptr_t>(tensor->data);
      STOF_CHECK(address % static_cast<std::size_t>(size_bytes(tensor->dtype)) == 0) << name;
      const stof::HostTensor copy(*tensor);  // reads every byte
      STOF_CHECK(copy.bytes().size() <= size) << name;
    }
  }
  return 0;
}
