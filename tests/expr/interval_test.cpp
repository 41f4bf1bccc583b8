#include "expr/interval.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "expr/evaluate.hpp"
#include "expr/interpreter.hpp"
#include "oracle.hpp"
#include "random_expression.hpp"

using stof::Expr;
using stof::parse_expression;
using stof::ScalarType;
using stof::Table;
using stof::expr::bounds;
using stof::expr::compile;
using stof::expr::Interpreter;
using stof::expr::Interval;
using stof::expr::kIntMax;
using stof::expr::kIntMin;
using stof::expr::Ranges;
using stof::expr::word_of;
using stof::test::RandomExpression;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The outcome of a condition: 1 always, 0 never, -1 unknown.
int outcome(const Interval& interval) {
  return interval.is_true() ? 1 : interval.is_false() ? 0 : -1;
}

Interval tile_bounds(const Expr& mask, std::int64_t row, std::int64_t column,
                     std::int64_t tile = 64) {
  return bounds(mask, {{"q_pos", Interval::integers(row, row + tile - 1)},
                       {"k_pos", Interval::integers(column, column + tile - 1)},
                       {"q_len", Interval::integers(1024, 1024)},
                       {"kv_len", Interval::integers(1024, 1024)},
                       {"batch", Interval::integers(0, 7)},
                       {"head", Interval::integers(0, 11)}});
}

Expr mask(std::string_view text, const std::vector<Table>& tables = {}) {
  stof::ExprNames names;
  for (const char* name : {"batch", "head", "q_pos", "k_pos", "q_len", "kv_len"}) {
    names.scalars.emplace(name, ScalarType::Int);
  }
  for (const Table& table : tables) {
    names.tables.emplace(table.name(), table);
  }
  return parse_expression(text, names);
}

// What a tile of the mask holds, by looking at every point of it.
int true_outcome(const Expr& predicate, std::int64_t row, std::int64_t column) {
  Interpreter interpreter(compile(predicate));
  const stof::expr::Program& program = interpreter.program();
  std::vector<std::int64_t> scalars(program.scalars.size(), 1024);
  bool any = false;
  bool all = true;
  for (std::int64_t q = row; q < row + 64; ++q) {
    if (const auto at = program.scalar("q_pos")) {
      scalars[*at] = q;
    }
    if (const auto at = program.scalar("k_pos")) {
      scalars[*at] = column;
    }
    const std::uint64_t bits = interpreter.run_bits(scalars, program.scalar("k_pos"), 64);
    any = any || bits != 0;
    all = all && bits == ~std::uint64_t{0};
  }
  return all ? 1 : any ? -1 : 0;
}

// How many of the 256 tiles of a 1024 x 1024 mask the intervals leave open though they are settled.
int missed_tiles(const Expr& predicate) {
  int missed = 0;
  for (std::int64_t row = 0; row < 1024; row += 64) {
    for (std::int64_t column = 0; column < 1024; column += 64) {
      const int claimed = outcome(tile_bounds(predicate, row, column));
      const int truth = true_outcome(predicate, row, column);
      CHECK((claimed == -1 || claimed == truth));
      missed += claimed == -1 && truth != -1 ? 1 : 0;
    }
  }
  return missed;
}

struct Box {
  std::vector<Interval> scalars;
  std::vector<Interval> captures;
};

Interval random_interval(RandomExpression& random, ScalarType type) {
  if (type == ScalarType::Bool) {
    const int which = random.below(3);
    return Interval::truths(which != 0, which != 1);
  }
  if (type == ScalarType::Int) {
    const std::int64_t a = random.integer();
    const std::int64_t b =
        random.below(3) == 0 ? random.integer() : stof::expr::wrap_add(a, random.below(100));
    return Interval::integers(std::min(a, b), std::max(a, b));
  }
  const double a = random.real();
  const double b = random.below(3) == 0 ? random.real() : a + random.below(8) / 4.0;
  const bool is_nan = std::isnan(a) || std::isnan(b);
  const double low = is_nan ? -kInfinity : std::min(a, b);
  const double high = is_nan ? kInfinity : std::max(a, b);
  return Interval::floats(low, high, is_nan || random.below(4) == 0);
}

std::int64_t random_point(RandomExpression& random, const Interval& interval) {
  if (interval.may_be_nan && random.below(4) == 0) {
    return word_of(std::numeric_limits<double>::quiet_NaN());
  }
  switch (random.below(4)) {
    case 0:
      return interval.low;
    case 1:
      return interval.high;
    default:
      break;
  }
  if (interval.type == ScalarType::Float) {
    const double low = std::max(interval.float_low(), -1e300);
    const double high = std::min(interval.float_high(), 1e300);
    const double value = low + (high - low) * (random.below(1001) / 1000.0);
    return interval.contains(word_of(value)) ? word_of(value) : interval.low;
  }
  const std::uint64_t width =
      stof::expr::bits_of(interval.high) - stof::expr::bits_of(interval.low);
  const std::uint64_t offset = stof::expr::bits_of(random.integer()) & kIntMax;
  return stof::expr::wrap_add(
      interval.low, static_cast<std::int64_t>(width + 1 == 0 ? offset : offset % (width + 1)));
}

