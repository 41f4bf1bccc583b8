#include <cstdint>
#include <limits>

#include <doctest/doctest.h>

#include "stof/error.hpp"
#include "stof/tensor.hpp"

using stof::Dim;
using stof::DimValues;
using stof::GraphError;

namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();

const Dim kSeq = Dim::symbol("seq", 1, 2048);
const Dim kBatch = Dim::symbol("batch", 2, 64);

}  // namespace

TEST_CASE("an integer is a static dim") {
  CHECK(Dim().value() == 0);
  CHECK(Dim(317).is_static());
  CHECK(Dim(317).value() == 317);
  CHECK(Dim(-3).min() == -3);
  CHECK(Dim(-3).max() == -3);
  CHECK(Dim(317).value(DimValues{}) == 317);
  CHECK(Dim(317).symbols().empty());
}

TEST_CASE("a symbol knows its name and range") {
  CHECK_FALSE(kSeq.is_static());
  CHECK(kSeq.text() == "seq");
  CHECK(kSeq.min() == 1);
  CHECK(kSeq.max() == 2048);
  CHECK(kSeq.value({{"seq", 317}, {"other", -1}}) == 317);
  CHECK((kSeq * kBatch).symbols() == std::map<std::string, std::pair<std::int64_t, std::int64_t>>{
                                         {"batch", {2, 64}}, {"seq", {1, 2048}}});
}

TEST_CASE("equal extents have one form and one text") {
  CHECK((2 * kSeq + 1).text() == "2 * seq + 1");
  CHECK((1 + kSeq + kSeq).text() == "2 * seq + 1");
  CHECK((1 + kSeq + kSeq) == (2 * kSeq + 1));
  CHECK((kSeq * kBatch) == (kBatch * kSeq));
  CHECK((kSeq * kBatch).text() == "batch * seq");
  CHECK((kSeq - kSeq) == Dim(0));
  CHECK((kSeq - kSeq).is_static());
  CHECK((kSeq - kSeq).text() == "0");
  CHECK((0 * kSeq).text() == "0");
  CHECK(((kSeq + 1) * (kSeq - 1)).text() == "seq * seq - 1");
  CHECK((kBatch - 3 * kSeq * kSeq + 7).text() == "-3 * seq * seq + batch + 7");
  CHECK((-1 * kSeq).text() == "-seq");
  CHECK(Dim(kMin).text() == "-9223372036854775808");
  CHECK_FALSE(kSeq == Dim::symbol("seq", 1, 4096));
}

TEST_CASE("a polynomial evaluates as it is written") {
  const Dim dim = (kSeq + 2) * (kBatch - 5) * kSeq - 3 * kBatch;
  for (std::int64_t seq : {1, 2, 100, 2048}) {
    for (std::int64_t batch : {2, 3, 64}) {
      CHECK(dim.value({{"seq", seq}, {"batch", batch}}) ==
            (seq + 2) * (batch - 5) * seq - 3 * batch);
    }
  }
}

TEST_CASE("bounds hold over the ranges, and are exact for single occurrences") {
  const Dim dim = 3 * kSeq * kBatch - 2 * Dim::symbol("skip", 0, 10) + 1;
  CHECK(dim.min() == 3 * 1 * 2 - 2 * 10 + 1);
  CHECK(dim.max() == 3 * 2048 * 64 + 1);
  CHECK((4 - kSeq).min() == 4 - 2048);
  CHECK((4 - kSeq).max() == 3);
}

TEST_CASE("divisible means for every value of the symbols") {
  CHECK(Dim(12).divisible_by(4));
  CHECK_FALSE(Dim(12).divisible_by(5));
  CHECK(Dim(0).divisible_by(7));
  CHECK(Dim(-12).divisible_by(4));
  CHECK((8 * kSeq + 16).divisible_by(8));
  CHECK_FALSE((8 * kSeq + 4).divisible_by(8));
  CHECK((kSeq * kSeq + kSeq).divisible_by(2));
  CHECK_FALSE((kSeq * kSeq + 1).divisible_by(2));
  CHECK((kSeq * (kSeq + 1) * (kSeq + 2) * kBatch).divisible_by(6));
  CHECK_FALSE((kSeq * (kSeq + 1) * (kSeq + 2) * kBatch).divisible_by(12));
  CHECK(Dim::symbol("n", 64, 64).divisible_by(16));
  CHECK_FALSE(Dim::symbol("n", 64, 65).divisible_by(16));
}

TEST_CASE("divisibility agrees with trying every value") {
  for (std::int64_t min : {0, 3}) {
    for (std::int64_t max : {3, 4, 9}) {
      const Dim n = Dim::symbol("n", min, max);
      const Dim m = Dim::symbol("m", 1, 2);
      for (std::int64_t a = -2; a <= 3; ++a) {
        for (std::int64_t b = -1; b <= 4; ++b) {
          for (std::int64_t divisor = 1; divisor <= 6; ++divisor) {
            bool expected = true;
            for (std::int64_t x = min; x <= max; ++x) {
              for (std::int64_t y = 1; y <= 2; ++y) {
                expected = expected && (a * x * x * x + b * x * y + y * y) % divisor == 0;
              }
            }
            CHECK((a * n * n * n + b * n * m + m * m).divisible_by(divisor) == expected);
          }
        }
      }
    }
  }
}

