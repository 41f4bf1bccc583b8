#include <algorithm>
#include <limits>
#include <string>
#include <type_traits>

#include <doctest/doctest.h>

#include "expr/node.hpp"
#include "expr/table.hpp"
#include "stof/error.hpp"
#include "stof/expr.hpp"

using stof::Capture;
using stof::DType;
using stof::Expr;
using stof::ExpressionError;
using stof::ScalarType;
using stof::Table;

static_assert(!std::is_convertible_v<const char*, Expr>, "a text would become true");

namespace {

Expr flag() {
  return Expr::scalar("flag", ScalarType::Bool);
}

template <typename Build>
std::string message(Build build) {
  try {
    build();
  } catch (const ExpressionError& error) {
    CHECK(error.column() == 0);
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("integers meet floats as floats") {
  const Expr q = Expr::scalar("q_pos");
  CHECK((q + 1).type() == ScalarType::Int);
  CHECK((q + 1.5).type() == ScalarType::Float);
  CHECK((q < 1.5).type() == ScalarType::Bool);
  CHECK(select(flag(), q, 0.5).type() == ScalarType::Float);
  CHECK(exp(q).type() == ScalarType::Float);
  CHECK(to_int(exp(q)).type() == ScalarType::Int);
  CHECK((flag() & !flag()).type() == ScalarType::Bool);
}

TEST_CASE("operands of a wrong type are named") {
  const Expr q = Expr::scalar("q_pos");
  CHECK(message([&] { return q + flag(); }) ==
        "expression: '+' takes two numbers, not int and bool");
  CHECK(message([&] { return flag() < flag(); }) ==
        "expression: '<' takes two numbers, not bool and bool");
  CHECK(message([&] { return q && flag(); }) ==
        "expression: '&&' takes two truth values, not int and bool");
  CHECK(message([&] { return q & flag(); }) ==
        "expression: '&' takes two integers or two truth values, not int and bool");
  CHECK(message([&] { return to_float(q) % 2; }) ==
        "expression: '%' takes two integers, not float and int");
  CHECK(message([&] { return q == flag(); }) ==
        "expression: '==' takes two numbers or two truth values, not int and bool");
  CHECK(message([&] { return sqrt(flag()); }) == "expression: 'sqrt' takes one number, not bool");
  CHECK(message([&] { return hash(0, q, 1.5); }) ==
        "expression: 'hash' takes integers, not int, int and float");
  CHECK(message([&] { return keep(0, q, q, -0.5); }) ==
        "expression: the fraction -0.5 of 'keep' is not between 0 and 1");
  CHECK(message([&] { return Table("t", std::vector<double>{1})[1.5]; }) ==
        "expression: the index of table t is an integer, not float");
  CHECK(message([&] { return Capture("c", DType::Int32, 2)(q); }) ==
        "expression: capture c takes 2 indices, not 1");
  CHECK(message([&] { return Capture("c", DType::Int32, 1)(flag()); }) ==
        "expression: an index of capture c is an integer, not bool");
}

TEST_CASE("names are those that the text form can read") {
  CHECK(Expr::scalar("size.T").text() == "size.T");
  CHECK(Expr::scalar("layer.0.length").text() == "layer.0.length");
  CHECK(message([] { return Expr::scalar("q pos"); }) ==
        "expression: 'q pos' cannot name a scalar");
  CHECK(message([] { return Expr::scalar(""); }) == "expression: '' cannot name a scalar");
  CHECK(message([] { return Expr::scalar("a."); }) == "expression: 'a.' cannot name a scalar");
  CHECK(message([] { return Expr::scalar("true"); }) == "expression: 'true' cannot name a scalar");
  CHECK(message([] { return Table("0", std::vector<double>{1}); }) ==
        "expression: '0' cannot name a table");
  CHECK(message([] { return Table("t", std::vector<double>{}); }) ==
        "expression: table t has no entries");
  CHECK(message([] { return Capture("c", DType::Int32, 5); }) ==
        "expression: capture c has rank 5, which is not 1 to 4");
}

TEST_CASE("one name stands for one thing") {
  const Expr q = Expr::scalar("q_pos");
  const Table one("offsets", std::vector<std::int64_t>{1, 2});
  const Table same("offsets", std::vector<std::int64_t>{1, 2});
  const Table other("offsets", std::vector<std::int64_t>{1, 3});
  CHECK((one[q] + same[q]).text() == "offsets[q_pos] + offsets[q_pos]");
  CHECK(message([&] { return one[q] + other[q]; }) ==
        "expression: two different tables are named offsets");
  CHECK(message([&] { return one[q] + Capture("offsets", DType::Int32, 1)(q); }) ==
        "expression: offsets names both a table and a capture");
  CHECK(message([&] { return one[Expr::scalar("offsets")]; }) ==
        "expression: offsets names both a scalar and a table");
  CHECK(message([&] { return q < Expr::scalar("q_pos", ScalarType::Float); }) ==
        "expression: two different scalars are named q_pos");
  CHECK(message([&] {
          return Capture("c", DType::Int32, 1)(q) + Capture("c", DType::Int64, 1)(q);
        }) == "expression: two different captures are named c");
}

TEST_CASE("an expression knows the names that it uses") {
  const Expr q = Expr::scalar("q_pos");
  const Table slopes("slopes", std::vector<double>{1, 2});
  const Expr expr = slopes[Expr::scalar("head")] * (Expr::scalar("k_pos") - q);
  const stof::ExprNames& names = stof::expr::names_used(expr);
  CHECK(names.scalars.size() == 3);
  CHECK(names.scalars.at("head") == ScalarType::Int);
  CHECK(names.tables.contains("slopes"));
  CHECK(names.captures.empty());
  CHECK(stof::expr::names_used(Expr(1)).scalars.empty());
}

TEST_CASE("an expression cannot outgrow what walking it is safe for") {
  Expr deep = Expr::scalar("q_pos");
  CHECK(message([&] {
          for (int i = 0; i < 100000; ++i) {
            deep = deep + 1;
          }
        }) == "expression: more than 512 operations inside each other");
  Expr wide = Expr::scalar("q_pos");
  CHECK(message([&] {
          for (int i = 0; i < 100; ++i) {
            wide = wide + wide;
          }
        }) == "expression: more than 65536 operations");
  CHECK(wide.node().size == 65535);
}

TEST_CASE("a table keeps its bounds for every 64 entries, and its digest") {
  std::vector<std::int64_t> values(130);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<std::int64_t>(i * 37 % 101);
  }
  const Table table("t", values);
  CHECK(table.size() == 130);
  CHECK(table.data().block_low.size() == 3);
  for (std::size_t block = 0; block < 3; ++block) {
    const auto first = values.begin() + static_cast<std::ptrdiff_t>(64 * block);
    const auto last = values.begin() + std::min<std::ptrdiff_t>(130, 64 * (block + 1));
    CHECK(table.data().block_low[block] == *std::min_element(first, last));
    CHECK(table.data().block_high[block] == *std::max_element(first, last));
  }
  CHECK(Table("u", values).data().digest == table.data().digest);
  values[129] = -1;
  CHECK_FALSE(Table("t", values).data().digest == table.data().digest);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(Table("t", std::vector<double>{1, nan}).data().has_nan);
}
