#include "expr/cuda_text.hpp"

#include <cmath>
#include <random>
#include <string>

#include <doctest/doctest.h>

#include "cuda_cases.hpp"
#include "device/expression.cuh"
#include "expr/evaluate.hpp"
#include "oracle.hpp"
#include "stof/error.hpp"

using stof::Capture;
using stof::DType;
using stof::Expr;
using stof::ExprNames;
using stof::ScalarType;
using stof::expr::cuda_text;
using stof::expr::CudaNames;
using stof::expr::CudaText;
using stof::expr::CudaUse;
using stof::expr::Interval;
using stof::expr::Ranges;
using stof::test::CudaArguments;
using stof::test::CudaCase;
using stof::test::Oracle;
using stof::test::RandomExpression;

namespace {

std::int64_t point_of(RandomExpression& random, const Interval& range) {
  switch (random.below(4)) {
    case 0:
      return range.low;
    case 1:
      return range.high;
    default:
      break;
  }
  const std::uint64_t width = stof::expr::bits_of(range.high) - stof::expr::bits_of(range.low);
  const auto bits = stof::expr::bits_of(stof::expr::mix(random.integer()));
  const std::uint64_t offset = width + 1 == 0 ? bits : bits % (width + 1);
  return stof::expr::wrap_add(range.low, stof::expr::integer_of(offset));
}

CudaArguments arguments_of(RandomExpression& random, const Ranges& ranges) {
  return {.q_pos = point_of(random, ranges.at("q_pos")),
          .k_pos = point_of(random, ranges.at("k_pos")),
          .hidden = point_of(random, ranges.at("dim.hidden")),
          .flag = random.below(2) == 0,
          .score = (random.below(257) - 128) / 32.0,
          .epsilon = random.below(33) / 16.0};
}

Oracle oracle_of(const CudaArguments& arguments) {
  return {.scalars = {{"q_pos", arguments.q_pos},
                      {"k_pos", arguments.k_pos},
                      {"dim.hidden", arguments.hidden},
                      {"flag", arguments.flag},
                      {"score", arguments.score},
                      {"attr.epsilon", arguments.epsilon}}};
}

CudaNames names() {
  CudaNames result = stof::test::cuda_names();
  for (const char* name : {"q_len", "kv_len", "head"}) {
    result[name] = name;
  }
  return result;
}

CudaText text_of(std::string_view text, const Ranges& ranges = {}) {
  stof::ExprNames known = RandomExpression::names();
  for (const char* name : {"q_len", "kv_len", "head"}) {
    known.scalars.emplace(name, ScalarType::Int);
  }
  return cuda_text(parse_expression(text, known), names(), ranges);
}

// Positions of sequences of up to 128 Ki tokens.
std::string in_mask(std::string_view text) {
  const Interval position = Interval::integers(0, (1 << 17) - 1);
  const Interval length = Interval::integers(1, 1 << 17);
  return text_of(text, {{"q_pos", position},
                        {"k_pos", position},
                        {"q_len", length},
                        {"kv_len", length},
                        {"head", Interval::integers(0, 127)}})
      .text;
}

std::string wide(std::string_view text) {
  return text_of(text).text;
}

}  // namespace

TEST_CASE("the text of random expressions computes what their definition says") {
  for (int i = 0; i < stof::test::kCudaCases; ++i) {
    const CudaCase it = stof::test::cuda_case(i);
    RandomExpression random(static_cast<unsigned>(i));
    for (int point = 0; point < 50; ++point) {
      const CudaArguments arguments = arguments_of(random, it.ranges);
      const stof::test::CudaResult result = stof::test::kCudaFunctions[i](arguments);
      const stof::test::OracleValue expected = oracle_of(arguments)(it.expr);
      INFO(it.expr.text(), " at ", arguments.q_pos, ", ", arguments.k_pos, ", ", arguments.hidden);
      if (it.expr.type() == ScalarType::Float) {
        const double value = std::get<double>(expected);
        REQUIRE(std::fabs(result.number - value) <= 1e-4 * (1 + std::fabs(value)) + 2e-3);
      } else {
        const bool* truth = std::get_if<bool>(&expected);
        REQUIRE(result.integer == (truth != nullptr ? static_cast<std::int64_t>(*truth)
                                                    : std::get<std::int64_t>(expected)));
      }
    }
  }
}

