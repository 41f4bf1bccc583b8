#include <cstdint>

#include <doctest/doctest.h>

#include "stof/error.hpp"
#include "stof/tensor.hpp"

using stof::DType;
using stof::GraphError;
using stof::TensorView;

TEST_CASE("a view counts its elements") {
  CHECK(TensorView{.shape = {2, 3, 4}}.element_count() == 24);
  CHECK(TensorView{}.element_count() == 1);
  CHECK(TensorView{.shape = {2, 0, 4}}.element_count() == 0);
  // No element, so nothing overflows, whatever the other extents say.
  CHECK(TensorView{.shape = {std::int64_t{1} << 62, 0, std::int64_t{1} << 62}}.element_count() ==
        0);
}

TEST_CASE("an impossible shape is refused") {
  CHECK_THROWS_WITH_AS((TensorView{.shape = {2, -3}}.element_count()),
                       "tensor: [2, -3] has a negative extent", GraphError);
  CHECK_THROWS_WITH_AS((TensorView{.shape = {0, -3}}.element_count()),
                       "tensor: [0, -3] has a negative extent", GraphError);
  const TensorView huge = {.dtype = DType::Int64, .shape = {std::int64_t{1} << 60}};
  CHECK_THROWS_WITH_AS(huge.element_count(),
                       "tensor: [1152921504606846976] of int64 is over 64 bits of bytes",
                       GraphError);
  CHECK((TensorView{.dtype = DType::UInt8, .shape = {std::int64_t{1} << 60}}.element_count()) ==
        std::int64_t{1} << 60);
}

TEST_CASE("contiguous is row-major without gaps; extents of 1 have no say") {
  CHECK(TensorView{.shape = {2, 3, 4}}.is_contiguous());
  CHECK(TensorView{.shape = {2, 3, 4}, .strides = {12, 4, 1}}.is_contiguous());
  CHECK_FALSE(TensorView{.shape = {2, 3, 4}, .strides = {16, 4, 1}}.is_contiguous());
  CHECK_FALSE(TensorView{.shape = {2, 3}, .strides = {1, 2}}.is_contiguous());
  CHECK_FALSE(TensorView{.shape = {2, 3}, .strides = {0, 1}}.is_contiguous());
  CHECK(TensorView{.shape = {1, 3}, .strides = {99, 1}}.is_contiguous());
  CHECK(TensorView{.shape = {3, 1}, .strides = {1, 99}}.is_contiguous());
  CHECK(TensorView{.shape = {0, 3}, .strides = {7, 7}}.is_contiguous());
}

TEST_CASE("offsets that leave 64 bits are refused") {
  for (const std::int64_t stride : {INT64_MAX / 2, INT64_MIN, -INT64_MAX}) {
    const TensorView far{.shape = {1, 4, 1}, .strides = {1, stride, 1}};
    CHECK_THROWS_WITH_AS(far.is_contiguous(), doctest::Contains("spans over 64 bits of bytes"),
                         GraphError);
  }
}

TEST_CASE("there is a stride for each axis, or none at all") {
  CHECK_THROWS_WITH_AS((TensorView{.shape = {2, 3}, .strides = {1}}.is_contiguous()),
                       "tensor: [2, 3] has 1 strides", GraphError);
}
