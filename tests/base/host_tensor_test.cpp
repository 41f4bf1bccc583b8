#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include <doctest/doctest.h>

#include "stof/error.hpp"
#include "stof/tensor.hpp"

using stof::DType;
using stof::GraphError;
using stof::HostTensor;
using stof::TensorView;

namespace {

constexpr DType kAll[] = {DType::Float16, DType::BFloat16, DType::Float32, DType::Int32,
                          DType::Int64,   DType::UInt8,    DType::Bool};

std::vector<double> values(const HostTensor& tensor) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) {
    values.push_back(tensor.at(i));
  }
  return values;
}

HostTensor int64s(const std::vector<std::int64_t>& numbers) {
  HostTensor tensor(DType::Int64, {static_cast<std::int64_t>(numbers.size())});
  std::memcpy(tensor.bytes().data(), numbers.data(), tensor.bytes().size());
  return tensor;
}

}  // namespace

TEST_CASE("a new tensor is zeros of its dtype and shape") {
  for (const DType dtype : kAll) {
    HostTensor tensor(dtype, {2, 3});
    CHECK(tensor.dtype() == dtype);
    CHECK(tensor.element_count() == 6);
    CHECK(tensor.bytes().size() == static_cast<std::size_t>(6 * size_bytes(dtype)));
    CHECK(values(tensor) == std::vector<double>(6, 0.0));
    CHECK(tensor.view().is_contiguous());
    CHECK(tensor.view().shape == std::vector<std::int64_t>{2, 3});
  }
  CHECK(HostTensor().element_count() == 0);
  CHECK(HostTensor(DType::Float32, {}).element_count() == 1);
}

TEST_CASE("a bad shape is refused before anything is allocated") {
  CHECK_THROWS_WITH_AS(HostTensor(DType::Float32, {2, -1}), "tensor: [2, -1] has a negative extent",
                       GraphError);
  CHECK_THROWS_AS(HostTensor(DType::Float32, {std::int64_t{1} << 62}), GraphError);
}

TEST_CASE("what no memory holds is refused") {
  CHECK_THROWS_WITH_AS(
      HostTensor(DType::Float32, {std::int64_t{1} << 58}),
      "tensor: float32[288230376151711744] of 1152921504606846976 bytes does not fit in memory",
      GraphError);
}

TEST_CASE("what is set is read back, by every dtype") {
  for (const DType dtype : kAll) {
    HostTensor tensor(dtype, {2, 2});
    tensor.set(3, 1);
    CHECK(values(tensor) == std::vector<double>{0, 0, 0, 1});
  }
  HostTensor half(DType::Float16, {2});
  half.set(0, 0.1);
  half.set(1, 65520);
  CHECK(values(half) == std::vector<double>{0.0999755859375, INFINITY});
}

TEST_CASE("an integer dtype holds integers of its range and nothing else") {
  HostTensor bytes(DType::UInt8, {1});
  CHECK_NOTHROW(bytes.set(0, 255));
  CHECK_THROWS_WITH_AS(bytes.set(0, 256), "tensor: uint8 cannot hold 256", GraphError);
  CHECK_THROWS_WITH_AS(bytes.set(0, -1), "tensor: uint8 cannot hold -1", GraphError);
  CHECK_THROWS_WITH_AS(bytes.set(0, 2.5), "tensor: uint8 cannot hold 2.5", GraphError);
  CHECK(bytes.at(0) == 255);
  HostTensor bools(DType::Bool, {1});
  CHECK_THROWS_WITH_AS(bools.set(0, 2), "tensor: bool cannot hold 2", GraphError);
  HostTensor words(DType::Int32, {1});
  CHECK_NOTHROW(words.set(0, -2147483648.0));
  CHECK_THROWS_WITH_AS(words.set(0, 2147483648.0), "tensor: int32 cannot hold 2147483648",
                       GraphError);
  CHECK_THROWS_WITH_AS(words.set(0, NAN), "tensor: int32 cannot hold nan", GraphError);
  HostTensor longs(DType::Int64, {1});
  CHECK_NOTHROW(longs.set(0, -0x1p63));
  CHECK_THROWS_AS(longs.set(0, 0x1p63), GraphError);
  CHECK_THROWS_WITH_AS(longs.set(0, INFINITY), "tensor: int64 cannot hold inf", GraphError);
}

TEST_CASE("a position outside is named") {
  HostTensor tensor(DType::Float32, {2, 3});
  CHECK_THROWS_WITH_AS(tensor.at(6), "tensor: position 6 is outside [0, 6)", GraphError);
  CHECK_THROWS_WITH_AS(tensor.set(-1, 0), "tensor: position -1 is outside [0, 6)", GraphError);
}

