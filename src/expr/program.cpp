#include "expr/program.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <unordered_map>

#include "base/check.hpp"
#include "expr/evaluate.hpp"
#include "expr/node.hpp"
#include "expr/semantics.hpp"

namespace stof::expr {

namespace {

template <typename T>
std::vector<std::string> keys(const std::map<std::string, T, std::less<>>& map) {
  std::vector<std::string> result;
  result.reserve(map.size());
  for (const auto& entry : map) {
    result.push_back(entry.first);
  }
  return result;
}

template <typename T>
std::vector<T> values(const std::map<std::string, T, std::less<>>& map) {
  std::vector<T> result;
  result.reserve(map.size());
  for (const auto& entry : map) {
    result.push_back(entry.second);
  }
  return result;
}

// Emits each node with its result in the lowest free slot: `base`. The slots from there on are free
// for its operands, of which the one that needs most goes first (Sethi and Ullman, "The generation
// of optimal code for arithmetic expressions", 1970).
class Compiler {
 public:
  explicit Compiler(const Expr& expr) {
    const ExprNames& names = names_used(expr);
    program_.scalars = keys(names.scalars);
    program_.scalar_types = values(names.scalars);
    program_.tables = values(names.tables);
    program_.captures = values(names.captures);
    number(names.scalars);
    number(names.tables);
    number(names.captures);
    program_.type = expr.type();
    emit(expr, 0);
  }

  Program take() { return std::move(program_); }

 private:
  template <typename T>
  void number(const std::map<std::string, T, std::less<>>& map) {
    std::uint32_t index = 0;
    for (const auto& entry : map) {
      indices_[entry.first] = index++;
    }
  }

  int slots_needed(const Expr& expr) {
    const Node& node = expr.node();
    if (node.operands.empty()) {
      return 1;
    }
    const auto [known, is_new] = needed_.try_emplace(&node, 0);
    if (!is_new) {
      return known->second;
    }
    const std::size_t count = operand_count(node);
    std::vector<int> needs;
    for (std::size_t i = 0; i < count; ++i) {
      needs.push_back(slots_needed(node.operands[i]));
    }
    std::ranges::sort(needs, std::greater<>());
    int most = 1;
    for (std::size_t i = 0; i < count; ++i) {
      most = std::max(most, needs[i] + static_cast<int>(i));
    }
    return needed_[&node] = most;
  }

  // The literal fraction of Keep is no operand of the program.
  static std::size_t operand_count(const Node& node) {
    return node.op == Op::Keep ? 3 : node.operands.size();
  }

  void emit(const Expr& expr, int base) {
    const Node& node = expr.node();
    const std::array<std::uint8_t, 4> slots = emit_operands(node, base);
    switch (node.op) {
      case Op::Constant:
        push_constant(base, node.type, word_of(node.value()));
        return;
      case Op::Scalar:
        push(node.op, node.type, base, {}, indices_.at(node.name()));
        return;
      case Op::Table:
        push(node.op, node.type, base, slots, indices_.at(node.table().name()));
        return;
      case Op::Capture:
        push(node.op, node.type, base, slots, indices_.at(node.capture().name()));
        return;
      case Op::Hash:
      case Op::Draw:
      case Op::Keep:
        push_hashed(node, base, slots);
        return;
      default:
        push(node.op, node.operands.back().type(), base, slots, 0);
        return;
    }
  }

  // The slot of each operand.
  std::array<std::uint8_t, 4> emit_operands(const Node& node, int base) {
    const std::size_t count = operand_count(node);
    std::array<std::size_t, 4> order{0, 1, 2, 3};
    std::stable_sort(order.begin(), order.begin() + count, [&](std::size_t a, std::size_t b) {
      return slots_needed(node.operands[a]) > slots_needed(node.operands[b]);
    });
    std::array<std::uint8_t, 4> slots{};
    for (std::size_t i = 0; i < count; ++i) {
      const int slot = base + static_cast<int>(i);
      emit(node.operands[order[i]], slot);
      slots[order[i]] = static_cast<std::uint8_t>(slot);
    }
    return slots;
  }

  // mix(mix(mix(seed) ^ a) ^ b), and what Draw and Keep make of it. All is done in the operands'
  // own slots, of which the first is `base`.
  void push_hashed(const Node& node, int base, const std::array<std::uint8_t, 4>& slots) {
    constexpr auto kInt = ScalarType::Int;
    int state = slots[0];
    push(Op::Mix, kInt, state, {slots[0]}, 0);
    for (const std::uint8_t counter : {slots[1], slots[2]}) {
      push(Op::BitXor, kInt, state, {slots[0], counter}, 0);
      push(Op::Mix, kInt, state, {slots[0]}, 0);
    }
    if (node.op == Op::Draw) {
      push_constant(slots[1], kInt, kDrawShift);
      push(Op::ShiftRightLogical, kInt, state, {slots[0], slots[1]}, 0);
      push(Op::Modulo, kInt, base, {slots[0], slots[3]}, 0);
    } else if (node.op == Op::Keep) {
      push_constant(slots[1], kInt, kKeepShift);
      push(Op::ShiftRightLogical, kInt, state, {slots[0], slots[1]}, 0);
      push_constant(slots[1], kInt, keep_threshold(std::get<double>(*literal(node.operands[3]))));
      push(Op::Less, kInt, base, {slots[0], slots[1]}, 0);
    } else if (state != base) {
      // The state goes to its place through a | a.
      push(Op::BitOr, kInt, base, {slots[0], slots[0]}, 0);
    }
  }

  void push_constant(int slot, ScalarType type, std::int64_t word) {
    const auto next = static_cast<std::uint32_t>(program_.constants.size());
    const auto [found, is_new] = constants_.try_emplace(word, next);
    if (is_new) {
      program_.constants.push_back(word);
    }
    push(Op::Constant, type, slot, {}, found->second);
  }

  void push(Op op, ScalarType type, int slot, const std::array<std::uint8_t, 4>& operands,
            std::uint32_t index) {
    STOF_CHECK(slot < kMaxSlots) << "slot " << slot;
    program_.slots = std::max(program_.slots, slot + 1);
    program_.code.push_back({op,
                             type,
                             static_cast<std::uint8_t>(slot),
                             {operands[0], operands[1], operands[2], operands[3]},
                             index});
  }

  Program program_;
  std::unordered_map<std::string_view, std::uint32_t> indices_;  // of what has a name
  std::unordered_map<std::int64_t, std::uint32_t> constants_;    // where each word is
  std::unordered_map<const Node*, int> needed_;
};

}  // namespace

std::optional<int> Program::scalar(std::string_view name) const {
  const auto found = std::ranges::find(scalars, name);
  return found == scalars.end() ? std::nullopt
                                : std::optional<int>(static_cast<int>(found - scalars.begin()));
}

Program compile(const Expr& expr) {
  return Compiler(expr).take();
}

}  // namespace stof::expr
