#include "validate/changed_inputs.hpp"

#include <cmath>
#include <cstdint>
#include <functional>

#include <doctest/doctest.h>

using namespace stof;  // NOLINT(google-build-using-namespace)
using validate::Together;

namespace {

// Whether each float moved by `change` of itself, and two of them the same way where `is_group`
// says so, which is not all of them.
bool moves(Together together, const std::function<bool(std::int64_t, std::int64_t)>& is_group) {
  constexpr double kChange = 0x1p-10;
  constexpr std::int64_t kCount = 3 * 5 * 7;
  HostTensor ones(DType::Float16, {3, 5, 7});
  for (std::int64_t i = 0; i < kCount; ++i) {
    ones.set(i, 1);
  }
  const HostTensor moved = validate::changed({{"x", ones}}, kChange, together, 1).at("x");
  bool is_right = true;
  bool has_both = false;
  for (std::int64_t i = 0; i < kCount; ++i) {
    is_right = is_right && std::abs(moved.at(i) - 1) == kChange;
    has_both = has_both || moved.at(i) != moved.at(0);
    for (std::int64_t j = 0; j < kCount; ++j) {
      is_right = is_right && (!is_group(i, j) || moved.at(i) == moved.at(j));
    }
  }
  return is_right && has_both;
}

}  // namespace

TEST_CASE("floats move at random, and together along an axis") {
  CHECK(moves(Together::None, [](std::int64_t i, std::int64_t j) { return i == j; }));
  CHECK(moves(Together::Rows, [](std::int64_t i, std::int64_t j) { return i / 7 == j / 7; }));
  CHECK(moves(Together::Columns,
              [](std::int64_t i, std::int64_t j) { return i / 35 == j / 35 && i % 7 == j % 7; }));
}

TEST_CASE("integers, and floats that are not to move, stay") {
  HostTensor ids(DType::Int32, {3});
  ids.set(1, 1000000);
  CHECK(validate::changed({{"ids", ids}}, 0.5, Together::Rows, 1).at("ids").at(1) == 1000000);
  HostTensor halves(DType::Float16, {1});
  halves.set(0, 0.5);
  const HostTensor same = validate::changed({{"x", halves}}, 0, Together::None, 1).at("x");
  CHECK(same.at(0) == 0.5);
  CHECK(same.dtype() == DType::Float32);
}
