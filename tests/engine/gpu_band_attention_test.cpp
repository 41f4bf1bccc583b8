// Attention over bands, windows and windows with global tokens on a GPU against float64.
#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "attention_testing.hpp"
#include "global_tokens.hpp"
#include "stof/stof.hpp"

using namespace stof;           // NOLINT(google-build-using-namespace)
using namespace stof::testing;  // NOLINT(google-build-using-namespace)
using stof::test::global_tokens_in_two_places;

TEST_CASE("bands of few query tiles, each of which several warp groups share") {
  std::vector<AttentionCase> cases;
  for (const std::int64_t head_dim : {32, 64, 72, 128}) {
    for (const DType dtype : {DType::Float16, DType::BFloat16}) {
      const auto add = [&](const char* name, const Mask& mask, std::int64_t heads,
                           std::int64_t q_len, std::int64_t kv_len) {
        cases.push_back({name, mask, dtype, 1, heads, 2, q_len, kv_len, head_dim, head_dim});
        cases.back().has_lse = q_len == kv_len;
      };
      add("full", Mask(), 2, 65, 193);
      add("full", Mask(), 6, 300, 1000);
      add("causal", causal(), 2, 200, 200);
      add("causal", causal(), 12, 1024, 1024);
      add("causal", causal(), 12, 1500, 1500);
      add("late", causal_bottom_right(), 6, 100, 900);
      add("no_keys", causal_bottom_right(), 6, 900, 500);
      add("window", causal() && sliding_window(400, 0), 4, 1000, 1000);
      add("both_sides", sliding_window(100, 333), 4, 777, 999);
    }
  }
  cases.push_back({"causal", causal(), DType::Float16, 3, 4, 1, 700, 700, 64, 128});
  cases.push_back({"causal", causal(), DType::BFloat16, 2, 4, 4, 700, 700, 128, 40});
  CHECK(faults_of(cases) == "");
}

TEST_CASE("bands of few keys, which the warps of 16 queries share") {
  std::vector<AttentionCase> cases;
  const auto add = [&](const char* name, const Mask& mask, DType dtype, std::int64_t q_len,
                       std::int64_t kv_len, std::int64_t head_dim, std::int64_t value_dim) {
    cases.push_back({name, mask, dtype, 2, 4, 2, q_len, kv_len, head_dim, value_dim});
    cases.back().has_lse = q_len == kv_len;
    cases.back().kernel_of_sm90 = "attention/few_keys";
  };
  const Mask ahead = key_position() - query_position() >= 20 && sliding_window(0, 60);
  const Mask behind = query_position() - key_position() >= 20 && sliding_window(60, 0);
  for (const DType dtype : {DType::Float16, DType::BFloat16}) {
    for (const std::int64_t head_dim : {8, 32, 64, 72, 96, 128}) {
      add("one", Mask(), dtype, 1, 1, head_dim, head_dim);
      add("causal", causal(), dtype, 128, 128, head_dim, head_dim);
      add("causal", causal(), dtype, 61, 61, head_dim, 64);
      add("window", sliding_window(22, 22), dtype, 500, 500, head_dim, head_dim);
    }
    for (const std::int64_t keys : {15, 16, 17, 64, 65, 128, 129, 200, 256}) {
      add("full", Mask(), dtype, 33, keys, 64, 64);
      add("late", causal_bottom_right(), dtype, 20, keys, 64, 128);
      cases.back().kv_heads = 4;  // else query heads share a tile, in which they are no band
      add("no_keys", causal_bottom_right(), dtype, keys + 50, keys, 128, 40);
    }
    for (const std::int64_t others :
         {0, 1, 48, 49, 112, 113, 177, 240}) {  // keys that a query sees
      add("both_sides", sliding_window(others / 2, others - others / 2), dtype, 250, 250, 64, 64);
      add("causal", causal() && sliding_window(others, 0), dtype, 100, 250, 64, 64);
      add("short", sliding_window(others / 3, others / 2), dtype, 250, 100, 80, 40);
    }
    add("ahead", ahead, dtype, 200, 230, 64, 64);
    add("ahead", ahead, dtype, 230, 200, 64, 64);
    add("behind", behind, dtype, 230, 200, 64, 64);
  }
  CHECK(faults_of(cases) == "");
}