TEST_CASE("masks over positions are plain 32-bit code") {
  CHECK(in_mask("q_pos >= k_pos && q_pos - k_pos < 1024") ==
        "q_pos >= k_pos && q_pos - k_pos < 1024");
  CHECK(in_mask("k_pos - (kv_len - q_len) <= q_pos") == "k_pos - (kv_len - q_len) <= q_pos");
  CHECK(in_mask("q_pos / 64 == k_pos / 48") == "q_pos >> 6 == k_pos / 48");
  CHECK(in_mask("(q_pos - k_pos) % 2 == 0") == "((q_pos - k_pos) & 1) == 0");
  CHECK(in_mask("q_pos % 48") == "q_pos % 48");
  CHECK(in_mask("(q_pos - k_pos) / 48") == "stof::floor_div_unchecked<int>(q_pos - k_pos, 48)");
  CHECK(in_mask("ceil_div(kv_len, 64)") == "(kv_len + 63) >> 6");
  CHECK(in_mask("q_pos % kv_len") == "q_pos % kv_len");
  CHECK(in_mask("abs(q_pos - k_pos) <= 8") == "stof::abs_of<int>(q_pos - k_pos) <= 8");
  CHECK(in_mask("min(q_pos, 7) << 2") == "stof::min_of<int>(q_pos, 7) << 2");
  CHECK(in_mask("keep(4, q_pos, k_pos, 0.5)") == "stof::keep_bits(4, q_pos, k_pos) < 8388608");
  CHECK(in_mask("draw(3, q_pos, 0, 64)") == "stof::draw_bits(3, q_pos, 0) & 63");
  CHECK(in_mask("q_pos < 8 || k_pos < 8 && flag") == "q_pos < 8 || (k_pos < 8 && flag)");
  CHECK(in_mask("flag ? q_pos : k_pos") == "flag ? q_pos : k_pos");
}

TEST_CASE("64 bits are used exactly where 32 are not proven to do") {
  CHECK(in_mask("q_pos * 16384") == "q_pos * 16384");
  CHECK(in_mask("q_pos * 16385") == "(long long)q_pos * 16385");
  CHECK(in_mask("q_pos * k_pos / 131072") == "((long long)q_pos * k_pos) >> 17");
  CHECK(in_mask("q_pos + 2147483647") == "(long long)q_pos + 2147483647");
  CHECK(in_mask("(q_pos * k_pos >> 17) + 1") == "(int)(((long long)q_pos * k_pos) >> 17) + 1");
  CHECK(in_mask("-9223372036854775808 + q_pos") == "-9223372036854775807LL - 1 + q_pos");
  CHECK(text_of("q_pos + k_pos").is_wide);
  CHECK_FALSE(text_of("q_pos < k_pos").is_wide);
  CHECK(wide("q_pos + k_pos") == "stof::wrap_add(q_pos, k_pos)");
  CHECK(wide("q_pos * 2") == "stof::wrap_mul(q_pos, 2)");
  CHECK(wide("-q_pos") == "stof::wrap_neg(q_pos)");
}

TEST_CASE("divisors and indices are guarded where they are not proven to be sound") {
  CHECK(wide("q_pos / k_pos") == "stof::floor_div<long long>(q_pos, k_pos)");
  CHECK(wide("q_pos % 10") == "stof::floor_mod_unchecked<long long>(q_pos, 10)");
  CHECK(in_mask("q_pos / k_pos") == "stof::floor_div<int>(q_pos, k_pos)");
  CHECK(in_mask("q_pos / (k_pos + 1)") == "q_pos / (k_pos + 1)");
  CHECK(in_mask("offsets[q_pos]") == "offsets[stof::clamp_index<int>(q_pos, 6)]");
  CHECK(in_mask("offsets[q_pos % 6]") == "offsets[q_pos % 6]");
  CHECK(wide("q_pos << k_pos") == "stof::shift_left(q_pos, k_pos)");
  CHECK(in_mask("1 << q_pos % 30") == "1 << (q_pos % 30)");
}

