// Masked attention on a GPU against float64: mask families, lists of tiles, parts, few queries,
// random draws.
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "attention_testing.hpp"
#include "global_tokens.hpp"
#include "stof/stof.hpp"

using namespace stof;           // NOLINT(google-build-using-namespace)
using namespace stof::testing;  // NOLINT(google-build-using-namespace)
using stof::test::global_tokens_in_two_places;

TEST_CASE("ten mask families, both dtypes, head dims and lengths") {
  std::vector<AttentionCase> cases;
  for (int i = 0; i < kFamilies; ++i) {
    for (const DType dtype : {DType::Float16, DType::BFloat16}) {
      for (const std::int64_t head_dim : {32, 64, 72, 128, 256}) {
        for (const std::int64_t n : {1, 17, 63, 64, 65, 129, 1000, 4096}) {
          const auto [name, mask] = family(i, n);
          cases.push_back({.name = name,
                           .mask = mask,
                           .dtype = dtype,
                           .heads = n <= 1000 ? 2 : 1,
                           .kv_heads = 1,
                           .q_len = n,
                           .kv_len = n,
                           .head_dim = head_dim,
                           .value_dim = head_dim});
        }
      }
    }
  }
  CHECK(faults_of(cases) == "");
}

TEST_CASE("grouped heads, ragged batches, other value widths, queries and keys of other lengths") {
  std::vector<AttentionCase> cases;
  for (int i = 0; i < kFamilies; ++i) {
    const auto [name, mask] = family(i, 200);
    for (const DType dtype : {DType::Float16, DType::BFloat16}) {
      cases.push_back({name, mask, dtype, 2, 8, 2, 200, 200, 64, 64});
      cases.push_back({name, mask, dtype, 3, 4, 4, 200, 200, 64, 64, {1, 137, 200}});
      cases.push_back({name, mask, dtype, 2, 2, 1, 200, 200, 128, 64});
      cases.push_back({name, mask, dtype, 1, 2, 2, 70, 333, 40, 104});
      cases.push_back({name, mask, dtype, 1, 2, 2, 333, 70, 96, 96});
    }
  }
  const Mask per_head = query_position() - key_position() < 8 * (head_index() + 1) && causal();
  const Mask per_batch = key_position() < 50 * (batch_index() + 1);
  cases.push_back({"per_head", per_head, DType::Float16, 2, 4, 4, 300, 300, 64, 64});
  cases.push_back({"per_batch", per_batch, DType::Float16, 3, 4, 2, 300, 300, 64, 64});
  cases.push_back({"per_both", per_head && per_batch, DType::BFloat16, 3, 4, 4, 300, 300, 64, 64});
  CHECK(faults_of(cases) == "");
}

TEST_CASE("as many queries as fill a GPU, in short rows and long ones") {
  std::vector<AttentionCase> cases;
  for (int i = 0; i < kFamilies; ++i) {
    for (const std::int64_t head_dim : {32, 64, 72, 128, 256}) {
      const DType dtype = (i + head_dim / 8) % 2 == 0 ? DType::Float16 : DType::BFloat16;
      const auto add = [&](std::int64_t batch, std::int64_t q_len, std::int64_t kv_len) {
        const auto [name, mask] = family(i, q_len);
        cases.push_back({name, mask, dtype, batch, 12, 4, q_len, kv_len, head_dim, head_dim});
      };
      add(1, 1000, 1000);
      add(8, 600, 333);
      add(6, 1000, 1000);
      cases.back().kv_lengths = {1000, 1, 64, 0, 999, 500};
    }
  }
  const Mask per_head = query_position() - key_position() < 8 * (head_index() + 1) && causal();
  const Mask per_batch = key_position() < 50 * (batch_index() + 1);
  cases.push_back({"per_head", per_head, DType::Float16, 3, 12, 12, 1000, 1000, 64, 64});
  cases.push_back({"per_batch", per_batch, DType::Float16, 9, 12, 6, 600, 600, 64, 128});
  cases.push_back(
      {"per_both", per_head && per_batch, DType::BFloat16, 9, 12, 12, 600, 600, 96, 64});
  CHECK(faults_of(cases) == "");
}