TEST_CASE("causal batch elements side by side, all of them or as many as L2 holds") {
  std::vector<AttentionCase> cases = {
      {"all", causal(), DType::Float16, 3, 4, 2, 700, 700},
      {"late", causal_bottom_right(), DType::BFloat16, 7, 6, 6, 300, 500},
      {"some", causal(), DType::Float16, 5, 12, 12, 2048, 2048},
  };
  for (AttentionCase& one : cases) {
    one.kernel_of_sm90 = "attention/band_sm90";
  }
  CHECK(faults_of(cases) == "");
}

TEST_CASE("causal blocks that are all on an SM at once, in pairs") {
  std::vector<AttentionCase> cases;
  const auto add = [&](const char* name, const Mask& mask, std::int64_t batch, std::int64_t heads,
                       std::int64_t q_len, std::int64_t kv_len, std::int64_t head_dim,
                       std::int64_t value_dim) {
    for (const DType dtype : {DType::Float16, DType::BFloat16}) {
      const std::int64_t kv_heads = heads % 3 == 0 ? heads / 3 : heads;
      cases.push_back(
          {name, mask, dtype, batch, heads, kv_heads, q_len, kv_len, head_dim, value_dim});
      cases.back().has_lse = batch == 1;
      cases.back().kernel_of_sm90 = "attention/band_sm90";
    }
  };
  for (const std::int64_t heads : {17, 24, 25, 33}) {  // of eight tiles; 132 SMs
    add("causal", causal(), 1, heads, 500, 500, 64, 64);
    add("wide", causal(), 1, heads, 512, 512, 128, 72);
    add("late", causal_bottom_right(), 1, heads, 510, 640, 64, 40);
    add("no_keys", causal_bottom_right(), 1, heads, 449, 300, 32, 64);
  }
  add("batches", causal(), 3, 5, 700, 700, 64, 64);
  add("batches", causal(), 2, 12, 511, 511, 64, 64);
  add("batches", causal(), 4, 7, 512, 512, 96, 128);
  add("long", causal(), 1, 6, 2040, 2040, 64, 64);
  CHECK(faults_of(cases) == "");
}

TEST_CASE("bands of short heads, whose keys a block holds") {
  std::vector<AttentionCase> cases;
  const auto add = [&](const char* name, const Mask& mask, std::int64_t heads, std::int64_t q_len,
                       std::int64_t kv_len, std::int64_t head_dim, std::int64_t value_dim) {
    for (const DType dtype : {DType::Float16, DType::BFloat16}) {
      cases.push_back({name, mask, dtype, 11, heads, heads, q_len, kv_len, head_dim, value_dim});
      cases.back().has_lse = dtype == DType::BFloat16;
      cases.back().kernel_of_sm90 = "attention/held_sm90";
    }
  };
  for (const std::int64_t heads : {6, 12}) {  // in two pieces, as wholes
    for (const std::int64_t length : {449, 500, 512}) {
      add("causal", causal(), heads, length, length, 64, 64);
    }
    add("wide_values", causal(), heads, 512, 512, 24, 64);
    add("narrow_values", causal(), heads, 512, 512, 64, 40);
    add("early", causal(), heads, 512, 300, 64, 64);
    add("late", causal_bottom_right(), heads, 460, 512, 64, 64);
    add("no_keys", causal_bottom_right(), heads, 512, 460, 64, 64);
    add("to_the_end", key_position() - query_position() >= 130, heads, 512, 512, 64, 64);
  }
  for (const std::int64_t heads : {6, 12}) {
    add("full", Mask(), heads, 512, 512, 64, 64);
    add("full", Mask(), heads, 450, 77, 64, 64);
  }
  add("causal", causal(), 12, 200, 200, 64, 64);
  add("causal", causal(), 12, 576, 576, 64, 64);
  add("one_key", Mask(), 12, 256, 1, 64, 64);
  CHECK(faults_of(cases) == "");
}