TEST_CASE("a table may stand for others of its kind") {
  const Expr expr = RandomExpression::offsets()[Expr::scalar("q_pos")] + 1;
  const CudaNames table = {{"q_pos", "q"}, {"offsets", "cu"}, {"offsets.size", "documents"}};
  const Interval position = Interval::integers(0, 4095);
  CHECK(cuda_text(expr, table, {{"q_pos", position}}).text ==
        "stof::wrap_add(cu[stof::clamp_index<int>(q, documents)], 1)");
  const Ranges ranges = {{"q_pos", position},
                         {"offsets", Interval::integers(0, 1 << 20)},
                         {"offsets.size", Interval::integers(4096, 8192)}};
  CHECK(cuda_text(expr, table, ranges).text == "cu[q] + 1");
}

TEST_CASE("indices of captures are guarded where the kernel says how many entries there are") {
  const Capture bias("bias", DType::Float16, 2);
  const Expr q = Expr::scalar("q_pos");
  const Expr expr = bias(Expr::scalar("head"), Expr::scalar("k_pos") - q + 5);
  CudaNames capture = {{"q_pos", "q"}, {"k_pos", "k"}, {"head", "h"}, {"bias", "read"}};
  const Interval position = Interval::integers(0, 4095);
  const Ranges ranges = {{"q_pos", position}, {"k_pos", position}, {"head", position}};
  CHECK(cuda_text(expr, capture, ranges).text == "read(h, k - q + 5)");
  capture.insert({{"bias.size0", "n0"}, {"bias.size1", "n1"}});
  CHECK(cuda_text(expr, capture, ranges).text ==
        "read(stof::clamp_index<int>(h, n0), stof::clamp_index<int>(k - q + 5, n1))");

  // What holds in this kernel alone takes guards away, and changes nothing else.
  const Interval few = Interval::integers(0, 5);
  CudaUse use{.inside = {{"q_pos", few},
                         {"k_pos", few},
                         {"head", Interval::integers(0, 7)},
                         {"bias.size0", Interval::integers(8, 8)},
                         {"bias.size1", Interval::integers(11, 11)}}};
  CHECK(cuda_text(expr, capture, ranges, use).text == "read(h, k - q + 5)");
  use.inside.at("bias.size1") = Interval::integers(10, 10);
  CHECK(cuda_text(expr, capture, ranges, use).text ==
        "read(h, stof::clamp_index<int>(k - q + 5, n1))");
  CHECK(cuda_text(q / (q + 1), capture, ranges, use).text == "q / (q + 1)");
  // Floats round otherwise than the bounds of doubles say.
  const Expr rounded = bias(0, to_int(to_float(q)));
  CHECK(cuda_text(rounded, capture, ranges, use).text ==
        "read(0, stof::clamp_index<long long>(stof::to_int64((float)q), n1))");
}

TEST_CASE("floats of scores are made by the functions for them") {
  const ExprNames known = {.scalars = {{"score", ScalarType::Float}}, .tables = {}, .captures = {}};
  const auto text = [&](const char* expression) {
    return cuda_text(parse_expression(expression, known), {{"score", "s"}}, {}, {.is_score = true})
        .text;
  };
  CHECK(text("50.0 * tanh(score / 50.0)") ==
        "50.0f * stof::score_tanh(stof::score_quotient(s, 50.0f))");
  CHECK(text("exp(score) * 2.0") == "expf(s) * 2.0f");
  // An integer or a truth value would be another one.
  CHECK(text("score / 3.0 < 1.0 ? score / 3.0 : 0.0") ==
        "s / 3.0f < 1.0f ? stof::score_quotient(s, 3.0f) : 0.0f");
  CHECK(text("float(int(tanh(score / 41.0)))") ==
        "stof::score_number(stof::to_int64(tanhf(s / 41.0f)))");
}

TEST_CASE("numbers of scores are linear in keys where their expression is") {
  const Ranges positions = {{"k_pos", Interval::integers(0, 511)},
                            {"q_pos", Interval::integers(0, 511)}};
  const CudaNames names = {{"score", "s"}, {"k_pos", "k"}, {"q_pos", "q"}};
  const Expr of = Expr::scalar("score", ScalarType::Float);
  const Expr k = Expr::scalar("k_pos");
  const Expr q = Expr::scalar("q_pos");
  const auto text = [&](const Expr& expr) {
    return cuda_text(expr, names, positions, {.inside = {}, .is_score = true}).text;
  };
  CHECK(text(of + 0.5 * (k - q)) == "s + 0.5f * stof::score_number(k - q)");
  CHECK(text(of + select(k > q, Expr(1.0), 0.5 * q)) ==
        "s + (k > q ? 1.0f : 0.5f * stof::score_number(q))");
  CHECK(text(20.0 * tanh((of - 0.5 * k) / 20.0)) ==
        "20.0f * stof::score_tanh(stof::score_quotient(s - 0.5f * stof::score_number(k), 20.0f))");
  // What is not linear is not forgiving where they cancel, nor are infinite factors.
  CHECK(text(of - max(1e9 * (k - q), 0.0)) == "s - fmaxf(1e+09f * (float)(k - q), 0.0f)");
  CHECK(text(of - sqrt(0.1 * (k - q))) == "s - sqrtf(0.1f * (float)(k - q))");
  CHECK(text(of * (2.0 + 0.5 * k)) == "s * (2.0f + 0.5f * (float)k)");
  CHECK(text(1.0 / (0.5 * k) + of) == "stof::score_quotient(1.0f, 0.5f * (float)k) + s");
}

