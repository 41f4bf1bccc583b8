#include "expr/transform.hpp"

#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "expr/cuda_text.hpp"
#include "expr/evaluate.hpp"
#include "expr/node.hpp"
#include "expr/skeleton.hpp"
#include "oracle.hpp"
#include "random_expression.hpp"

using stof::Expr;
using stof::parse_expression;
using stof::ScalarType;
using stof::Table;
using stof::expr::Bindings;
using stof::expr::digest;
using stof::expr::evaluate;
using stof::expr::fold;
using stof::expr::Skeleton;
using stof::expr::skeleton;
using stof::expr::substitute;
using stof::test::RandomExpression;

namespace {

Expr parsed(std::string_view text) {
  return parse_expression(text, RandomExpression::names());
}

std::string folded(std::string_view text) {
  return fold(parsed(text)).text();
}

Bindings random_bindings(RandomExpression& random) {
  Bindings bindings;
  for (const char* name : RandomExpression::kIntegers) {
    bindings[name] = random.integer();
  }
  for (const char* name : RandomExpression::kFloats) {
    bindings[name] = random.real();
  }
  bindings["flag"] = random.below(2) == 0;
  return bindings;
}

}  // namespace

TEST_CASE("folding leaves what is not constant and does nothing") {
  CHECK(folded("2 * 3 + q_pos") == "6 + q_pos");
  CHECK(folded("q_pos + (1 - 1)") == "q_pos");
  CHECK(folded("0 - q_pos") == "0 - q_pos");
  CHECK(folded("q_pos - 0") == "q_pos");
  CHECK(folded("q_pos / 1 * 1 << 0") == "q_pos");
  CHECK(folded("q_pos * 0") == "0");
  CHECK(folded("flag && 1 < 2") == "flag");
  CHECK(folded("flag || 1 < 2") == "true");
  CHECK(folded("!!flag") == "flag");
  CHECK(folded("3 > 4 ? q_pos : k_pos") == "k_pos");
  CHECK(folded("offsets[1] + offsets[9]") == "10");
  CHECK(folded("lengths[1 + 1]") == "lengths[2]");
  CHECK(folded("score + 0.0") == "score + 0.0");  // -0.0 + 0.0 is 0.0
  CHECK(folded("score * 0.0") == "score * 0.0");  // NaN
  CHECK(folded("keep(1, 2, 3, 0.0)") == "false");
  CHECK(folded("(q_pos & -1) | 0") == "q_pos");
}

TEST_CASE("folding keeps the value") {
  RandomExpression random(7);
  random.with_captures = false;
  for (int i = 0; i < 5000; ++i) {
    const Expr expr = random.any(random.below(6));
    const Expr result = fold(expr);
    REQUIRE(result.type() == expr.type());
    REQUIRE(result.node().size <= expr.node().size);
    const Bindings bindings = random_bindings(random);
    REQUIRE_MESSAGE(stof::test::agrees(evaluate(expr, bindings), evaluate(result, bindings)),
                    expr.text(), " became ", result.text());
  }
}

TEST_CASE("substitution replaces scalars everywhere") {
  const Expr causal = parsed("q_pos >= k_pos && q_pos < 10");
  CHECK(substitute(causal, {{"q_pos", parsed("q_pos + 1")}}).text() ==
        "q_pos + 1 >= k_pos && q_pos + 1 < 10");
  CHECK(substitute(causal, {{"q_pos", Expr::scalar("k_pos")}, {"k_pos", Expr::scalar("q_pos")}})
            .text() == "k_pos >= q_pos && k_pos < 10");
  CHECK(substitute(parsed("score * 2.0"), {{"score", parsed("q_pos")}}).text() ==
        "float(q_pos) * 2.0");
  CHECK(substitute(parsed("offsets[q_pos]"), {{"q_pos", Expr(1)}}).text() == "offsets[1]");
  CHECK_THROWS_WITH(substitute(causal, {{"q_pos", Expr(1.5)}}),
                    "expression: q_pos is of type int, and what replaces it float");
  CHECK(&substitute(causal, {{"other", Expr(1)}}).node() == &causal.node());
}

TEST_CASE("the names in use are known") {
  const Expr expr = parsed("offsets[q_pos] < lengths[0]");
  CHECK(stof::expr::uses(expr, "q_pos"));
  CHECK(stof::expr::uses(expr, "offsets"));
  CHECK(stof::expr::uses(expr, "lengths"));
  CHECK_FALSE(stof::expr::uses(expr, "k_pos"));
}