TEST_CASE("bands of short wide heads, which a block has one after the other") {
  std::vector<AttentionCase> cases;
  const auto add = [&](const char* name, const Mask& mask, std::int64_t batch, std::int64_t q_len,
                       std::int64_t kv_len, std::int64_t head_dim, std::int64_t value_dim) {
    for (const DType dtype : {DType::Float16, DType::BFloat16}) {
      cases.push_back({name, mask, dtype, batch, 12, 12, q_len, kv_len, head_dim, value_dim});
      cases.back().has_lse = dtype == DType::BFloat16;
      cases.back().kernel_of_sm90 = "attention/short_heads_sm90";
    }
  };
  const auto open_ahead = [](int from) { return key_position() - query_position() >= from; };
  for (const std::int64_t batch : {22, 65}) {  // two heads for each SM, and six for most
    add("causal", causal(), batch, 192, 192, 128, 128);
    add("causal", causal(), batch, 129, 129, 72, 128);
    add("causal", causal(), batch, 177, 177, 120, 40);
    add("early", causal(), batch, 180, 65, 128, 128);
    add("late", causal_bottom_right(), batch, 160, 190, 96, 96);
    add("no_keys", causal_bottom_right(), batch, 190, 100, 128, 72);
    add("open_ahead", open_ahead(-70), batch, 180, 180, 128, 128);
    add("behind", open_ahead(-20), batch, 180, 192, 96, 128);
    add("far_behind", open_ahead(70), batch, 190, 192, 128, 80);
  }
  for (const std::int64_t batch : {11, 43}) {
    add("full", Mask(), batch, 192, 192, 128, 128);
    add("full", Mask(), batch, 153, 500, 88, 128);
    add("fewer_keys", Mask(), batch, 160, 70, 128, 128);
  }
  for (const std::int64_t batch : {22, 43}) {
    add("full", Mask(), batch, 256, 256, 128, 128);
    add("full", Mask(), batch, 193, 77, 80, 128);
    add("causal", causal(), batch, 256, 256, 128, 128);
    add("causal", causal(), batch, 241, 250, 128, 120);
  }
  const std::size_t inside = cases.size();
  add("inside", causal(), 22, 192, 192, 128, 128);
  add("inside", Mask(), 22, 250, 250, 128, 128);
  for (std::size_t i = inside; i < cases.size(); ++i) {
    cases[i].has_heads_inside = true;
  }
  CHECK(faults_of(cases) == "");
}

TEST_CASE("windows whose keys of a query tile lie in shared memory at once") {
  std::vector<AttentionCase> cases;
  const auto add = [&](const Mask& mask, DType dtype, std::int64_t q_len, std::int64_t kv_len,
                       std::int64_t head_dim, std::int64_t value_dim) {
    cases.push_back({"window", mask, dtype, 6, 4, 2, q_len, kv_len, head_dim, value_dim});
    cases.back().has_lse = q_len == kv_len;
    cases.back().kernel_of_sm90 = "attention/band_sm90";
  };
  for (std::int64_t keys = 64; keys <= 192; keys += 16) {  // of 64 queries
    const std::int64_t others = keys - 64;                 // that a query sees
    for (const DType dtype : {DType::Float16, DType::BFloat16}) {
      add(sliding_window(others / 2, others - others / 2), dtype, 500, 500, 64, 64);
      add(causal() && sliding_window(others, 0), dtype, 333, 500, 64, 64);
      add(sliding_window(others / 3, others / 2), dtype, 500, 333, 32, 40);
    }
    add(sliding_window(others / 2, others / 2), DType::Float16, 500, 500, 128, 72);
  }
  CHECK(faults_of(cases) == "");
}

