// Any bytes are an array or a GraphError; an array comes back from the file that we write of it.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/check.hpp"
#include "io/npy.hpp"
#include "stof/error.hpp"

namespace {

void check_round_trip(const stof::HostTensor& tensor) {
  std::string file = stof::io::npy_header(tensor.dtype(), tensor.shape());
  const auto data = tensor.bytes();
  file.append(reinterpret_cast<const char*>(data.data()), data.size());
  const stof::HostTensor copy = stof::io::parse_npy(std::as_bytes(std::span(file)), "copy");
  STOF_CHECK(copy.dtype() == tensor.dtype() && copy.shape() == tensor.shape()) << file;
  STOF_CHECK(std::ranges::equal(copy.bytes(), data)) << file;
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer calls it by this name
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  stof::HostTensor tensor;
  try {
    tensor = stof::io::parse_npy(std::as_bytes(std::span(data, size)), "input");
  } catch (const stof::GraphError&) {
    return 0;
  }
  check_round_trip(tensor);
  return 0;
}
