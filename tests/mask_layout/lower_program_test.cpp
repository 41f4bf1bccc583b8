#include "mask_layout/lower_program.hpp"

#include <doctest/doctest.h>

#include "stof/mask.hpp"

using namespace stof;
using expr::Op;
using mask_layout::kResultVaries;
using mask_layout::lower_program;
using mask_layout::operand_varies;
using mask_layout::Step;

TEST_CASE("what does not depend on the key does not vary") {
  const auto steps =
      lower_program(expr::compile(key_position() <= query_position() * 3 - batch_index()), {});
  int varying = 0;
  for (const Step& step : steps) {
    const auto op = static_cast<Op>(step.op);
    const bool depends =
        op == Op::LessEqual ||
        (op == Op::Scalar && step.word == static_cast<std::int64_t>(mask_layout::Scalar::Key));
    CHECK(((step.flags & kResultVaries) != 0) == depends);
    varying += depends ? 1 : 0;
  }
  CHECK(varying == 2);
  CHECK((steps.back().flags & operand_varies(0)) != 0);
  CHECK((steps.back().flags & operand_varies(1)) == 0);
}

TEST_CASE("a slot that is used again varies with what is in it last") {
  // The seed is hashed in place, with the query first and the key then.
  const auto steps =
      lower_program(expr::compile(keep(Expr(5), query_position(), key_position(), 0.5)), {});
  int mixes = 0;
  for (const Step& step : steps) {
    if (static_cast<Op>(step.op) == Op::Mix) {
      CHECK(((step.flags & kResultVaries) != 0) == (++mixes == 3));
    }
  }
  CHECK(mixes == 3);
}

TEST_CASE("constants are in their steps, tables and captures counted on") {
  const Table table("t", std::vector<std::int64_t>{1, 2});
  const Capture capture("c", DType::Int32, 1);
  const auto steps =
      lower_program(expr::compile(table[query_position()] + 41 < capture(key_position())),
                    {.tables = 7, .captures = 9});
  int found = 0;
  for (const Step& step : steps) {
    const auto op = static_cast<Op>(step.op);
    const std::int64_t expected = op == Op::Constant ? 41 : op == Op::Table ? 7 : 9;
    if (op == Op::Constant || op == Op::Table || op == Op::Capture) {
      CHECK(step.word == expected);
      ++found;
    }
  }
  CHECK(found == 3);
}