TEST_CASE("a few rows that see all keys, which are worked on in parts") {
  std::vector<AttentionCase> cases;
  for (const std::int64_t head_dim : {32, 64, 72, 128, 256}) {
    for (const DType dtype : {DType::Float16, DType::BFloat16}) {
      const auto add = [&](const char* name, const Mask& mask, std::int64_t n) {
        cases.push_back({name, mask, dtype, 1, 12, 4, n, n, head_dim, head_dim});
      };
      add("longformer", longformer(30, 40), 1000);
      add("bigbird", bigbird(64, 3, 2, 3, 3), 2048);
      add("middle", sliding_window(9, 9) || global_tokens(700, 1), 1400);
      add("last_key", key_position() == 0 || (query_position() == 3 && key_position() % 3 == 1),
          1500);
      add("causal", causal(), 1024);
      add("per_head", longformer(20, 8) && key_position() % 12 != head_index(), 1100);
      add("lengths", longformer(20, 70), 1200);
      cases.back().batch = 3;
      cases.back().kv_lengths = {1200, 0, 129};
    }
  }
  // More keys than the L2 holds, so that sums come between the tiles of some heads and others.
  const Mask two_rows = sliding_window(9, 9) || global_tokens(1900, 2);
  cases.push_back({"many heads", two_rows, DType::Float16, 1, 40, 40, 2048, 2048, 128, 128});
  CHECK(faults_of(cases) == "");
}

TEST_CASE("tiles so few that each is worked on in parts") {
  std::vector<AttentionCase> cases;
  for (const std::int64_t head_dim : {32, 64, 128, 256}) {
    for (const DType dtype : {DType::Float16, DType::BFloat16}) {
      const auto add = [&](const char* name, const Mask& mask, std::int64_t heads,
                           std::int64_t kv_heads, std::int64_t q_len, std::int64_t kv_len) {
        cases.push_back({name, mask, dtype, 1, heads, kv_heads, q_len, kv_len, head_dim, head_dim});
        cases.back().has_lse = q_len < 100;
      };
      add("full", Mask(), 2, 2, 130, 4000);
      add("shared", Mask(), 8, 2, 70, 2100);
      add("one tile", Mask(), 1, 1, 33, 5000);
      add("causal", causal(), 1, 1, 2500, 2500);
      add("late", causal_bottom_right(), 6, 3, 200, 3000);
      add("every other tile", (key_position() / 64 + query_position() / 64) % 2 == 0, 2, 2, 400,
          5000);
    }
  }
  cases.push_back({"other widths", Mask(), DType::Float16, 1, 2, 1, 60, 4000, 64, 136});
  cases.push_back({"other widths", Mask(), DType::BFloat16, 2, 2, 2, 100, 3000, 200, 256});
  // Twice the keys that half of an L2 of 50 MB holds, which are read all the same.
  cases.push_back(
      {"many keys", causal_bottom_right(), DType::Float16, 1, 16, 8, 128, 12288, 128, 128});
  CHECK(faults_of(cases) == "");
}

TEST_CASE("parts that no one waits for, put together by whoever leaves the last one") {
  const ChangedHeader folder("device/attention_parts.cuh", "kPatience = 256;", "kPatience = 0;");
  std::vector<AttentionCase> cases;
  for (const std::int64_t head_dim : {32, 64, 72, 128, 256}) {
    const auto add = [&](const char* name, const Mask& mask, std::int64_t n) {
      cases.push_back({name, mask, DType::Float16, 1, 12, 4, n, n, head_dim, head_dim});
    };
    add("longformer", longformer(30, 40), 1000);
    add("bigbird", bigbird(64, 3, 2, 3, 3), 2048);
    add("per_head", longformer(20, 8) && key_position() % 12 != head_index(), 1100);
    add("lengths", longformer(20, 70), 1200);
    cases.back().batch = 3;
    cases.back().kv_lengths = {1200, 0, 129};
  }
  CHECK(faults_of(cases, {folder.path()}) == "");
}

