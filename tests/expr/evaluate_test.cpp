#include "expr/evaluate.hpp"

#include <array>
#include <cmath>
#include <optional>
#include <string>

#include <doctest/doctest.h>

#include "expr/semantics.hpp"
#include "oracle.hpp"
#include "random_expression.hpp"
#include "stof/error.hpp"

using stof::Expr;
using stof::parse_expression;
using stof::ScalarType;
using stof::expr::Bindings;
using stof::expr::CaptureReader;
using stof::expr::compile;
using stof::expr::evaluate;
using stof::expr::evaluate_integer;
using stof::expr::evaluate_truth;
using stof::expr::Formula;
using stof::expr::Interpreter;
using stof::expr::Value;
using stof::test::Oracle;
using stof::test::RandomExpression;

namespace {

Oracle random_oracle(RandomExpression& random) {
  Oracle oracle;
  for (const char* name : RandomExpression::kIntegers) {
    oracle.scalars[name] = random.integer();
  }
  for (const char* name : RandomExpression::kFloats) {
    oracle.scalars[name] = random.real();
  }
  oracle.scalars["flag"] = random.below(2) == 0;
  return oracle;
}

Bindings bindings_of(const Oracle& oracle) {
  return {oracle.scalars.begin(), oracle.scalars.end()};
}

CaptureReader reader(const Expr& expr) {
  std::vector<std::string> names;
  for (const auto& entry : stof::expr::names_used(expr).captures) {
    names.push_back(entry.first);
  }
  return [names](int capture, std::span<const std::int64_t> indices) {
    return names[static_cast<std::size_t>(capture)] == "lengths"
               ? Oracle::read_lengths(indices[0])
               : stof::expr::word_of(Oracle::read_bias(indices[0], indices[1]));
  };
}

std::string message(const Expr& expr, const Bindings& bindings) {
  try {
    evaluate(expr, bindings);
  } catch (const stof::ExpressionError& error) {
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("random expressions are worth what their definition says") {
  RandomExpression random(3);
  for (int i = 0; i < 20000; ++i) {
    const Expr expr = random.any(random.below(5));
    const Oracle oracle = random_oracle(random);
    const auto value = evaluate(expr, bindings_of(oracle), reader(expr));
    REQUIRE_MESSAGE(stof::test::agrees(value, oracle(expr)), expr.text());
  }
}

TEST_CASE("every operation is total at its corners") {
  const auto of = [](std::string_view text) {
    return evaluate_integer(parse_expression(text, {}));
  };
  CHECK(of("7 / -2") == -4);
  CHECK(of("7 % -2") == -1);
  CHECK(of("-7 % 2") == 1);
  CHECK(of("5 / 0") == 0);
  CHECK(of("5 % 0") == 0);
  CHECK(of("ceil_div(5, 0)") == 0);
  CHECK(of("ceil_div(-7, 2)") == -3);
  CHECK(of("-9223372036854775808 / -1") == stof::expr::kIntMin);
  CHECK(of("-9223372036854775808 % -1") == 0);
  CHECK(of("ceil_div(-9223372036854775808, -1)") == stof::expr::kIntMin);
  CHECK(of("abs(-9223372036854775808)") == stof::expr::kIntMin);
  CHECK(of("9223372036854775807 + 1") == stof::expr::kIntMin);
  CHECK(of("1 << 64") == 1);
  CHECK(of("1 << -1") == stof::expr::kIntMin);
  CHECK(of("-1 >>> 60") == 15);
  CHECK(of("-16 >> 2") == -4);
  CHECK(of("int(nan)") == 0);
  CHECK(of("int(1e30)") == stof::expr::kIntMax);
  CHECK(of("int(-inf)") == stof::expr::kIntMin);
  CHECK(of("int(-2.9)") == -2);
}

TEST_CASE("hash is splitmix64, and draw and keep are made of it") {
  // The first outputs of splitmix64 from the state 0, which its authors publish.
  CHECK(stof::expr::mix(0) == static_cast<std::int64_t>(0xE220A8397B1DCDAFu));
  CHECK(stof::expr::mix(static_cast<std::int64_t>(0x9E3779B97F4A7C15u)) ==
        static_cast<std::int64_t>(0x6E789E6AA1B965F4u));
  const auto h = static_cast<std::uint64_t>(evaluate_integer(stof::hash(3, 5, 7)));
  CHECK(h == stof::test::splitmix(3, 5, 7));
  CHECK(evaluate_integer(stof::draw(3, 5, 7, 801)) == static_cast<std::int64_t>((h >> 33) % 801));
  CHECK(evaluate_truth(stof::keep(3, 5, 7, 1.0)));
  CHECK_FALSE(evaluate_truth(stof::keep(3, 5, 7, 0.0)));
}

TEST_CASE("a name without a value, or with one of another type, is an error") {
  const Expr tokens = Expr::scalar("dim.tokens");
  CHECK(message(tokens + 1, {}) == "expression: dim.tokens has no value");
  CHECK(message(tokens + 1, {{"dim.tokens", 1.5}}) ==
        "expression: dim.tokens is of type int, and its value of type float");
  CHECK(message(stof::Capture("keep_key", stof::DType::Bool, 1)(tokens), {}) ==
        "expression: capture keep_key has no data");
  const Expr epsilon = Expr::scalar("attr.epsilon", ScalarType::Float);
  CHECK(std::get<double>(evaluate(epsilon, {{"attr.epsilon", std::int64_t{2}}})) == 2.0);
  CHECK_THROWS_WITH(evaluate_truth(tokens), "expression: dim.tokens is of type int, not bool");
}

TEST_CASE("a formula is worth what its expression is, and looks names up as they are wanted") {
  const Formula formula(parse_expression(
      "a > 2 ? a * b : 7",
      {.scalars = {{"a", ScalarType::Int}, {"b", ScalarType::Int}}, .tables = {}, .captures = {}}));
  const auto with = [](std::int64_t a, std::int64_t b) {
    return [=](const std::string& name) -> std::optional<Value> {
      return name == "a" ? std::optional<Value>(a)
                         : (name == "b" ? std::optional<Value>(b) : std::nullopt);
    };
  };
  for (std::int64_t a = 0; a < 5; ++a) {
    CHECK(formula.evaluate_integer(with(a, 10)) ==
          evaluate_integer(formula.expr(), {{"a", a}, {"b", std::int64_t{10}}}));
  }
  CHECK_THROWS_WITH_AS(formula.evaluate([](const std::string&) { return std::nullopt; }),
                       doctest::Contains("a has no value"), stof::ExpressionError);
  CHECK_THROWS_WITH_AS(formula.evaluate_truth(with(1, 1)),
                       doctest::Contains("is of type int, not bool"), stof::ExpressionError);
}

TEST_CASE("a run of points gives each the value that it has alone") {
  RandomExpression random(4);
  for (int i = 0; i < 1500; ++i) {
    const Expr expr = random.any(random.below(6));
    Oracle oracle = random_oracle(random);
    Interpreter interpreter(compile(expr), reader(expr));
    std::vector<std::int64_t> scalars;
    for (const std::string& name : interpreter.program().scalars) {
      scalars.push_back(stof::expr::word_of(oracle.scalars[name]));
    }
    const std::optional<int> varying = interpreter.program().scalar("k_pos");
    const std::int64_t first = std::get<std::int64_t>(oracle.scalars["k_pos"]);
    const int count = 1 + random.below(Interpreter::kLanes);
    const auto words = interpreter.run(scalars, varying, count);
    for (int lane = 0; lane < count; ++lane) {
      oracle.scalars["k_pos"] = stof::test::wrap(stof::test::Wide{first} + lane);
      REQUIRE_MESSAGE(
          stof::test::agrees(stof::expr::value_of(expr.type(), words[lane]), oracle(expr)),
          expr.text(), " at lane ", lane);
    }
  }
}

TEST_CASE("a run as bits has bit i for point i") {
  const Expr expr = Expr::scalar("k_pos") % 3 == 0;
  Interpreter interpreter(compile(expr));
  const std::array<std::int64_t, 1> scalars{0};
  CHECK(interpreter.run_bits(scalars, 0, 10) == 0b1001001001);
  CHECK(interpreter.run_bits(scalars, 0, 64) == 0x9249249249249249u);
}

TEST_CASE("a program is short of no slot, however the expression leans") {
  const Expr q = Expr::scalar("q_pos");
  Expr left = q;
  Expr right = q;
  for (int i = 0; i < 500; ++i) {
    left = left - q;
    right = q - right;
  }
  CHECK(compile(left).slots == 2);
  CHECK(compile(right).slots == 2);
  CHECK(evaluate_integer(right, {{"q_pos", std::int64_t{5}}}) == 5);
  Expr full = q;
  while (full.node().size * 4 < stof::expr::kMaxNodes) {
    full = draw(full, full, full, full);
  }
  CHECK(compile(full).slots <= stof::expr::kMaxSlots);
}
