#include "cost/occupancy.hpp"

#include <doctest/doctest.h>

using stof::base::shipped_profile;
using stof::cost::blocks_per_sm;

TEST_CASE("the scarcest resource decides") {
  const auto& h200 = shipped_profile("h200");
  CHECK(blocks_per_sm(h200, {.threads = 128, .shared_bytes = 0, .registers = 32}) == 16);
  CHECK(blocks_per_sm(h200, {.threads = 32, .shared_bytes = 0, .registers = 16}) == 32);
  CHECK(blocks_per_sm(h200, {.threads = 128, .shared_bytes = 46080, .registers = 32}) == 4);
  CHECK(blocks_per_sm(h200, {.threads = 128, .shared_bytes = 46080, .registers = 158}) == 3);
  CHECK(blocks_per_sm(h200, {.threads = 256, .shared_bytes = 0, .registers = 129}) == 1);
  CHECK(blocks_per_sm(h200, {.threads = 1024, .shared_bytes = 0, .registers = 32}) == 2);
}

TEST_CASE("a block that an SM cannot hold counts as one") {
  CHECK(blocks_per_sm(shipped_profile("rtx4090"),
                      {.threads = 1024, .shared_bytes = 300000, .registers = 255}) == 1);
  CHECK(blocks_per_sm(shipped_profile("rtx4090"), {}) == 24);
}