// As racecheck takes them.
TEST_CASE("small cases of kernels, in whose rings every lane says that a place is free") {
  const ChangedHeader folder("device/mbarrier.cuh", "kArrivalsOfWarp = 1;",
                             "kArrivalsOfWarp = 32;");
  const auto f16 = DType::Float16;
  std::vector<AttentionCase> cases;
  const auto add = [&](const char* kernel, const AttentionCase& of) {
    cases.push_back(of);
    cases.back().name = kernel;
    cases.back().kernel_of_sm90 = fmt::format("attention/{}", kernel);
  };
  add("block_wise_sm90", {"", bigbird(64, 3, 2, 3, 3), f16, 1, 2, 2, 1024, 1024, 128, 128});
  add("block_wise_sm90", {"", causal(), f16, 1, 1, 1, 500, 500, 256, 256});
  add("block_wise_sm90", {"", Mask(), f16, 1, 1, 1, 70, 1700, 192, 256});  // in parts
  add("packed_sm90",
      {"", global_tokens_in_two_places(31, 500), f16, 1, 2, 1, 1000, 1000, 128, 128});
  add("window_sm90", {"", sliding_window(22, 22), f16, 64, 12, 12, 190, 190, 64, 64});
  add("window_sm90", {"", sliding_window(64, 64), f16, 64, 12, 12, 190, 190, 128, 128});
  add("global_local_sm90", {"", longformer(30, 40), f16, 11, 12, 12, 1024, 1024, 64, 64});
  add("global_local_sm90", {"", longformer(30, 40), f16, 4, 12, 12, 1024, 1024, 128, 128});
  add("resident_sm90", {"", longformer(20, 40), f16, 1, 1, 1, 600, 600, 64, 64});
  add("band_sm90", {"", causal(), f16, 1, 2, 2, 700, 700, 64, 64});
  add("interval_sm90", {"", documents({0, 100, 500}) && causal(), f16, 1, 2, 2, 500, 500, 64, 64});
  add("held_sm90", {"", causal(), f16, 8, 16, 16, 512, 512, 64, 64});
  add("short_heads_sm90", {"", Mask(), f16, 33, 12, 12, 160, 130, 72, 72});
  add("few_keys", {"", causal(), f16, 1, 1, 1, 100, 100, 64, 64});
  add("few_keys_bits", {"", random_tokens(0.2, 5), f16, 1, 1, 1, 100, 190, 64, 64});
  add("few_keys_sm90", {"", random_tokens(0.2, 5), f16, 1, 1, 1, 100, 190, 128, 128});
  add("few_queries", {"", Mask(), f16, 1, 4, 1, 4, 2000, 64, 64});
  add("few_queries", {"", Mask(), f16, 1, 2, 2, 27, 900, 64, 64});
  add("few_queries", {"", causal_bottom_right(), f16, 3, 2, 2, 1, 700, 256, 256});
  cases.back().kv_lengths = {700, 0, 129};
  add("row_wise", {"", random_tokens(0.01, 5), f16, 1, 2, 2, 1024, 1024, 64, 64});
  const auto add_biased = [&](const char* kernel, const AttentionCase& of) {
    add(kernel, of);
    cases.back().score = pair_bias(of.heads, of.q_len, of.kv_len);
  };
  add_biased("block_wise_sm90", {"", bigbird(64, 3, 2, 3, 3), f16, 1, 2, 2, 512, 512, 64, 64});
  add_biased("block_wise_sm90", {"", causal(), f16, 1, 2, 2, 504, 504, 128, 128});
  add_biased("band_sm90", {"", causal(), f16, 1, 2, 2, 504, 504, 64, 64});
  add_biased("band_sm90", {"", Mask(), f16, 40, 4, 4, 200, 200, 32, 32});
  CHECK(faults_of(cases, {folder.path()}) == "");
}