TEST_CASE("numbers that are linear in a key are as close as they say") {
  std::mt19937 generator(3);
  std::uniform_real_distribution<float> draw(-1, 1);
  std::uniform_int_distribution<int> position(0, 1 << 23);
  for (int i = 0; i < 100000; ++i) {
    const float score = draw(generator);
    const float slope = draw(generator);
    const int offset = position(generator) % 192;
    const int query = position(generator);
    const int key = query + position(generator) % 200;
    const stof::KeyPosition place = {key - offset, offset};
    const stof::KeyNumber distance = slope * stof::score_number(place - query);
    // As a compiler does that fuses products and additions.
    const float fused = std::fma(slope, static_cast<float>(offset), score + distance.base);
    const double exact = static_cast<double>(score) + static_cast<double>(slope) * (key - query);
    const auto number = [](const stof::KeyNumber& of) { return static_cast<float>(of); };
    const double near = std::ldexp(std::fabs(slope), -15) + std::ldexp(std::fabs(exact) + 1, -22);
    REQUIRE(std::fabs(fused - exact) <= near);
    REQUIRE(std::fabs(number(score + distance) - exact) <= near);
    REQUIRE(std::fabs(number(score - distance * 2.0F + slope) - (3 * score - 2 * exact + slope)) <=
            4 * near);
    REQUIRE(number(-stof::score_number(place)) == -key);
    REQUIRE(number(stof::score_number(place) - stof::score_number(place - 7)) == 7);
    REQUIRE(int{place} == key);
  }
}

TEST_CASE("what the ranges settle needs no code") {
  const Ranges ranges = {{"q_len", Interval::integers(512, 512)},
                         {"q_pos", Interval::integers(0, 511)}};
  CHECK(text_of("q_pos < q_len", ranges).text == "true");
  CHECK(text_of("q_pos < q_len && flag", ranges).text == "flag");
  CHECK(text_of("q_pos >= q_len ? q_pos : q_len / 2", ranges).text == "256");
  CHECK(text_of("q_pos % 1", ranges).text == "0");
  CHECK(text_of("hash(0, q_pos, 0) == 1 && q_pos > 511", ranges).helpers.empty());
}

TEST_CASE("floats are 32 bits wide") {
  CHECK(in_mask("score + slopes[head % 3] * (k_pos - q_pos)") ==
        "score + slopes[head % 3] * (float)(k_pos - q_pos)");
  CHECK(in_mask("tanh(score / 30.0) * 30.0") == "tanhf(score / 30.0f) * 30.0f");
  CHECK(in_mask("score * 0.1") == "score * 0.1f");
  CHECK(in_mask("-score - -1e30") == "-score - -1e+30f");
  CHECK(in_mask("flag ? score : -inf") == "flag ? score : -stof::infinity()");
  CHECK(in_mask("max(score, 0.0)") == "fmaxf(score, 0.0f)");
  CHECK(in_mask("int(score)") == "stof::to_int64(score)");
  CHECK(in_mask("1e300 * score") == "stof::infinity() * score");
}

TEST_CASE("the text says which helpers it calls") {
  CHECK(text_of("q_pos < k_pos").helpers.empty());
  CHECK(text_of("q_pos / k_pos + 1").helpers == std::set<std::string>{"floor_div", "wrap_add"});
}

TEST_CASE("a name without a text in the kernel is an error") {
  CHECK_THROWS_WITH(cuda_text(Expr::scalar("q_pos") + 1, {}, {}),
                    "expression: q_pos has no text in the kernel");
}
