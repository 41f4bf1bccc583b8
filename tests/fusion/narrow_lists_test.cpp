// Which setting lists of narrow heads have, on an H200 that is not there.
#include "fusion/narrow_lists.hpp"

#include <cstdint>

#include <doctest/doctest.h>

#include "fusion/choice_testing.hpp"
#include "fusion/decisions.hpp"
#include "stof/stof.hpp"

using namespace stof;  // NOLINT(google-build-using-namespace)
using namespace stof::testing;

namespace {

// The query rows of a tile of lists, or 0.
std::int64_t rows_of_lists(std::int64_t heads, std::int64_t q_len, std::int64_t kv_len,
                           std::int64_t head_dim, std::int64_t shared = 1) {
  Graph graph("attention");
  const auto q = graph.input("q", {1, heads, q_len, head_dim}, DType::Float16);
  const auto k = graph.input("k", {1, heads / shared, kv_len, head_dim}, DType::Float16);
  graph.output("o", graph.attention(q, k, k, {}));
  const fusion::Option option = lowered_by(graph).options.at(0).at(0);
  const bool is_lists = option.kernel == "attention_block_wise_sm90" &&
                        option.config.at("tile_k") == 128 && option.config.at("slots") == 5;
  return is_lists ? option.config.at("tile_q") : 0;
}

}  // namespace

// Microseconds with the lists, and without them.
TEST_CASE("narrow heads of a tile of 128 queries have lists where they are many") {
  CHECK(rows_of_lists(288, 100, 2304, 64) == 128);  // 69.9 and 82.2
  CHECK(rows_of_lists(400, 128, 2048, 64) == 128);  // 82.4 and 98.8
  CHECK(rows_of_lists(144, 100, 2304, 64) == 0);    // 48.8 and 38.6
  CHECK(rows_of_lists(340, 128, 320, 64) == 0);     // 19.9 and 17.9
  CHECK(rows_of_lists(300, 65, 512, 48) == 0);
  CHECK(rows_of_lists(800, 65, 700, 64, 2) == 0);  // of which two share a key head
}

TEST_CASE("narrow heads have lists of 192 queries where these fill their waves") {
  CHECK(rows_of_lists(24, 4096, 4096, 64) == 192);  // 194 and 215
  CHECK(rows_of_lists(80, 2048, 2048, 64) == 192);  // 174 and 196
  CHECK(rows_of_lists(16, 6000, 6000, 40) == 192);  // 290 and 311
  CHECK(rows_of_lists(16, 4096, 4096, 40) == 0);    // 153 and 151
  CHECK(rows_of_lists(32, 4096, 4096, 32) == 0);    // 255 and 246
  CHECK(rows_of_lists(120, 384, 384, 40) == 192);   // 19.7 and 23.3
  CHECK(rows_of_lists(200, 1024, 1024, 40) == 0);   // 130 and 125
  CHECK(rows_of_lists(384, 900, 900, 56) == 192);   // 206 and 237
  CHECK(rows_of_lists(16, 16384, 16384, 64) == 0);  // not timed
  CHECK(rows_of_lists(96, 900, 900, 64) == 0);      // 58.7 and 53.4, in steps of 64 keys
}
