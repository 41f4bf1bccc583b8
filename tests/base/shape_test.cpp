#include <cstdint>
#include <vector>

#include <doctest/doctest.h>

#include "stof/error.hpp"
#include "stof/tensor.hpp"

using stof::Dim;
using stof::GraphError;
using stof::Shape;

namespace {

const Dim kSeq = Dim::symbol("seq", 1, 2048);

}  // namespace

TEST_CASE("a shape is written as its extents") {
  const Shape shape = {8, kSeq, 768};
  CHECK(shape.rank() == 3);
  CHECK(shape.text() == "[8, seq, 768]");
  CHECK(shape == Shape(std::vector<Dim>{8, kSeq, 768}));
  CHECK_FALSE(shape == Shape{8, kSeq});
  CHECK(Shape().text() == "[]");
  CHECK(Shape::of(std::vector<std::int64_t>{2, 3}) == Shape{2, 3});
}

TEST_CASE("axes count from both ends") {
  const Shape shape = {8, kSeq, 768};
  CHECK(shape[0] == Dim(8));
  CHECK(shape[2] == Dim(768));
  CHECK(shape[-1] == Dim(768));
  CHECK(shape[-3] == Dim(8));
  CHECK_THROWS_WITH_AS(shape[3], "shape: [8, seq, 768] has no axis 3", GraphError);
  CHECK_THROWS_WITH_AS(shape[-4], "shape: [8, seq, 768] has no axis -4", GraphError);
  CHECK_THROWS_WITH_AS(Shape()[0], "shape: [] has no axis 0", GraphError);
}

TEST_CASE("sizes are known once the symbols are") {
  const Shape shape = {8, kSeq - 1};
  CHECK_FALSE(shape.is_static());
  CHECK(Shape{8, 3}.is_static());
  CHECK(Shape{8, 3}.sizes() == std::vector<std::int64_t>{8, 3});
  CHECK(shape.sizes({{"seq", 317}}) == std::vector<std::int64_t>{8, 316});
  CHECK_THROWS_WITH_AS(shape.sizes(), "dim: seq - 1 is symbolic and has no value yet", GraphError);
  CHECK_THROWS_WITH_AS(shape.sizes({{"seq", 4096}}), "dim: seq = 4096 is outside [1, 2048]",
                       GraphError);
}

TEST_CASE("a negative extent has no size") {
  CHECK_THROWS_WITH_AS((Shape{8, kSeq - 4}.sizes({{"seq", 1}})),
                       "shape: extent 1 of [8, seq - 4] is -3", GraphError);
  CHECK_THROWS_WITH_AS(Shape{-1}.sizes(), "shape: extent 0 of [-1] is -1", GraphError);
}

TEST_CASE("the element count is a dim") {
  CHECK(Shape{8, kSeq, 768}.element_count() == 6144 * kSeq);
  CHECK(Shape{8, 0, 3}.element_count() == Dim(0));
  CHECK(Shape().element_count() == Dim(1));
  CHECK_THROWS_AS((Shape{std::int64_t{1} << 32, std::int64_t{1} << 32}.element_count()),
                  GraphError);
}