TEST_CASE("division is exact") {
  CHECK((Dim(12) / 4).value() == 3);
  CHECK((Dim(0) / kSeq) == Dim(0));
  CHECK(((8 * kSeq * kBatch) / 4) == 2 * kSeq * kBatch);
  CHECK(((8 * kSeq * kBatch) / kBatch) == 8 * kSeq);
  CHECK(((kSeq * kSeq - 1) / (kSeq - 1)) == kSeq + 1);
  const Dim a = 2 * kSeq * kBatch - 3 * kBatch + 1;
  const Dim b = kSeq * kSeq - kBatch * kBatch + kSeq - 7;
  CHECK((a * b) / a == b);
  CHECK((a * b) / b == a);
}

TEST_CASE("division that is not exact says so") {
  CHECK_THROWS_WITH_AS(Dim(7) / 2, "dim: 2 does not divide 7", GraphError);
  CHECK_THROWS_WITH_AS((2 * kSeq + 1) / 2, "dim: 2 does not divide 2 * seq + 1", GraphError);
  CHECK_THROWS_WITH_AS(kSeq / kBatch, "dim: batch does not divide seq", GraphError);
  CHECK_THROWS_WITH_AS(Dim(12) / kSeq, "dim: seq does not divide 12", GraphError);
  CHECK_THROWS_WITH_AS(kSeq / 0, "dim: seq is divided by 0", GraphError);
  CHECK_THROWS_WITH_AS(kSeq / (kSeq - kSeq), "dim: seq is divided by 0", GraphError);
}

TEST_CASE("a bad symbol is refused") {
  CHECK_THROWS_WITH_AS(Dim::symbol("seq", 4, 2), "dim: seq has range [4, 2], not 0 <= min <= max",
                       GraphError);
  CHECK_THROWS_WITH_AS(Dim::symbol("seq", -1, 2), "dim: seq has range [-1, 2], not 0 <= min <= max",
                       GraphError);
  const char* const rule = " is no name: letters, digits and _, no digit first, at most 64 of them";
  for (const std::string name : {"", "2x", "a b", "a-b", "\xc3\xa4"}) {
    const std::string text = "dim: \"" + name + "\"" + rule;
    CHECK_THROWS_WITH_AS(Dim::symbol(name, 0, 1), text.c_str(), GraphError);
  }
  CHECK_NOTHROW(Dim::symbol(std::string(64, 'a'), 0, 0));
  CHECK_THROWS_AS(Dim::symbol(std::string(65, 'a'), 0, 0), GraphError);
}

TEST_CASE("a value that is missing or out of range is named") {
  CHECK_THROWS_WITH_AS((2 * kSeq).value(), "dim: 2 * seq is symbolic and has no value yet",
                       GraphError);
  CHECK_THROWS_WITH_AS(kSeq.value({{"batch", 2}}),
                       "dim: seq has no value, dims must give one in [1, 2048]", GraphError);
  CHECK_THROWS_WITH_AS(kSeq.value({{"seq", 4096}}), "dim: seq = 4096 is outside [1, 2048]",
                       GraphError);
  CHECK_THROWS_WITH_AS(kSeq.value({{"seq", 0}}), "dim: seq = 0 is outside [1, 2048]", GraphError);
}

TEST_CASE("one name with two ranges is refused") {
  const Dim other = Dim::symbol("seq", 1, 4096);
  const char* const text = "dim: seq has range [1, 2048] here and [1, 4096] there";
  CHECK_THROWS_WITH_AS(kSeq + other, text, GraphError);
  CHECK_THROWS_WITH_AS(kSeq - other, text, GraphError);
  CHECK_THROWS_WITH_AS(kSeq * other, text, GraphError);
  CHECK_THROWS_WITH_AS(kSeq / other, text, GraphError);
}

TEST_CASE("overflow is an error, never a wrong number") {
  const Dim huge = Dim::symbol("huge", 0, kMax);
  CHECK_THROWS_WITH_AS(Dim(kMax) + 1, "dim: a coefficient of 9223372036854775807 is over 64 bits",
                       GraphError);
  CHECK_THROWS_AS(Dim(kMin) - 1, GraphError);
  CHECK_THROWS_AS(Dim(0) - kMin, GraphError);
  CHECK_THROWS_AS(Dim(kMax) * 2, GraphError);
  CHECK_THROWS_WITH_AS(Dim(kMin) / -1, "dim: -9223372036854775808 divided by -1 is over 64 bits",
                       GraphError);
  CHECK_THROWS_WITH_AS((huge + 1).max(), "dim: the maximum of huge + 1 is over 64 bits",
                       GraphError);
  CHECK_THROWS_WITH_AS((-2 * huge).min(), "dim: the minimum of -2 * huge is over 64 bits",
                       GraphError);
  CHECK_THROWS_WITH_AS((2 * huge).value({{"huge", kMax}}), "dim: 2 * huge is over 64 bits",
                       GraphError);
  CHECK(huge.max() == kMax);
}

TEST_CASE("sums and products have limits, so that a hostile graph cannot grow them for ever") {
  Dim power = 1;
  for (int i = 0; i < 16; ++i) {
    power = power * kSeq;
  }
  CHECK_THROWS_WITH_AS(power * kSeq, "dim: a product of 17 symbols is over the limit of 16",
                       GraphError);
  Dim sum = 0;
  for (int i = 0; i < 256; ++i) {
    sum = sum + Dim::symbol("s" + std::to_string(i), 0, 1);
  }
  CHECK_THROWS_WITH_AS(sum + 1, "dim: a sum of more than 256 terms", GraphError);
  CHECK_FALSE(sum.divisible_by(2));
}

TEST_CASE("a divisor is positive") {
  CHECK_THROWS_WITH_AS(kSeq.divisible_by(0), "dim: divisor 0 of seq is not positive", GraphError);
  CHECK_THROWS_AS(kSeq.divisible_by(-2), GraphError);
}