TEST_CASE("tiles of short heads side by side, and of long windows of wide heads") {
  const auto window = [](const char* name, const Mask& mask, std::int64_t kv_heads,
                         std::int64_t head_dim, std::int64_t value_dim = 128) {
    AttentionCase one = {name,     mask, DType::Float16, 16,       12,
                         kv_heads, 1500, 1500,           head_dim, value_dim};
    one.kernel_of_sm90 = "attention/band_sm90";
    return one;
  };
  std::vector<AttentionCase> cases = {
      window("both_sides", sliding_window(500, 500), 12, 128),
      window("groups", sliding_window(400, 650), 3, 96),
      window("short_wide", sliding_window(150, 130), 12, 112),
      window("short", sliding_window(150, 130), 12, 64, 64),
  };
  for (const std::int64_t head_dim : {32, 64, 96, 128}) {
    const auto add = [&](const char* name, const Mask& mask, std::int64_t q_len,
                         std::int64_t kv_len) {
      const DType dtype = q_len < kv_len ? DType::BFloat16 : DType::Float16;
      cases.push_back({name, mask, dtype, 60, 8, 8, q_len, kv_len, head_dim, head_dim});
      cases.back().kernel_of_sm90 = "attention/band_sm90";
      cases.back().has_lse = head_dim == 64;
      cases.back().has_heads_inside = q_len == 299;
    };
    add("causal", causal(), 300, 300);
    add("late", causal_bottom_right(), 299, 400);
    add("no_keys", causal_bottom_right(), 400, 299);
    if (head_dim < 96) {  // wider heads are another kernel's
      add("full", Mask(), 299, 310);
    }
    add("window", sliding_window(100, 100), 400, 400);
  }
  CHECK(faults_of(cases) == "");
}

TEST_CASE("few uneven tiles of 128 queries, whose products overlap with probabilities") {
  std::vector<AttentionCase> cases;
  const auto add = [&](const Mask& mask, DType dtype, std::int64_t kv_heads, std::int64_t head_dim,
                       std::int64_t value_dim) {
    cases.push_back({"causal", mask, dtype, 1, 12, kv_heads, 2100, 2100, head_dim, value_dim});
    cases.back().has_lse = kv_heads < 12;
    cases.back().kernel_of_sm90 = "attention/band_sm90";
  };
  for (const std::int64_t dims : {80, 96, 112}) {
    add(causal(), DType::Float16, 12, dims, dims);
    add(causal_bottom_right(), DType::BFloat16, 4, dims, dims);
  }
  add(causal(), DType::Float16, 12, 16, 112);
  add(causal(), DType::Float16, 4, 112, 32);
  CHECK(faults_of(cases) == "");
}

TEST_CASE("few large tiles, full or with rows that fill no lines, one or two on an SM") {
  std::vector<AttentionCase> cases;
  const auto add = [&](const char* name, const Mask& mask, std::int64_t heads, std::int64_t length,
                       std::int64_t head_dim, std::int64_t value_dim) {
    for (const DType dtype : {DType::Float16, DType::BFloat16}) {
      const std::int64_t kv_heads = dtype == DType::Float16 ? heads : heads / 2;
      cases.push_back({name, mask, dtype, 1, heads, kv_heads, length, length, head_dim, value_dim});
      cases.back().has_lse = head_dim == value_dim;
      cases.back().kernel_of_sm90 = "attention/band_sm90";
    }
  };
  add("full", Mask(), 16, 750, 72, 72);
  add("full", Mask(), 24, 449, 96, 88);
  add("full", Mask(), 24, 500, 40, 40);
  add("full", Mask(), 26, 1030, 64, 64);
  add("full", Mask(), 28, 1000, 48, 56);
  add("causal", causal(), 20, 1000, 88, 88);
  add("causal", causal(), 32, 577, 120, 72);
  add("causal", causal(), 20, 1001, 56, 40);
  CHECK(faults_of(cases) == "");
}