TEST_CASE("masks of few keys, with a bit for each score") {
  std::vector<AttentionCase> cases;
  const Expr q = query_position();
  const Expr k = key_position();
  const Mask by_head = Mask((q + k) % (head_index() + 2) == 0);
  const Mask by_batch = Mask(q * k % (3 * batch_index() + 2) == 0);
  const auto add = [&](const char* name, const Mask& mask, std::int64_t batch, std::int64_t heads,
                       std::int64_t q_len, std::int64_t kv_len, std::int64_t head_dim,
                       std::int64_t value_dim) {
    for (const DType dtype : {DType::Float16, DType::BFloat16}) {
      cases.push_back(
          {name, mask, dtype, batch, heads, heads / 2, q_len, kv_len, head_dim, value_dim});
      cases.back().has_lse = q_len == kv_len;
      cases.back().has_heads_inside = dtype == DType::BFloat16;
      cases.back().kernel_of_sm90 =
          batch == 2 ? "attention/few_keys_bits" : "attention/few_keys_sm90";
    }
  };
  for (const std::int64_t head_dim : {8, 32, 64, 72, 128}) {
    add("random", random_tokens(0.3, 5), 2, 4, 128, 128, head_dim, head_dim);
    add("longformer", longformer(11, 3), 2, 4, 61, 61, head_dim, 64);
    add("bigbird", bigbird(16, 3, 2, 3, 3), 2, 4, 33, 250, head_dim, 40);
    add("by_head", by_head, 2, 4, 70, 90, 40, head_dim);
    add("by_batch", by_batch, 2, 4, 90, 70, 64, head_dim);
    add("by_both", by_head && by_batch, 2, 4, 65, 129, head_dim, head_dim);
  }
  for (const std::int64_t head_dim : {8, 40, 64, 72, 80, 128}) {  // in tiles of 64 queries and 128
    add("random", random_tokens(0.3, 5), 5, 24, 128, 128, head_dim, head_dim);
    add("longformer", longformer(11, 3), 7, 24, 97, 97, head_dim, 64);
    add("by_both", by_head && by_batch, 5, 24, 65, 90, 40, head_dim);
    add("by_both", by_head && by_batch, 4, 12, 200, 180, head_dim, 128);
  }
  for (const std::int64_t keys : {3, 15, 16, 17, 64, 65, 128, 129, 177, 192, 193, 256}) {
    const Mask odd = Mask((q + k) % 2 == 0);
    const Mask last_alone = Mask((k == keys - 1 && q % 3 == 0) || (k % 2 == 0 && q % 3 == 1));
    const Mask one_row = Mask(q % 64 == 17 && k % 2 == 0);  // of each tile
    add("odd", odd, 2, 4, 33, keys, 64, 64);
    add("last_alone", last_alone, 2, 4, 67, keys, 64, 64);
    add("one_row", one_row, 2, 4, 50, keys, 64, 64);
    if (keys <= 192) {
      const std::int64_t q_len = keys < 32 ? 1500 : keys < 80 ? 200 : 33;
      add("odd", odd, 6, 24, q_len, keys, 64, 64);
      add("last_alone", last_alone, 6, 24, q_len, keys, 96, 64);
      add("one_row", one_row, 6, 24, q_len + 30, keys, 64, 40);
    }
  }
  CHECK(faults_of(cases) == "");
}

