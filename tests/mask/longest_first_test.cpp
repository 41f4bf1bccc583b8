#include "mask/longest_first.hpp"

#include <doctest/doctest.h>

#include "mask/rows.hpp"

using namespace stof;

namespace {

using Indices = std::vector<std::int32_t>;

}  // namespace

TEST_CASE("rows with most entries come first, equal ones in their order, empty ones too") {
  CHECK(mask::longest_first(Indices{0, 2, 2, 5, 7, 8, 8}) == Indices{2, 0, 3, 4, 1, 5});
  CHECK(mask::longest_first(Indices{0}).empty());
}

TEST_CASE("the rows of causal attention are handed out backwards") {
  const mask::KeyRows rows =
      mask::key_rows(mask::build_layout(causal(), {.q_len = 100, .kv_len = 70}));
  const Indices order = mask::longest_first(rows.row_ptr);
  CHECK(order.front() == 69);  // the first of those that see all 70 keys
  CHECK(order[30] == 99);
  CHECK(order[31] == 68);
  CHECK(order.back() == 0);
}