Box random_box(RandomExpression& random, const stof::expr::Program& program) {
  Box box;
  for (const ScalarType type : program.scalar_types) {
    box.scalars.push_back(random_interval(random, type));
  }
  for (const stof::Capture& capture : program.captures) {
    box.captures.push_back(random_interval(random, capture.type()));
  }
  return box;
}

}  // namespace

TEST_CASE("whatever the box, the value at every point of it is in the interval") {
  RandomExpression random(5);
  int settled = 0;
  for (int i = 0; i < 20000; ++i) {
    const Expr expr = random.any(random.below(5));
    const stof::expr::Program program = compile(expr);
    const Box box = random_box(random, program);
    const Interval result = bounds(program, box.scalars, box.captures);
    REQUIRE(result.type == expr.type());
    settled += result.is_point() ? 1 : 0;
    Interpreter interpreter(program, [&](int capture, std::span<const std::int64_t>) {
      return random_point(random, box.captures[static_cast<std::size_t>(capture)]);
    });
    for (int point = 0; point < 20; ++point) {
      std::vector<std::int64_t> scalars;
      for (const Interval& scalar : box.scalars) {
        scalars.push_back(random_point(random, scalar));
      }
      const std::int64_t word = interpreter.run_one(scalars);
      REQUIRE_MESSAGE(result.contains(word), expr.text(), " is ", word, ", not ", result.low,
                      " to ", result.high);
    }
  }
  CHECK(settled > 1000);
}

TEST_CASE("small boxes of each integer operation are bounded soundly, point by point") {
  const Expr q = Expr::scalar("q_pos");
  const Expr k = Expr::scalar("k_pos");
  const std::vector<Expr> operations = {q + k,
                                        q - k,
                                        q * k,
                                        q / k,
                                        q % k,
                                        q & k,
                                        q | k,
                                        q ^ k,
                                        q << k,
                                        q >> k,
                                        -q,
                                        ~q,
                                        abs(q),
                                        min(q, k),
                                        max(q, k),
                                        q == k,
                                        q != k,
                                        q<k, q <= k, q>
                                            k,
                                        q >= k,
                                        draw(0, q, q, k),
                                        ceil_div(q, k),
                                        shift_right_logical(q, k),
                                        to_float(q)};
  const std::vector<std::int64_t> ends = {kIntMin, kIntMin + 1, -65, -9, -2, -1, 0,
                                          1,       2,           7,   8,  63, 64, kIntMax};
  for (const Expr& operation : operations) {
    Interpreter interpreter(compile(operation));
    const bool is_unary = interpreter.program().scalars.size() == 1;
    for (const std::int64_t q_low : ends) {
      for (const std::int64_t k_low : ends) {
        for (const std::int64_t width : {0, 1, 5}) {
          const auto box = [&](std::int64_t low) {
            return Interval::integers(low, low > kIntMax - width ? kIntMax : low + width);
          };
          // In order of name: k_pos before q_pos.
          const std::vector<Interval> all = {box(k_low), box(q_low)};
          const auto used = std::span(all).subspan(is_unary ? 1 : 0);
          const Interval result = bounds(interpreter.program(), used);
          for (std::int64_t dq = 0; dq <= all[1].high - all[1].low; ++dq) {
            for (std::int64_t dk = 0; dk <= all[0].high - all[0].low; ++dk) {
              const std::vector<std::int64_t> point = {k_low + dk, q_low + dq};
              const std::int64_t word =
                  interpreter.run_one(std::span(point).subspan(is_unary ? 1 : 0));
              REQUIRE_MESSAGE(result.contains(word), operation.text(), " at ", q_low + dq, ", ",
                              k_low + dk);
            }
          }
        }
      }
    }
  }
}