TEST_CASE("a digest tells expressions, types and data apart") {
  const Expr q = Expr::scalar("q_pos");
  const Table one("t", std::vector<std::int64_t>{1, 2});
  const Table two("t", std::vector<std::int64_t>{1, 3});
  CHECK(digest(one[q]) == digest(one[parsed("q_pos")]));
  CHECK_FALSE(digest(one[q]) == digest(two[q]));
  CHECK_FALSE(digest(q + 1) == digest(q + 2));
  CHECK_FALSE(digest(q < 1.0) == digest(to_float(Expr::scalar("q_pos", ScalarType::Float)) < 1.0));
}

TEST_CASE("masks that differ only in numbers have one skeleton") {
  const Skeleton window = skeleton(parsed("q_pos >= k_pos && q_pos - k_pos < 1024"));
  CHECK(window.expr.text() == "q_pos >= k_pos && q_pos - k_pos < arg0");
  REQUIRE(window.arguments.size() == 1);
  CHECK(window.arguments[0].name == "arg0");
  CHECK(window.arguments[0].value == stof::expr::Value(std::int64_t{1024}));
  CHECK(skeleton(parsed("q_pos >= k_pos && q_pos - k_pos < 17")).expr.text() == window.expr.text());
  // Equal numbers are arguments of their own, as others may be unequal.
  CHECK(skeleton(parsed("-64 <= k_pos - q_pos && k_pos - q_pos <= 64")).expr.text() ==
        "arg0 <= k_pos - q_pos && k_pos - q_pos <= arg1");
  CHECK(skeleton(parsed("keep(4, q_pos, k_pos, 0.01)")).expr.text() ==
        "hash(arg0, q_pos, k_pos) >>> 40 < arg1");
  CHECK(skeleton(parsed("score * 2 + q_pos")).expr.text() == "score * arg0 + float(q_pos)");
}

TEST_CASE("numbers that make better code stay in a skeleton") {
  for (const char* text :
       {"q_pos / 64 == k_pos / 64", "(q_pos - k_pos) % 2 == 0", "q_pos >>> 3", "q_pos & 63",
        "q_pos & -64", "flag || true", "offsets[2]", "max(score, 0.0)", "ceil_div(q_pos, 16)"}) {
    CHECK(skeleton(parsed(text)).expr.text() == text);
  }
  CHECK(skeleton(parsed("q_pos / 48")).expr.text() == "q_pos / arg0");
  CHECK(skeleton(parsed("64 / q_pos")).expr.text() == "arg0 / q_pos");
  CHECK(skeleton(parsed("q_pos & 62")).expr.text() == "q_pos & arg0");
}

TEST_CASE("the deepest expressions survive every walk over them") {
  const Expr q = Expr::scalar("q_pos");
  const Expr flag = Expr::scalar("flag", ScalarType::Bool);
  std::vector<Expr> deep(4, q);
  for (int i = 1; i < stof::expr::kMaxDepth; ++i) {
    deep[0] = deep[0] - 1;
    deep[1] = 7 / deep[1];
    deep[2] = select(flag, 3, deep[2]);
    deep[3] = draw(1, 2, 3, deep[3]);
  }
  const stof::expr::CudaNames names = {{"q_pos", "q"}, {"flag", "flag"}};
  for (const Expr& expr : deep) {
    CHECK(expr.node().depth == stof::expr::kMaxDepth);
    CHECK(stof::expr::same(fold(expr), expr));
    CHECK(skeleton(expr).expr.node().depth == stof::expr::kMaxDepth);
    CHECK(substitute(expr, {{"q_pos", Expr::scalar("k_pos")}}).text().ends_with("k_pos") ==
          expr.text().ends_with("q_pos"));
    CHECK(stof::expr::compile(expr).slots <= 4);
    CHECK_FALSE(cuda_text(expr, names, {}).text.empty());
  }
}

TEST_CASE("names of arguments keep clear of those in the expression") {
  const Expr expr = Expr::scalar("arg0") + 5;
  CHECK(skeleton(expr).expr.text() == "arg0 + arg1");
  CHECK(skeleton(Expr(5)).expr.text() == "arg0");
}

TEST_CASE("a skeleton with its arguments is worth what the expression is") {
  RandomExpression random(8);
  random.with_captures = false;
  for (int i = 0; i < 3000; ++i) {
    const Expr expr = random.any(random.below(6));
    const Skeleton result = skeleton(expr);
    Bindings bindings = random_bindings(random);
    const auto expected = evaluate(expr, bindings);
    for (const Skeleton::Argument& argument : result.arguments) {
      bindings[argument.name] = argument.value;
    }
    REQUIRE_MESSAGE(stof::test::agrees(expected, evaluate(result.expr, bindings)), expr.text());
  }
}
