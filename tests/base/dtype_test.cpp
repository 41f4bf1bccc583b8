#include "stof/dtype.hpp"

#include <doctest/doctest.h>

#include "stof/error.hpp"

using stof::DType;

namespace {

struct Expected {
  DType dtype;
  std::string_view name;
  int size_bytes;
  bool is_floating;
};

constexpr Expected kExpected[] = {
    {DType::Float16, "float16", 2, true}, {DType::BFloat16, "bfloat16", 2, true},
    {DType::Float32, "float32", 4, true}, {DType::Int32, "int32", 4, false},
    {DType::Int64, "int64", 8, false},    {DType::UInt8, "uint8", 1, false},
    {DType::Bool, "bool", 1, false},
};

}  // namespace

TEST_CASE("every dtype has its name, size and kind") {
  for (const Expected& expected : kExpected) {
    CHECK(name(expected.dtype) == expected.name);
    CHECK(size_bytes(expected.dtype) == expected.size_bytes);
    CHECK(is_floating(expected.dtype) == expected.is_floating);
    CHECK(stof::dtype_from_name(expected.name) == expected.dtype);
  }
}

TEST_CASE("any other name is no dtype") {
  CHECK(stof::dtype_from_name("") == std::nullopt);
  CHECK(stof::dtype_from_name("float") == std::nullopt);
  CHECK(stof::dtype_from_name("Float16") == std::nullopt);
  CHECK(stof::dtype_from_name("float160") == std::nullopt);
}

TEST_CASE("a number that is no dtype is a fault of ours") {
  CHECK_THROWS_AS(size_bytes(static_cast<DType>(7)), stof::InternalError);
}