TEST_CASE("a copy of a view is contiguous, whatever its strides") {
  std::array<float, 6> data = {0, 1, 2, 3, 4, 5};
  const auto copy = [&](std::vector<std::int64_t> shape, std::vector<std::int64_t> strides,
                        int offset = 0) {
    return values(HostTensor(TensorView{
        .data = data.data() + offset, .shape = std::move(shape), .strides = std::move(strides)}));
  };
  CHECK(copy({2, 3}, {}) == std::vector<double>{0, 1, 2, 3, 4, 5});
  CHECK(copy({3, 2}, {1, 3}) == std::vector<double>{0, 3, 1, 4, 2, 5});
  CHECK(copy({2, 2}, {3, 2}) == std::vector<double>{0, 2, 3, 5});
  CHECK(copy({3, 2}, {1, 0}) == std::vector<double>{0, 0, 1, 1, 2, 2});
  CHECK(copy({6}, {-1}, 5) == std::vector<double>{5, 4, 3, 2, 1, 0});
  CHECK(copy({}, {}, 4) == std::vector<double>{4});
  CHECK(copy({0, 3}, {9, 9}).empty());
}

TEST_CASE("a view that the host cannot read is refused") {
  CHECK_THROWS_WITH_AS(HostTensor(TensorView{.shape = {2, 3}}), "tensor: [2, 3] has no data",
                       GraphError);
  CHECK_NOTHROW(HostTensor(TensorView{.shape = {0}}));
  int word = 0;
  CHECK_THROWS_WITH_AS(
      HostTensor(TensorView{.data = &word, .shape = {1}, .location = stof::Location::Device}),
      "tensor: a view of device memory cannot be read on the host", GraphError);
  CHECK_THROWS_WITH_AS(HostTensor(TensorView{.data = &word, .shape = {1}, .strides = {1, 1}}),
                       "tensor: [1] has 2 strides", GraphError);
}

TEST_CASE("a bool is true for any byte but 0") {
  std::array<unsigned char, 3> data = {0, 1, 7};
  const TensorView view = {.data = data.data(), .dtype = DType::Bool, .shape = {3}};
  CHECK(values(HostTensor(view)) == std::vector<double>{0, 1, 1});
  CHECK(values(HostTensor(view).cast(DType::Int32)) == std::vector<double>{0, 1, 1});
}

TEST_CASE("a cast converts every element") {
  HostTensor tensor(DType::Float32, {4});
  const std::vector<double> numbers = {0, 1, 200, 77};
  for (std::int64_t i = 0; i < 4; ++i) {
    tensor.set(i, numbers[static_cast<std::size_t>(i)]);
  }
  for (const DType dtype : kAll) {
    if (dtype != DType::Bool) {
      CHECK(tensor.cast(dtype).dtype() == dtype);
      CHECK(values(tensor.cast(dtype)) == numbers);
    }
  }
  CHECK_THROWS_WITH_AS(tensor.cast(DType::Bool), "tensor: bool cannot hold 200", GraphError);
}

TEST_CASE("a cast of integers rounds once and keeps what fits") {
  const std::int64_t max = std::numeric_limits<std::int64_t>::max();
  const HostTensor same = int64s({max, -max, (std::int64_t{1} << 53) + 1}).cast(DType::Int64);
  CHECK(std::memcmp(same.bytes().data(),
                    int64s({max, -max, (std::int64_t{1} << 53) + 1}).bytes().data(), 24) == 0);
  // Just above halfway between two floats: by way of a double it would be halfway and go down.
  const std::int64_t above_half = (std::int64_t{1} << 60) + (std::int64_t{1} << 36) + 1;
  CHECK(static_cast<float>(above_half) == 0x1.000002p60f);
  for (const std::int64_t number : {above_half, -above_half, max, -max - 1, max - 511,
                                    (std::int64_t{1} << 53) + 1, std::int64_t{16777217}}) {
    CHECK(int64s({number}).cast(DType::Float32).at(0) == static_cast<float>(number));
  }
  const std::int64_t above_bfloat_half = (std::int64_t{1} << 60) + (std::int64_t{1} << 52) + 1;
  CHECK(int64s({above_bfloat_half}).cast(DType::BFloat16).at(0) == 0x1.02p60);
  CHECK(int64s({above_bfloat_half - 1}).cast(DType::BFloat16).at(0) == 0x1p60);
  CHECK_THROWS_AS(int64s({std::int64_t{1} << 31}).cast(DType::Int32), GraphError);
}