TEST_CASE("rows that see a run of keys each") {
  std::vector<AttentionCase> cases;
  const Expr q = query_position();
  const Expr k = key_position();
  const auto add = [&](const char* name, const Mask& mask, std::int64_t batch, std::int64_t heads,
                       std::int64_t q_len, std::int64_t kv_len, std::int64_t head_dim,
                       std::int64_t value_dim) {
    for (const DType dtype : {DType::Float16, DType::BFloat16}) {
      const std::int64_t kv_heads = dtype == DType::Float16 ? heads : heads / 2;
      cases.push_back(
          {name, mask, dtype, batch, heads, kv_heads, q_len, kv_len, head_dim, value_dim});
      cases.back().has_lse = heads == 4 || batch == 1;
      cases.back().has_heads_inside = q_len == 1001;
      cases.back().kernel_of_sm90 = "attention/interval_sm90";
    }
  };
  const Mask packed = documents({0, 1, 65, 200, 203, 511, 512, 900, 1001});
  const Mask by_batch = Mask(k <= q + batch_index() * 100) && sliding_window(300, 400);
  const Mask by_head = Mask(k >= head_index() * 60) && sliding_window(200, 90);
  const Mask no_keys = causal() && Mask(q % 97 > 30 && k >= 64) && documents({0, 500, 1001});
  for (const std::int64_t batch : {3, 14}) {  // tiles of 64 and of 128 queries
    const std::int64_t heads = batch == 3 ? 4 : 6;
    for (const std::int64_t head_dim : {72, 128}) {
      add("documents", packed, batch, heads, 1001, 1001, head_dim, head_dim);
      add("causal", packed && causal(), batch, heads, 1000, 1000, head_dim, head_dim);
      add("by_batch", by_batch, batch, heads, 700, 777, head_dim, head_dim);
      add("by_head", by_head, batch, heads, 777, 700, head_dim, 128);
    }
    add("no_keys", no_keys, batch, heads, 1001, 1001, 128, 72);
    add("early", packed, batch, heads, 777, 555, 96, 96);
  }
  for (const std::int64_t heads : {2, 4}) {
    add("documents", packed, 3, heads, 1001, 1001, 64, 64);
    add("causal", packed && causal(), 3, heads, 1000, 1000, 32, 64);
    add("by_batch", by_batch, 5, heads, 700, 777, 64, 48);
    add("by_head", by_head, 5, heads, 777, 700, 16, 64);
    add("no_keys", no_keys, 3, heads, 1001, 1001, 64, 64);
  }
  add("prefix", prefix(150), 1, 40, 500, 500, 64, 64);
  add("prefix", prefix(150), 1, 40, 500, 500, 128, 128);
  add("prefix", prefix(300), 1, 40, 1300, 1300, 64, 64);  // four blocks an SM
  CHECK(faults_of(cases) == "");
}

TEST_CASE("keys scattered over many rows, gathered from stages") {
  std::vector<AttentionCase> cases;
  for (const std::int64_t head_dim : {32, 64, 72, 128, 256}) {
    for (const DType dtype : {DType::Float16, DType::BFloat16}) {
      const auto add = [&](const char* name, const Mask& mask, std::int64_t kv_heads,
                           std::int64_t q_len, std::int64_t kv_len) {
        cases.push_back({name, mask, dtype, 1, 12, kv_heads, q_len, kv_len, head_dim, head_dim});
      };
      const Mask some = random_tokens(0.01, 5);
      add("some", some, 12, 2048, 2048);
      add("groups", some, 3, 2000, 1500);
      add("causal", random_tokens(0.03, 5) && causal(), 12, 1999, 1999);
      add("per_head", some && key_position() % 12 != head_index(), 12, 1500, 1500);
      add("one_bank", random_tokens(0.1, 5) && Mask(key_position() % 8 == 5), 4, 1500, 1500);
      add("few_rows", some && Mask(query_position() % 37 == 5), 12, 2048, 2048);
      add("lengths", some, 4, 1200, 1200);
      cases.back().batch = 3;
      cases.back().kv_lengths = {1200, 0, 129};
    }
  }
  CHECK(faults_of(cases) == "");
}