TEST_CASE("many keys of few dimensions, for 128 queries, and windows in two stages") {
  std::vector<AttentionCase> cases;
  const auto add = [&](const char* name, const Mask& mask, DType dtype, std::int64_t q_len,
                       std::int64_t head_dim, std::int64_t batch = 20) {
    cases.push_back({name, mask, dtype, batch, 8, 4, q_len, 610, head_dim, head_dim});
    cases.back().has_lse = head_dim == 40;
    cases.back().kernel_of_sm90 = "attention/band_sm90";
  };
  for (const std::int64_t head_dim : {32, 40, 48}) {
    add("causal", causal(), DType::Float16, 610, head_dim);
    add("late", causal_bottom_right(), DType::BFloat16, 577, head_dim);
    add("full", Mask(), DType::Float16, 577, head_dim, 26);  // of fewer, lists leave fewer places
  }
  for (const std::int64_t to_each_side : {65, 90, 96}) {
    add("window", sliding_window(to_each_side, to_each_side), DType::Float16, 600, 64);
    add("ahead", sliding_window(0, 2 * to_each_side), DType::BFloat16, 610, 64);
  }
  CHECK(faults_of(cases) == "");
}

TEST_CASE("bands of as many query tiles as fill SMs several times") {
  std::vector<AttentionCase> cases;
  for (const std::int64_t head_dim : {40, 64, 128}) {
    const auto add = [&](const char* name, const Mask& mask, std::int64_t batch, std::int64_t heads,
                         std::int64_t q_len, std::int64_t kv_len) {
      const DType dtype = batch % 2 == 0 ? DType::Float16 : DType::BFloat16;
      cases.push_back(
          {name, mask, dtype, batch, heads, heads / 2, q_len, kv_len, head_dim, head_dim});
      cases.back().kernel_of_sm90 = "attention/band_sm90";
      cases.back().has_lse = heads == 6;
      cases.back().has_heads_inside = batch == 3;
    };
    add("causal", causal(), 12, 4, 513, 513);   // 3.3 tiles for each SM
    add("causal", causal(), 37, 6, 200, 200);   // 7
    add("causal", causal(), 120, 6, 193, 193);  // 22
    add("causal", causal(), 3, 8, 1030, 1030);  // 3, of more keys
    add("late", causal_bottom_right(), 36, 6, 200, 260);
    add("no_keys", causal_bottom_right(), 37, 4, 260, 200);
    if (head_dim < 128) {  // wider heads are another kernel's
      add("full", Mask(), 36, 6, 200, 200);
    } else {
      add("full", Mask(), 32, 8, 100, 260);
    }
    add("full", Mask(), 13, 6, 260, 260);
  }
  CHECK(faults_of(cases) == "");
}

