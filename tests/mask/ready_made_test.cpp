// Each ready-made mask against its definition, at lengths where queries and keys differ.
#include <array>
#include <cmath>
#include <functional>
#include <limits>

#include <doctest/doctest.h>

#include "random_mask.hpp"
#include "stof/error.hpp"

using namespace stof;

namespace {

constexpr std::int64_t kQ = 150;
constexpr std::int64_t kK = 170;

void check(const Mask& mask, const std::function<bool(std::int64_t, std::int64_t)>& sees) {
  INFO(mask.text());
  CHECK(mask.is_expression());
  CHECK(test::first_difference({mask, [&](auto, auto, auto q, auto k) { return sees(q, k); }},
                               {.batch = 1, .heads = 1, .q_len = kQ, .kv_len = kK}) == "");
}

std::uint64_t mix(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

std::uint64_t hash_of(std::uint64_t seed, std::int64_t a, std::int64_t b) {
  return mix(mix(mix(seed) ^ static_cast<std::uint64_t>(a)) ^ static_cast<std::uint64_t>(b));
}

bool is_drawn(std::int64_t query, std::int64_t key, std::int64_t blocks, int per_row, int seed) {
  for (int i = 0; i < per_row; ++i) {
    if (static_cast<std::int64_t>((hash_of(seed, query, i) >> 33) % blocks) == key) {
      return true;
    }
  }
  return false;
}

}  // namespace

TEST_CASE("causal masks") {
  check(causal(), [](auto q, auto k) { return k <= q; });
  check(causal_bottom_right(), [](auto q, auto k) { return k - (kK - kQ) <= q; });
  check(block_causal(32), [](auto q, auto k) { return k / 32 <= q / 32; });
  check(prefix(40), [](auto q, auto k) { return k <= q || k < 40; });
}

TEST_CASE("windows") {
  check(sliding_window(10, 3), [](auto q, auto k) { return k >= q - 10 && k <= q + 3; });
  check(sliding_window(0, 0), [](auto q, auto k) { return k == q; });
  check(dilated(5, 2, 3), [](auto q, auto k) {
    for (int i = -5; i <= 2; ++i) {
      if (k == q + 3 * i) {
        return true;
      }
    }
    return false;
  });
  check(window_2d(13, 2), [](auto q, auto k) {
    return std::abs(q / 13 - k / 13) <= 2 && std::abs(q % 13 - k % 13) <= 2;
  });
}

TEST_CASE("strides and global tokens") {
  check(strided(7), [](auto q, auto k) { return std::abs(q - k) % 7 == 0; });
  check(global_tokens(5), [](auto q, auto k) { return q < 5 || k < 5; });
  check(global_tokens(80, 5),
        [](auto q, auto k) { return (q >= 80 && q < 85) || (k >= 80 && k < 85); });
  check(longformer(6, 4), [](auto q, auto k) { return std::abs(q - k) <= 6 || q < 4 || k < 4; });
}

TEST_CASE("random masks") {
  check(random_tokens(0.2, 9), [](auto q, auto k) {
    return static_cast<double>(hash_of(9, q, k) >> 40) < std::floor(0.2 * 16777216);
  });
  check(random_tokens(0, 1), [](auto, auto) { return false; });
  check(random_tokens(1, 1), [](auto, auto) { return true; });
  check(random_blocks(16, 3, 5),
        [](auto q, auto k) { return is_drawn(q / 16, k / 16, (kK + 15) / 16, 3, 5); });
  check(bigbird(16, 3, 1, 2, 7), [](auto q, auto k) {
    const auto a = q / 16;
    const auto b = k / 16;
    return std::abs(a - b) <= 1 || a < 1 || b < 1 || is_drawn(a, b, (kK + 15) / 16, 2, 7);
  });
  check(bigbird(16, 5, 0, 0, 7), [](auto q, auto k) { return std::abs(q / 16 - k / 16) <= 2; });
}

TEST_CASE("packed documents") {
  const auto document = [](std::int64_t token) { return token < 30 ? 0 : token < 100 ? 1 : 2; };
  const std::array<std::int32_t, 5> offsets = {0, 30, 30, 100, 170};  // the second one is empty
  check(documents(offsets), [&](auto q, auto k) { return document(q) == document(k); });
  check(documents({0, 30, 100, 170}), [&](auto q, auto k) { return document(q) == document(k); });
  check(documents(offsets) && causal(),
        [&](auto q, auto k) { return document(q) == document(k) && k <= q; });
  const std::array<std::int32_t, 4> question = {0, 30, 100, 170};
  check(share_question(question),
        [&](auto q, auto k) { return k <= q && (document(q) == document(k) || k < 30); });
}

TEST_CASE("two masks of documents may meet in one") {
  check(documents({0, 30, 170}) && documents({0, 100, 170}),
        [](auto q, auto k) { return (q < 30) == (k < 30) && (q < 100) == (k < 100); });
}

TEST_CASE("key padding") {
  const std::vector<std::int64_t> lengths = {5, 0, 100};
  CHECK(test::first_difference(
            {key_padding(lengths), [&](auto b, auto, auto, auto k) { return k < lengths[b]; }},
            {.batch = 3, .heads = 2, .q_len = 3, .kv_len = 90}) == "");
  CHECK(key_padding(Capture("keep", DType::Int32, 2)).text() == "keep[batch, k_pos] != 0");
  CHECK(key_padding(Capture("keep", DType::Bool, 2)).text() == "keep[batch, k_pos]");
}

TEST_CASE("arguments out of range are refused") {
  CHECK_THROWS_WITH_AS(sliding_window(-1, 0),
                       "mask: sliding_window: left -1 is not in 0 to 1073741823", GraphError);
  CHECK_THROWS_WITH_AS(sliding_window(0, std::int64_t{1} << 40),
                       "mask: sliding_window: right 1099511627776 is not in 0 to 1073741823",
                       GraphError);
  CHECK_THROWS_WITH_AS(dilated(3, 3, 0), "mask: dilated: dilation 0 is not in 1 to 1073741823",
                       GraphError);
  CHECK_THROWS_WITH_AS(dilated(1 << 20, 3, 1 << 20),
                       "mask: dilated: left 1048576 is not in 0 to 1023", GraphError);
  CHECK_THROWS_WITH_AS(strided(0), "mask: strided: stride 0 is not in 1 to 1073741823", GraphError);
  CHECK_THROWS_WITH_AS(global_tokens(-3), "mask: global_tokens: count -3 is not in 0 to 1073741823",
                       GraphError);
  CHECK_THROWS_AS(global_tokens(-1, 3), GraphError);
  CHECK_THROWS_WITH_AS(random_tokens(1.5, 0), "mask: random_tokens: fraction 1.5 is not in 0 to 1",
                       GraphError);
  CHECK_THROWS_AS(random_tokens(std::numeric_limits<double>::quiet_NaN(), 0), GraphError);
  CHECK_THROWS_WITH_AS(random_blocks(64, 257, 0),
                       "mask: random_blocks: per_row 257 is not in 1 to 256", GraphError);
  CHECK_NOTHROW(random_blocks(64, 256, 0));
  CHECK_THROWS_AS(random_blocks(0, 1, 0), GraphError);
  CHECK_THROWS_AS(longformer(-1, 0), GraphError);
  CHECK_THROWS_WITH_AS(
      bigbird(64, 4, 1, 1, 0),
      "mask: bigbird: window_blocks 4 is even; a block has as many neighbours on each side",
      GraphError);
  CHECK_THROWS_AS(prefix(-1), GraphError);
  CHECK_THROWS_AS(block_causal(0), GraphError);
  CHECK_THROWS_AS(window_2d(0, 1), GraphError);
  CHECK_THROWS_AS(window_2d(4, -1), GraphError);
}

TEST_CASE("offsets that are none are refused") {
  CHECK_THROWS_WITH_AS(documents({0}),
                       "mask: documents: 1 offsets; there must be a start and an end", GraphError);
  CHECK_THROWS_WITH_AS(documents({1, 5}), "mask: documents: the first offset is 1, not 0",
                       GraphError);
  CHECK_THROWS_WITH_AS(documents({0, 5, 4}),
                       "mask: documents: offset 2 is 4, after 5; offsets ascend", GraphError);
  CHECK_THROWS_WITH_AS(documents({0, 0}),
                       "mask: documents: the total length 0 is not in 1 to 16777216", GraphError);
  CHECK_THROWS_AS(documents({0, 2147483647}), GraphError);
  CHECK_THROWS_AS(share_question(std::vector<std::int32_t>{0}), GraphError);
  CHECK_THROWS_WITH_AS(key_padding(std::vector<std::int64_t>{}),
                       "mask: key_padding: the number of lengths 0 is not in 1 to 16777216",
                       GraphError);
  CHECK_THROWS_WITH_AS(key_padding(std::vector<std::int64_t>{4, -1}),
                       "mask: key_padding: length 1: -1 is not in 0 to 1073741823", GraphError);
  CHECK_THROWS_WITH_AS(key_padding(Capture("keep", DType::Bool, 1)),
                       "mask: key_padding: keep has rank 1; it must be [batch, kv_len]",
                       GraphError);
  CHECK_THROWS_WITH_AS(key_padding(Capture("keep", DType::Float16, 2)),
                       "mask: key_padding: keep is float16, not an integer or bool", GraphError);
}
