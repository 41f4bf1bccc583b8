#include "mask_layout/lower_program.hpp"

#include <doctest/doctest.h>

#include "expr/semantics.hpp"
#include "stof/mask.hpp"

using namespace stof;
using expr::Op;
using mask_layout::kResultVaries;
using mask_layout::kRowSlot;
using mask_layout::kScalar;
using mask_layout::kWord;
using mask_layout::lower_program;
using mask_layout::LoweredProgram;
using mask_layout::operand_varies;
using mask_layout::Step;

namespace {

constexpr int scalar(mask_layout::Scalar name) {
  return kScalar + static_cast<int>(name);
}

std::vector<Op> ops(const std::vector<Step>& steps) {
  std::vector<Op> result;
  for (const Step& step : steps) {
    result.push_back(static_cast<Op>(step.op));
  }
  return result;
}

}  // namespace

TEST_CASE("what does not depend on the key is worked out once a row") {
  const LoweredProgram lowered = lower_program(
      expr::compile(key_position() <= query_position() * 3 - batch_index()), {.row_slots = 2});
  CHECK(ops(lowered.row_steps) == std::vector{Op::Multiply, Op::Subtract});
  CHECK(lowered.row_steps[0].operands[0] == scalar(mask_layout::Scalar::Query));
  CHECK(lowered.row_steps[0].operands[1] == kWord);
  CHECK(lowered.row_steps[0].word == 3);
  CHECK((lowered.row_steps[0].flags & mask_layout::kIsForwarded) != 0);
  CHECK(lowered.row_steps[1].operands[0] == mask_layout::kPrevious);
  CHECK(lowered.row_steps[1].destination == kRowSlot + 2);
  CHECK(ops(lowered.key_steps) == std::vector{Op::LessEqual});
  const Step& comparison = lowered.key_steps.front();
  CHECK(comparison.operands[0] == scalar(mask_layout::Scalar::Key));
  CHECK(comparison.operands[1] == kRowSlot + 2);
  CHECK((comparison.flags & (kResultVaries | operand_varies(0) | operand_varies(1))) ==
        (kResultVaries | operand_varies(0)));
  CHECK(lowered.row_slots == 1);
}

TEST_CASE("a draw is one step for each key") {
  const LoweredProgram lowered =
      lower_program(expr::compile(keep(Expr(5), query_position(), key_position(), 0.5)), {});
  CHECK(ops(lowered.row_steps) == std::vector{Op::Mix, Op::BitXor, Op::Mix});
  CHECK(ops(lowered.key_steps) == std::vector{Op::Keep});
  CHECK(lowered.key_steps[0].word == expr::keep_threshold(0.5));
  CHECK(lowered.key_steps[0].operands[0] == kRowSlot);
  CHECK(lowered.key_steps[0].operands[1] == scalar(mask_layout::Scalar::Key));
}

TEST_CASE("constants are in their steps, tables and captures counted on") {
  const Table table("t", std::vector<std::int64_t>{1, 2});
  const Capture capture("c", DType::Int32, 1);
  const LoweredProgram lowered =
      lower_program(expr::compile(table[query_position()] + 41 < capture(key_position())),
                    {.tables = 7, .captures = 9});
  CHECK(ops(lowered.row_steps) == std::vector{Op::Table, Op::Add});
  CHECK(lowered.row_steps[0].word == 7);
  CHECK(lowered.row_steps[1].word == 41);
  CHECK(ops(lowered.key_steps) == std::vector{Op::Capture, Op::Less});
  CHECK(lowered.key_steps[0].word == 9);
}

TEST_CASE("powers of two divide by shifts") {
  const LoweredProgram lowered =
      lower_program(expr::compile(key_position() / 32 == key_position() % 64), {});
  CHECK(ops(lowered.key_steps) == std::vector{Op::ShiftRight, Op::BitAnd, Op::Equal});
  CHECK(lowered.key_steps[0].word == 5);
  CHECK(lowered.key_steps[1].word == 63);
}

TEST_CASE("a mask that is the same everywhere has one step") {
  const LoweredProgram lowered = lower_program(expr::compile(Expr(true)), {});
  CHECK(lowered.row_steps.empty());
  CHECK(ops(lowered.key_steps) == std::vector{Op::Constant});
}

TEST_CASE("more values of rows than there is room for are worked out with the keys") {
  Expr sees = key_position() == query_position() * 2;
  for (int i = 3; i < 30; ++i) {
    sees = sees || key_position() == query_position() * i;
  }
  const LoweredProgram lowered = lower_program(expr::compile(sees), {});
  CHECK(lowered.row_slots == mask_layout::kMostRowSlots);
  CHECK(std::ssize(lowered.row_steps) == mask_layout::kMostRowSlots);
  CHECK(std::ranges::count(ops(lowered.key_steps), Op::Multiply) ==
        28 - mask_layout::kMostRowSlots);
}

TEST_CASE("what goes by rows: sums, one operation on a sum, comparisons and draws") {
  const Expr q = query_position();
  const Expr k = key_position();
  const Table table("t", std::vector<std::int64_t>{1, 2});
  const auto goes_by_rows = [](const Expr& predicate) {
    return lower_program(expr::compile(predicate), {}).goes_by_rows;
  };
  CHECK(goes_by_rows(q - k <= 5 && k - q <= q % 7));
  CHECK(goes_by_rows(!(k + 3 == q) || k > key_length() / 2));
  CHECK(goes_by_rows(Expr(true)));
  CHECK(goes_by_rows((q - k) % 3 == 0 && abs(q - k) <= 9));
  CHECK(goes_by_rows(q / 32 >= k / 32 || (k - q) / 5 < k));
  CHECK(goes_by_rows(table[q] == table[k]));
  CHECK(goes_by_rows(keep(1, q, k, 0.5)));
  CHECK_FALSE(goes_by_rows(k + k < q));
  CHECK_FALSE(goes_by_rows(q - k < k));
  CHECK_FALSE(goes_by_rows(to_float(k) < 3.5));
  CHECK_FALSE(goes_by_rows(k % 2 + 1 == q));
  CHECK_FALSE(goes_by_rows(k % 6 / 2 == 0));
  CHECK_FALSE(goes_by_rows(k % 2 == k / 3));
  CHECK_FALSE(goes_by_rows(q % (k + 1) == 0));
  CHECK_FALSE(goes_by_rows(keep(1, q, k / 2, 0.5)));
  CHECK_FALSE(goes_by_rows(Table("f", std::vector<double>{1, 2})[k] < 1.5));
}