TEST_CASE("few queries of heads that share a key head") {
  std::vector<AttentionCase> cases;
  for (const std::int64_t q_len : {1, 2, 7, 16, 32}) {
    for (const std::int64_t group : {1, 4, 8}) {
      const Expr position = query_position() + key_length() - query_length();
      const auto add = [&](const char* name, const Mask& mask, std::int64_t kv_len,
                           std::int64_t head_dim, DType dtype) {
        cases.push_back({name, mask, dtype, 3, 2 * group, 2, q_len, kv_len, head_dim, head_dim});
        cases.back().has_lse = false;
      };
      for (const DType dtype : {DType::Float16, DType::BFloat16}) {
        add("all", Mask(), 2800, 128, dtype);
        add("all", Mask(), 1, 64, dtype);
        add("causal", key_position() <= position, 333, 64, dtype);
        add("window", key_position() <= position && position - key_position() < 100, 1025, 96,
            dtype);
        add("causal", key_position() <= position, 3000, 128, dtype);
        add("window", key_position() <= position && position - key_position() < 2900, 3000, 64,
            dtype);
        add("scattered", (key_position() * 37 + query_position() * 5) % 41 == 0, 4096, 80, dtype);
        add("none", query_position() == 0 && key_position() == 70, 300, 128, dtype);
        add("wide", Mask(), 1001, 256, dtype);
        add("wide", key_position() <= position, 700, 192, dtype);
        add("narrow", Mask(), 1111, 40, dtype);
      }
    }
  }
  // So many parts that some meet in clusters, and those in memory.
  for (const std::int64_t head_dim : {64, 128, 256}) {
    for (const std::int64_t q_len : {1, 16}) {
      cases.push_back({"parts", Mask(), DType::Float16, 1, 1, 1, q_len, 8191, head_dim, head_dim});
      cases.push_back({"parts", Mask(), DType::BFloat16, 3, 1, 1, q_len, 5000, head_dim, head_dim});
      cases.back().kv_lengths = {5000, 0, 4001};
    }
  }
  // So many keys that queries and outputs are copied.
  cases.push_back({"inside", causal_bottom_right(), DType::Float16, 4, 32, 8, 16, 4096, 128, 128});
  cases.back().has_heads_inside = true;
  cases.back().has_lse = false;
  CHECK(faults_of(cases) == "");
}

TEST_CASE("few queries with numbers of keys, logarithms of sums and planes of masks") {
  std::vector<AttentionCase> cases;
  const Mask heads_differ =
      (key_position() + head_index() * 3) % 5 != 0 && key_position() < 900 - batch_index() * 200;
  for (const std::int64_t q_len : {1, 5, 16, 27}) {
    for (const std::int64_t batch : {1, 3}) {
      for (const bool has_lse : {false, true}) {
        const auto add = [&](const char* name, const Mask& mask, std::int64_t heads,
                             std::vector<std::int32_t> kv_lengths) {
          cases.push_back({name, mask, DType::Float16, batch, heads, 2, q_len, 1000, 64, 128});
          cases.back().kv_lengths = std::move(kv_lengths);
          cases.back().kv_lengths.resize(cases.back().kv_lengths.empty() ? 0 : batch, 0);
          cases.back().has_lse = has_lse;
        };
        add("all", Mask(), 2, {});
        add("all", Mask(), 6, {999, 1000, 17});
        add("all", Mask(), 6, {1, 0, 64});
        add("causal", causal(), 4, {700, 3, 1000});
        add("planes", heads_differ, 4, {});
        add("planes", heads_differ, 2, {800, 100, 30});
      }
    }
  }
  CHECK(faults_of(cases) == "");
}

TEST_CASE("random draws of mask, shape and head dim") {
  std::mt19937 generator(20);
  CHECK(faults_of(random_cases(10000, generator)) == "");
}