TEST_CASE("windows of as many query tiles as make a walk along them worth while") {
  const auto f16 = DType::Float16;
  const auto bf16 = DType::BFloat16;
  const Mask behind = query_position() - key_position() <= -100 && sliding_window(0, 150);
  std::vector<AttentionCase> cases = {
      {"of_128", sliding_window(22, 22), f16, 64, 12, 12, 350, 350, 64, 64},
      {"of_192", sliding_window(64, 64), bf16, 40, 12, 12, 350, 350, 64, 64},
      {"groups", sliding_window(45, 45), f16, 40, 12, 4, 350, 350, 64, 64},
      {"groups", sliding_window(64, 60), f16, 40, 12, 1, 350, 350, 64, 64},
      {"one_key", sliding_window(0, 0), f16, 64, 12, 12, 350, 350, 64, 64},
      {"causal", causal() && sliding_window(127, 0), bf16, 40, 12, 12, 350, 350, 40, 64},
      {"no_keys", sliding_window(64, 64), f16, 40, 12, 12, 350, 270, 64, 64},
      {"behind", behind, f16, 40, 12, 12, 350, 390, 64, 32},
      {"narrow", sliding_window(30, 64), bf16, 40, 12, 6, 350, 350, 32, 40},
      {"dilated", dilated(30, 30, 2), f16, 64, 12, 12, 384, 384, 64, 64},
      {"dilated", dilated(50, 50, 3), bf16, 64, 12, 12, 384, 384, 64, 64},
      {"inside", sliding_window(64, 64), f16, 40, 12, 4, 350, 350, 64, 64},
      {"inside", sliding_window(22, 22), bf16, 75, 7, 7, 350, 350, 64, 64},
      {"inside", sliding_window(30, 30), f16, 120, 3, 3, 512, 512, 64, 64},
      {"of_128", sliding_window(22, 22), f16, 40, 12, 12, 350, 350, 128, 128},
      {"of_192", sliding_window(64, 64), bf16, 40, 12, 12, 350, 350, 96, 96},
      {"groups", sliding_window(64, 60), bf16, 40, 12, 1, 350, 350, 128, 128},
      {"causal", causal() && sliding_window(127, 0), f16, 40, 12, 12, 350, 350, 72, 128},
      {"no_keys", sliding_window(64, 64), bf16, 40, 12, 12, 350, 270, 128, 40},
      {"behind", behind, bf16, 40, 12, 12, 350, 390, 64, 80},
      {"dilated", dilated(50, 50, 3), f16, 20, 12, 12, 768, 768, 128, 128},
      {"inside", sliding_window(60, 30), f16, 120, 3, 3, 512, 512, 128, 128},
  };
  for (AttentionCase& one : cases) {
    one.has_heads_inside = one.name == "inside";
    one.has_lse = one.head_dim == 40 || one.kv_heads == 1 || one.head_dim == 72;
    one.kernel_of_sm90 = "attention/window_sm90";
  }
  // Those of many heads, and no more than a tile each, may go elsewhere.
  cases.push_back({"one_tile", sliding_window(9, 9), f16, 2200, 2, 2, 50, 50, 64, 64});
  cases.push_back({"one_tile", sliding_window(60, 60), bf16, 2200, 2, 1, 64, 64, 64, 64});
  cases.push_back({"two_tiles", sliding_window(64, 9), f16, 200, 12, 12, 65, 65, 64, 64});
  CHECK(faults_of(cases) == "");
}

TEST_CASE("bands and runs of keys of which batch elements have as many as they say") {
  std::vector<AttentionCase> cases;
  const Mask packed = documents({0, 100, 333, 640, 900, 1300});
  for (const std::int64_t head_dim : {32, 64, 80, 128}) {
    const auto add = [&](const char* name, const Mask& mask, std::int64_t heads,
                         std::int64_t length, std::vector<std::int32_t> kv_lengths,
                         const char* kernel = "attention/") {
      const DType dtype = cases.size() % 2 == 0 ? DType::Float16 : DType::BFloat16;
      cases.push_back(
          {name, mask, dtype, std::ssize(kv_lengths), heads, heads, length, length, head_dim, 64});
      cases.back().kv_lengths = std::move(kv_lengths);
      cases.back().kernel_of_sm90 = kernel;
    };
    for (const std::int64_t length : {100, 190, 300, 700}) {
      const auto most = static_cast<std::int32_t>(length);
      const std::vector<std::int32_t> lengths = {most, 0, 1, most - 1, most / 2, 64, most / 3};
      add("full", Mask(), 2, length, lengths);
      add("causal", causal(), 2, length, lengths);
      add("many", causal(), 24, length, lengths, "attention/band_sm90");
      add("window", sliding_window(21, 21), 4, length, lengths);
      add("window", sliding_window(8, 60), 4, length, lengths);
      add("few", sliding_window(20, 20), 2, length, {most / 2, 0}, "attention/few_keys");
      add("few", causal(), 2, std::min<std::int64_t>(length, 128), {60, 1}, "attention/few_keys");
      add("past", causal() && sliding_window(90, 0), 4, length, lengths);
      add("ahead", key_position() - query_position() >= 20 && sliding_window(0, 60), 4, length,
          lengths);
      add("late", causal() && sliding_window(150, 0), 4, length, lengths);
    }
    add("walk", sliding_window(22, 22), 60, 700, {700, 0, 300, 64, 65, 699, 1});
    add("long", causal(), 6, 1500, {1500, 700, 0});
    add("long window", causal() && sliding_window(600, 0), 8, 1500, {1500, 700, 0, 1100});
    add("documents", packed && causal(), 2, 1300, {1300, 0, 640, 641, 10},
        "attention/interval_sm90");
  }
  CHECK(faults_of(cases) == "");
}

