#include "mask_layout/lower_program.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/check.hpp"

namespace stof::mask_layout {

namespace {

constexpr std::array<std::string_view, 6> kScalars = {"batch", "head",  "q_pos",
                                                      "k_pos", "q_len", "kv_len"};

Scalar scalar_of(std::string_view name) {
  const auto found = std::ranges::find(kScalars, name);
  STOF_CHECK(found != kScalars.end()) << "scalar " << name;
  return static_cast<Scalar>(found - kScalars.begin());
}

void add_flag(Step& step, int flag) {
  step.flags = static_cast<std::uint8_t>(step.flags | flag);
}

int operand_count(const expr::Program& program, const expr::Instruction& instruction) {
  switch (instruction.op) {
    case expr::Op::Table:
      return 1;
    case expr::Op::Capture:
      return program.captures[instruction.index].rank();
    default:
      return expr::info(instruction.op).arity;
  }
}

std::int64_t word_of(const expr::Program& program, const expr::Instruction& instruction,
                     const PoolOffsets& offsets) {
  switch (instruction.op) {
    case expr::Op::Constant:
      return program.constants[instruction.index];
    case expr::Op::Scalar:
      return static_cast<std::int64_t>(scalar_of(program.scalars[instruction.index]));
    case expr::Op::Table:
      return offsets.tables + instruction.index;
    case expr::Op::Capture:
      return offsets.captures + instruction.index;
    default:
      return 0;
  }
}

// Which values differ along the keys of a row.
void mark_varying(std::vector<Step>& steps, const std::vector<int>& operand_counts) {
  std::array<bool, expr::kMaxSlots> slot_varies{};
  for (std::size_t i = 0; i < steps.size(); ++i) {
    Step& step = steps[i];
    bool varies = static_cast<expr::Op>(step.op) == expr::Op::Scalar &&
                  step.word == static_cast<std::int64_t>(Scalar::Key);
    for (int operand = 0; operand < operand_counts[i]; ++operand) {
      if (slot_varies[step.operands[operand]]) {
        add_flag(step, operand_varies(operand));
        varies = true;
      }
    }
    if (varies) {
      add_flag(step, kResultVaries);
    }
    slot_varies[step.destination] = varies;
  }
}

}  // namespace

std::vector<Step> lower_program(const expr::Program& program, const PoolOffsets& offsets) {
  std::vector<Step> steps;
  std::vector<int> operand_counts;
  for (const expr::Instruction& instruction : program.code) {
    Step step{.op = static_cast<std::uint8_t>(instruction.op),
              .destination = instruction.destination,
              .word = word_of(program, instruction, offsets)};
    std::ranges::copy(instruction.operands, step.operands);
    if (instruction.type == ScalarType::Float) {
      add_flag(step, kIsFloat);
    }
    steps.push_back(step);
    operand_counts.push_back(operand_count(program, instruction));
  }
  mark_varying(steps, operand_counts);
  return steps;
}

}  // namespace stof::mask_layout
