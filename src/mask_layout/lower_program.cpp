#include "mask_layout/lower_program.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <string_view>

#include "base/check.hpp"
#include "expr/semantics.hpp"

namespace stof::mask_layout {

namespace {

using expr::Op;

constexpr std::array<std::string_view, 6> kScalars = {"batch", "head",  "q_pos",
                                                      "k_pos", "q_len", "kv_len"};
constexpr int kLeaf = -1;
constexpr std::int64_t kKeepRange = std::int64_t{1} << (64 - expr::kKeepShift);

Scalar scalar_of(std::string_view name) {
  const auto found = std::ranges::find(kScalars, name);
  STOF_CHECK(found != kScalars.end()) << "scalar " << name;
  return static_cast<Scalar>(found - kScalars.begin());
}

// A step before its place is known. A program is a tree: one step alone reads a result.
struct Draft {
  Step step;
  int operand_count = 0;
  std::array<int, 4> sources = {kLeaf, kLeaf, kLeaf, kLeaf};  // the drafts of its operands
  bool is_needed = true;
  bool is_of_row = false;
  bool is_curve = false;
  int growth = 0;  // from key to key, of a line

  Op op() const { return static_cast<Op>(step.op); }
  bool varies() const { return (step.flags & kResultVaries) != 0; }
  void add_flag(int flag) { step.flags = static_cast<std::uint8_t>(step.flags | flag); }
  void set_operand(int i, int operand) { step.operands[i] = static_cast<std::uint8_t>(operand); }
  bool is_on_integers() const { return (step.flags & (kIsFloat | kIsTruth)) == 0; }
  bool reads_word(int i) const { return i < operand_count && step.operands[i] == kWord; }
};

class Lowering {
 public:
  Lowering(const expr::Program& program, const PoolOffsets& offsets)
      : program_(program), offsets_(offsets) {
    for (const expr::Instruction& instruction : program.code) {
      add(instruction);
    }
  }

  LoweredProgram take() {
    split();
    LoweredProgram lowered;
    for (const Draft& draft : drafts_) {
      if (draft.is_needed) {
        (draft.is_of_row ? lowered.row_steps : lowered.key_steps).push_back(draft.step);
      }
    }
    lowered.row_slots = row_slots_;
    lowered.goes_by_rows = goes_by_rows();
    for (std::vector<Step>* steps : {&lowered.row_steps, &lowered.key_steps}) {
      forward(*steps);
      for (const Step& step : *steps) {
        const bool is_kept = (step.flags & kIsForwarded) == 0 && step.destination < kRowSlot;
        lowered.slots = std::max(lowered.slots, is_kept ? step.destination + 1 : 0);
      }
    }
    return lowered;
  }

 private:
  int operand_count(const expr::Instruction& instruction) const {
    switch (instruction.op) {
      case Op::Table:
        return 1;
      case Op::Capture:
        return program_.captures[instruction.index].rank();
      default:
        return expr::info(instruction.op).arity;
    }
  }

  std::int64_t word_of(const expr::Instruction& instruction) const {
    switch (instruction.op) {
      case Op::Constant:
        return program_.constants[instruction.index];
      case Op::Scalar:
        return static_cast<std::int64_t>(scalar_of(program_.scalars[instruction.index]));
      case Op::Table:
        return offsets_.tables + instruction.index;
      case Op::Capture:
        return offsets_.captures + instruction.index;
      default:
        return 0;
    }
  }

  void add(const expr::Instruction& instruction) {
    Draft draft;
    draft.step.op = static_cast<std::uint8_t>(instruction.op);
    draft.step.destination = instruction.destination;
    draft.step.word = word_of(instruction);
    draft.operand_count = operand_count(instruction);
    if (instruction.type != ScalarType::Int) {
      draft.add_flag(instruction.type == ScalarType::Float ? kIsFloat : kIsTruth);
    }
    if (instruction.op == Op::Scalar && draft.step.word == static_cast<int>(Scalar::Key)) {
      draft.add_flag(kResultVaries);
    }
    const bool has_word = instruction.op == Op::Table || instruction.op == Op::Capture;
    bool takes_word = !has_word;
    for (int i = 0; i < draft.operand_count; ++i) {
      takes_word = take_operand(draft, i, instruction.operands[i], takes_word);
    }
    strengthen(draft);
    fuse_keep(draft);
    last_in_[instruction.destination] = static_cast<int>(drafts_.size());
    drafts_.push_back(draft);
  }

  // Constants and scalars become operands themselves. Returns whether there is room for a constant
  // still.
  bool take_operand(Draft& draft, int i, int slot, bool takes_word) {
    const int source = last_in_[slot];
    Draft& operand = drafts_[source];
    if (operand.varies()) {
      draft.add_flag(operand_varies(i) | kResultVaries);
    }
    if (operand.op() == Op::Scalar) {
      draft.set_operand(i, kScalar + static_cast<int>(operand.step.word));
      operand.is_needed = false;
    } else if (operand.op() == Op::Constant && (takes_word || !operand.is_needed)) {
      draft.step.word = operand.step.word;
      operand.is_needed = false;
      return false;
    } else {
      draft.set_operand(i, slot);
      draft.sources[i] = source;
    }
    return takes_word;
  }

  // Division by a power of two, which rounds down, needs no division.
  static void strengthen(Draft& draft) {
    std::int64_t& word = draft.step.word;
    if (!draft.is_on_integers() || !draft.reads_word(1) || !expr::is_power_of_two(word)) {
      return;
    }
    if (draft.op() == Op::Modulo) {
      draft.step.op = static_cast<std::uint8_t>(Op::BitAnd);
      word -= 1;
    } else if (draft.op() == Op::Divide) {
      draft.step.op = static_cast<std::uint8_t>(Op::ShiftRight);
      word = std::countr_zero(static_cast<std::uint64_t>(word));
    }
  }