TEST_CASE("windows with global tokens, of as many query tiles as make a walk worth while") {
  const auto f16 = DType::Float16;
  const auto bf16 = DType::BFloat16;
  const auto tokens = global_tokens_in_two_places;
  const Expr q = query_position();
  const Expr k = key_position();
  const Mask holes = longformer(50, 40) && k % 7 != 3;
  const Mask no_keys = longformer(20, 30) && (q % 5 != 2 || k > 900);
  const Mask far_key = sliding_window(40, 40) || Mask(k < 57 || k == 800 || q == 77);
  const Mask one_query = (sliding_window(60, 60) && k % 3 != 1) || Mask(q == 77);
  std::vector<AttentionCase> cases = {
      {"of_1024", tokens(32, 512), f16, 11, 12, 12, 1024, 1024, 64, 64},
      {"of_2048", tokens(45, 1024), bf16, 6, 12, 12, 2048, 2048, 64, 64},
      {"of_2048", tokens(45, 1024), f16, 6, 12, 4, 2048, 2048, 40, 64},
      {"of_4096", tokens(64, 2048), f16, 3, 12, 12, 4096, 4096, 64, 64},
      {"ragged", tokens(60, 500), bf16, 6, 12, 12, 2001, 2001, 64, 64},
      {"holes", holes, f16, 11, 12, 2, 1000, 1000, 64, 40},
      {"no_keys", no_keys, bf16, 11, 12, 4, 1100, 1100, 64, 64},
      {"one_query", one_query, f16, 33, 5, 1, 1003, 1003, 64, 64},
      {"far_key", far_key, f16, 22, 6, 6, 1010, 1013, 32, 64},
      {"fewer_keys", longformer(64, 120), bf16, 11, 12, 12, 1024, 950, 64, 64},
      {"one_head_a_block", tokens(32, 512), f16, 132, 1, 1, 1024, 1024, 64, 64},
      {"of_1024", tokens(32, 512), f16, 11, 12, 12, 1024, 1024, 128, 128},
      {"of_2048", tokens(45, 1024), bf16, 6, 12, 12, 2048, 2048, 128, 96},
      {"of_2048", tokens(45, 1024), f16, 6, 12, 4, 2048, 2048, 64, 80},
      {"holes", holes, bf16, 11, 12, 2, 1000, 1000, 96, 40},
      {"no_keys", no_keys, f16, 11, 12, 4, 1100, 1100, 128, 128},
      {"one_query", one_query, f16, 33, 5, 1, 1003, 1003, 128, 72},
      {"far_key", far_key, bf16, 22, 6, 6, 1010, 1013, 80, 128},
      {"fewer_keys", longformer(64, 30), f16, 11, 12, 12, 1024, 950, 128, 128},
      {"one_head_a_block", tokens(32, 512), bf16, 132, 1, 1, 1024, 1024, 128, 128},
  };
  for (AttentionCase& one : cases) {
    one.has_lse = one.dtype == bf16 && one.kv_heads != 4;
    one.kernel_of_sm90 = "attention/global_local_sm90";
  }
  // Rows of heads that lie side by side are another kernel's.
  cases.push_back({"inside", tokens(32, 512), f16, 11, 12, 4, 1024, 1024, 64, 64});
  cases.back().has_heads_inside = true;
  cases.back().has_lse = false;
  CHECK(faults_of(cases) == "");
}