TEST_CASE("the common masks are settled on every tile where they are one") {
  std::vector<std::int64_t> document(1024);
  for (std::size_t i = 0; i < document.size(); ++i) {
    document[i] = static_cast<std::int64_t>(i / 192);
  }
  const std::vector<Table> tables = {{"doc", document}};
  for (const char* text :
       {"q_pos >= k_pos", "k_pos - (kv_len - q_len) <= q_pos",
        "q_pos >= k_pos && q_pos - k_pos < 256", "abs(q_pos - k_pos) <= 64",
        "q_pos < 128 || k_pos < 128", "q_pos / 128 >= k_pos / 128", "doc[q_pos] == doc[k_pos]",
        "doc[q_pos] == doc[k_pos] && q_pos >= k_pos", "q_pos >> 7 == k_pos >> 7",
        "(q_pos & -128) == (k_pos & -128)", "q_pos % 256 < 64 && k_pos % 256 < 64",
        "(q_pos & 255) < 64 && (k_pos & 255) < 64", "k_pos < 512 || k_pos <= q_pos",
        "k_pos / 64 == min(max(q_pos / 64 + 1, 0), kv_len / 64 - 1)"}) {
    CHECK_MESSAGE(missed_tiles(mask(text, tables)) == 0, text);
  }
}

TEST_CASE("intervals are tight where masks need it") {
  const auto of = [](std::string_view text, Interval q) {
    return bounds(mask(text), {{"q_pos", q}, {"k_pos", Interval::integers(0, 63)}});
  };
  const Interval tile = Interval::integers(128, 191);
  CHECK(of("q_pos - k_pos", tile) == Interval::integers(65, 191));
  CHECK(of("q_pos / 64", tile) == Interval::integers(2, 2));
  CHECK(of("q_pos % 64", tile) == Interval::integers(0, 63));
  CHECK(of("q_pos % 256", tile) == Interval::integers(128, 191));
  CHECK(of("q_pos % 100", tile) == Interval::integers(28, 91));
  CHECK(of("q_pos % 150", tile) == Interval::integers(0, 149));
  CHECK(of("q_pos & 63", tile) == Interval::integers(0, 63));
  CHECK(of("q_pos & 15", tile) == Interval::integers(0, 15));
  CHECK(of("q_pos | 63", tile) == Interval::integers(191, 191));
  CHECK(of("q_pos / (k_pos - 3)", tile) == Interval::integers(-191, 191));
  CHECK(of("ceil_div(q_pos, 64)", tile) == Interval::integers(2, 3));
  CHECK(of("q_pos << 3", tile) == Interval::integers(1024, 1528));
  CHECK(of("draw(0, q_pos, k_pos, 7)", tile) == Interval::integers(0, 6));
  CHECK(of("hash(0, q_pos, k_pos) >>> 40", tile) == Interval::integers(0, (1 << 24) - 1));
  CHECK(of("q_pos > k_pos ? q_pos : k_pos - 1000", tile) == tile);
  CHECK(of("q_pos * 9223372036854775807", tile) == Interval::all(ScalarType::Int));
  CHECK(of("hash(1, 2, 3) - hash(1, 2, 3)", tile) == Interval::integers(0, 0));
  CHECK(outcome(of("keep(1, q_pos, k_pos, 1.0)", tile)) == 1);
  CHECK(outcome(of("keep(1, q_pos, k_pos, 0.0)", tile)) == 0);
  CHECK(outcome(of("keep(1, q_pos, k_pos, 0.5)", tile)) == -1);
  CHECK(outcome(of("keep(1, q_pos, k_pos, 0.5) && q_pos < k_pos", tile)) == 0);
}

TEST_CASE("a table is bounded by the entries that the index reaches") {
  std::vector<std::int64_t> values(1000);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<std::int64_t>(i * i % 997);
  }
  const Table table("t", values);
  RandomExpression random(6);
  for (int i = 0; i < 300; ++i) {
    const std::int64_t a = random.below(1200) - 100;
    const std::int64_t b = a + random.below(400);
    const auto clamp = [](std::int64_t x) { return std::clamp<std::int64_t>(x, 0, 999); };
    const auto first = values.begin() + clamp(a);
    const auto last = values.begin() + clamp(b) + 1;
    CHECK(bounds(table, Interval::integers(a, b)) ==
          Interval::integers(*std::min_element(first, last), *std::max_element(first, last)));
  }
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Table floats("f", std::vector<double>{nan, 2, 3});
  CHECK(bounds(floats, Interval::integers(1, 2)) == Interval::floats(2, 3, true));
  CHECK(bounds(floats, Interval::integers(0, 0)) == Interval::all(ScalarType::Float));
}

TEST_CASE("captures are anything, or what the caller says") {
  const stof::Capture lengths("lengths", stof::DType::Int32, 1);
  const Expr expr = Expr::scalar("k_pos") < lengths(0);
  const Interval tile = Interval::integers(64, 127);
  CHECK(outcome(bounds(expr, {{"k_pos", tile}})) == -1);
  CHECK(outcome(bounds(expr, {{"k_pos", tile}, {"lengths", Interval::integers(128, 200)}})) == 1);
}