  // What is `op` and the left operand of the draft; null for others.
  Draft* left_operand(const Draft& draft, Op op) {
    const int source = draft.sources[0];
    return source != kLeaf && drafts_[source].op() == op ? &drafts_[source] : nullptr;
  }

  void fuse_keep(Draft& draft) {
    const bool may_be = draft.op() == Op::Less && draft.is_on_integers() && draft.reads_word(1) &&
                        draft.step.word >= 0 && draft.step.word <= kKeepRange;
    Draft* shift = may_be ? left_operand(draft, Op::ShiftRightLogical) : nullptr;
    if (shift == nullptr || !shift->reads_word(1) || shift->step.word != expr::kKeepShift) {
      return;
    }
    Draft* mix = left_operand(*shift, Op::Mix);
    Draft* differs = mix == nullptr ? nullptr : left_operand(*mix, Op::BitXor);
    if (differs == nullptr || differs->reads_word(0) || differs->reads_word(1)) {
      return;
    }
    const Draft comparison = draft;
    draft = *differs;
    draft.step.op = static_cast<std::uint8_t>(Op::Keep);
    draft.step.destination = comparison.step.destination;
    draft.step.word = comparison.step.word;
    for (Draft* fused : {shift, mix, differs}) {
      fused->is_needed = false;
    }
  }

  // What does not vary and is read where things vary is worked out once a row, as far as there is
  // room.
  void split() {
    std::vector<bool> is_for_keys(drafts_.size());
    is_for_keys.back() = true;
    for (std::size_t i = drafts_.size(); i-- > 0;) {
      drafts_[i].is_of_row = !is_for_keys[i];
      for (int operand = 0; operand < drafts_[i].operand_count && is_for_keys[i]; ++operand) {
        const int source = drafts_[i].sources[operand];
        if (source == kLeaf || is_for_keys[source]) {
          continue;
        }
        if (drafts_[source].varies() || offsets_.row_slots + row_slots_ == kMostRowSlots) {
          is_for_keys[source] = true;
          continue;
        }
        const int slot = kRowSlot + offsets_.row_slots + row_slots_++;
        drafts_[source].step.destination = static_cast<std::uint8_t>(slot);
        read_from(drafts_[i], source, slot);
      }
    }
  }

  // Growth of an operand from key to key.
  int growth_of(const Draft& draft, int i) const {
    const bool is_key = draft.step.operands[i] == kScalar + static_cast<int>(Scalar::Key);
    return is_key ? 1 : draft.sources[i] == kLeaf ? 0 : drafts_[draft.sources[i]].growth;
  }

  // Whether an operand is a curve: a line that one operation was applied to.
  bool has_curve(const Draft& draft, int i) const {
    return draft.sources[i] != kLeaf && drafts_[draft.sources[i]].is_curve;
  }

  bool is_curve(const Draft& draft) const {
    const bool has_one_line = draft.operand_count == 1 || draft.reads_word(1);
    return mask_layout::is_curve(draft.op()) && draft.is_on_integers() && has_one_line &&
           !has_curve(draft, 0);
  }

  // Sets the growth of the draft and whether it is a curve.
  bool goes_by_row(Draft& draft) const {
    const bool is_comparison = draft.op() >= Op::Equal && draft.op() <= Op::GreaterEqual;
    const bool is_sum = draft.op() == Op::Add || draft.op() == Op::Subtract;
    const bool reads_memory = draft.op() == Op::Table || draft.op() == Op::Capture;
    if ((draft.step.flags & kIsTruth) != 0) {
      return !reads_memory;
    }
    draft.is_curve = is_curve(draft);
    if (draft.is_curve || draft.op() == Op::Keep) {
      return !has_curve(draft, 0) && !has_curve(draft, 1);
    }
    if (!draft.is_on_integers() || !(is_comparison || is_sum)) {
      return false;
    }
    const int curves = int{has_curve(draft, 0)} + int{has_curve(draft, 1)};
    const int growth = draft.op() == Op::Add ? growth_of(draft, 0) + growth_of(draft, 1)
                                             : growth_of(draft, 0) - growth_of(draft, 1);
    draft.growth = is_sum ? growth : 0;
    return is_comparison && curves == 1 ? true : curves == 0 && std::abs(growth) <= 1;
  }

  bool goes_by_rows() {
    return std::ranges::all_of(drafts_, [&](Draft& draft) {
      return !draft.is_needed || draft.is_of_row || goes_by_row(draft);
    });
  }

  static void read_from(Draft& draft, int source, int slot) {
    for (int i = 0; i < draft.operand_count; ++i) {
      if (draft.sources[i] == source) {
        draft.set_operand(i, slot);
        draft.sources[i] = kLeaf;
      }
    }
  }

  static void forward(std::vector<Step>& steps) {
    for (std::size_t i = 0; i + 1 < steps.size(); ++i) {
      const std::uint8_t slot = steps[i].destination;
      if (slot >= kRowSlot) {
        continue;
      }
      for (std::uint8_t& operand : steps[i + 1].operands) {
        if (operand == slot) {
          operand = kPrevious;
          steps[i].flags = static_cast<std::uint8_t>(steps[i].flags | kIsForwarded);
        }
      }
    }
  }

  const expr::Program& program_;
  const PoolOffsets& offsets_;
  std::vector<Draft> drafts_;
  std::array<int, expr::kMaxSlots> last_in_{};  // the draft that wrote each slot last
  int row_slots_ = 0;
};

}  // namespace

LoweredProgram lower_program(const expr::Program& program, const PoolOffsets& offsets) {
  return Lowering(program, offsets).take();
}

}  // namespace stof::mask_layout
