#include "cuda/tensor_map.hpp"

#include <cstring>

#include <doctest/doctest.h>

#include "cuda/device_array.hpp"
#include "stof/error.hpp"

using namespace stof::cuda;  // NOLINT(google-build-using-namespace)

namespace {

TensorMapSpec tile_of(const DeviceArray<unsigned short>& memory) {
  TensorMapSpec spec;
  spec.data = memory.data();
  spec.extents = {64, 128};
  spec.strides_bytes = {64 * sizeof(unsigned short)};
  spec.box = {64, 32};
  return spec;
}

}  // namespace

TEST_CASE("a tile is encoded, and another tile otherwise") {
  const DeviceArray<unsigned short> memory(64 * 128);
  TensorMapSpec spec = tile_of(memory);
  const CUtensorMap first = encode_tensor_map(spec);
  spec.box = {64, 16};
  const CUtensorMap second = encode_tensor_map(spec);
  CHECK(std::memcmp(&first, &second, sizeof first) != 0);
}

TEST_CASE("a stride that 16 does not divide is refused") {
  const DeviceArray<unsigned short> memory(64 * 128);
  TensorMapSpec spec = tile_of(memory);
  spec.strides_bytes = {130};
  CHECK_THROWS_AS(encode_tensor_map(spec), stof::CudaError);
}

TEST_CASE("a box of another rank is our own mistake") {
  const DeviceArray<unsigned short> memory(64 * 128);
  TensorMapSpec spec = tile_of(memory);
  spec.box = {64};
  CHECK_THROWS_AS(encode_tensor_map(spec), stof::InternalError);
}