TEST_CASE("windows with global tokens, of so few query tiles that each block has an SM") {
  const auto f16 = DType::Float16;
  const auto bf16 = DType::BFloat16;
  const Expr q = query_position();
  const Expr k = key_position();
  const Mask holes = bigbird(32, 1, 1, 0, 3) && k % 7 != 3;
  const Mask no_keys = longformer(20, 30) && (q % 5 != 2 || k > 900);
  const Mask far_key = sliding_window(20, 20) || Mask(k < 17 || k == 800 || q == 77);
  const Mask one_query = (sliding_window(30, 30) && k % 3 != 1) || Mask(q == 77);
  const Mask no_queries = (sliding_window(60, 60) && k % 3 != 1) || Mask(k < 57 || k == 400);
  std::vector<AttentionCase> cases = {
      {"of_1024", global_tokens_in_two_places(32, 512), f16, 1, 12, 12, 1024, 1024, 64, 64},
      {"of_1024", global_tokens_in_two_places(32, 512), bf16, 1, 12, 4, 1024, 1024, 64, 64},
      {"of_768", global_tokens_in_two_places(45, 384), f16, 2, 6, 6, 768, 768, 64, 64},
      {"of_2048", global_tokens_in_two_places(45, 1024), bf16, 1, 4, 1, 2048, 2048, 40, 64},
      {"of_4096", global_tokens_in_two_places(64, 2048), f16, 1, 2, 2, 4096, 4096, 64, 64},
      {"runs", longformer(20, 40), bf16, 1, 1, 1, 7000, 7000, 64, 64},
      {"ragged", global_tokens_in_two_places(40, 500), bf16, 1, 8, 8, 1001, 1001, 64, 64},
      {"holes", holes, f16, 1, 8, 2, 1000, 1000, 64, 40},
      {"no_keys", no_keys, bf16, 2, 4, 4, 1100, 1100, 64, 24},
      {"one_query", one_query, f16, 1, 5, 1, 1003, 1003, 64, 64},
      {"far_key", far_key, f16, 2, 4, 4, 1010, 1013, 32, 64},
      {"fewer_keys", longformer(64, 120), bf16, 1, 6, 6, 1024, 950, 64, 64},
      {"no_queries", no_queries, f16, 1, 12, 12, 700, 700, 64, 64},
      {"inside", global_tokens_in_two_places(32, 512), f16, 1, 12, 4, 1024, 1024, 64, 64},
  };
  cases.back().has_heads_inside = true;
  for (AttentionCase& one : cases) {
    one.has_lse = one.dtype == bf16;
    one.kernel_of_sm90 = "attention/resident_sm90";
  }
  CHECK(faults_of(cases) == "");
}

TEST_CASE("keys at multiples of a distance, as bands without gaps") {
  std::vector<AttentionCase> cases;
  for (const std::int64_t step : {2, 3, 5}) {
    for (const std::int64_t head_dim : {40, 64, 128}) {
      const DType dtype = head_dim == 64 ? DType::Float16 : DType::BFloat16;
      const std::int64_t n = 64 * 3 * step;
      const auto add = [&](const char* name, const Mask& mask, std::int64_t batch,
                           std::int64_t q_len, std::int64_t kv_len) {
        cases.push_back({name, mask, dtype, batch, 6, 6, q_len, kv_len, head_dim, head_dim});
        cases.back().has_lse = false;
      };
      add("dilated", dilated(40, 100, step), 2, n, n);
      add("dilated_causal", dilated(70, 0, step) && causal_bottom_right(), 1, n, 2 * n);
      add("strided", strided(step), 8, n, n);
      add("dilated_odd", dilated(40, 100, step), 2, n + 1, n + 1);
    }
  }
  CHECK(faults_of(cases) == "");
}
