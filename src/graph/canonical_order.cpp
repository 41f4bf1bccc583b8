// A depth-first walk in which a segment is one node: what it reads from outside comes first, then
// its operators without a gap.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "graph/canonical.hpp"
#include "graph/encode.hpp"
#include "graph/op_info.hpp"

namespace stof::graph {

namespace {

// The operators that the outputs need, in the order in which a plain walk from these meets them.
std::vector<int> needed(const Ir& ir, const std::vector<int>& outputs) {
  std::vector<bool> is_met(ir.operators.size());
  std::vector<int> met;
  for (const int output : outputs) {
    std::vector<int> stack = {ir.outputs[static_cast<std::size_t>(output)].value};
    while (!stack.empty()) {
      const int op = ir.values[static_cast<std::size_t>(stack.back())]->producer;
      stack.pop_back();
      if (op >= 0 && !is_met[static_cast<std::size_t>(op)]) {
        is_met[static_cast<std::size_t>(op)] = true;
        met.push_back(op);
        const std::vector<int> operands = operand_ids(ir.operators[static_cast<std::size_t>(op)]);
        stack.insert(stack.end(), operands.rbegin(), operands.rend());
      }
    }
  }
  return met;
}

class Walk {
 public:
  Walk(const Ir& ir, const std::vector<int>& needed)
      : ir_(ir),
        group_of_(ir.operators.size(), -1),
        is_member_done_(ir.operators.size()),
        reader_counts_(ir.values.size()) {
    groups_.reserve(needed.size());
    std::map<int, int> group_of_segment;
    for (const int index : needed) {
      const Operator& op = ir.operators[static_cast<std::size_t>(index)];
      const int fresh = static_cast<int>(groups_.size());
      const int group =
          op.segment < 0 ? fresh : group_of_segment.emplace(op.segment, fresh).first->second;
      if (group == fresh) {
        groups_.emplace_back();
      }
      groups_[static_cast<std::size_t>(group)].members.push_back(index);
      group_of_[static_cast<std::size_t>(index)] = group;
      for (const int value : operand_ids(op)) {
        ++reader_counts_[static_cast<std::size_t>(value)];
      }
    }
    for (const Output& output : ir.outputs) {
      ++reader_counts_[static_cast<std::size_t>(output.value)];
    }
  }

  // Appends all that the value needs and that is not there yet.
  void visit(int value) {
    enter(value);
    while (!stack_.empty()) {
      Frame& frame = stack_.back();
      Group& group = groups_[static_cast<std::size_t>(frame.group)];
      if (frame.next < group.needs.size()) {
        enter(group.needs[frame.next++]);
        continue;
      }
      order_.insert(order_.end(), group.order.begin(), group.order.end());
      group.state = State::Done;
      stack_.pop_back();
    }
  }

  std::vector<int> order() && { return std::move(order_); }

 private:
  enum class State : std::uint8_t { New, Entered, Done };

  struct Group {
    std::vector<int> members = {};
    std::vector<int> order = {};  // the members, canonically
    std::vector<int> needs = {};  // values from outside, in the order in which they are visited
    State state = State::New;
  };

  struct Frame {
    int group = 0;
    std::size_t next = 0;
  };

  int producer(int value) const { return ir_.values[static_cast<std::size_t>(value)]->producer; }

  // What an operator reads. Values with other readers come first: then a chain that only leads here
  // ends right before its reader. An elementwise operator is part of such a chain if it follows
  // without a view, so what views make comes before.
  std::vector<int> operands(const Operator& op) const;

  void enter(int value) {
    const int op = producer(value);
    if (op < 0) {
      return;
    }
    const int index = group_of_[static_cast<std::size_t>(op)];
    Group& group = groups_[static_cast<std::size_t>(index)];
    if (group.state == State::Done) {
      return;
    }
    STOF_CHECK(group.state == State::New)
        << "segment " << ir_.operators[static_cast<std::size_t>(op)].segment
        << " reads what it leads to";
    group.state = State::Entered;
    order_members(group, op);
    for (const int member : group.members) {
      order_members(group, member);
    }
    stack_.push_back({.group = index});
  }

  // Depth first within the group.
  void order_members(Group& group, int last) {
    std::vector<std::pair<int, std::vector<int>>> stack;  // an operator, and operands to come
    const auto push = [&](int op) {
      if (!is_member_done_[static_cast<std::size_t>(op)]) {
        is_member_done_[static_cast<std::size_t>(op)] = true;
        std::vector<int> values = operands(ir_.operators[static_cast<std::size_t>(op)]);
        std::ranges::reverse(values);
        stack.emplace_back(op, std::move(values));
      }
    };
    push(last);
    while (!stack.empty()) {
      if (stack.back().second.empty()) {
        group.order.push_back(stack.back().first);
        stack.pop_back();
        continue;
      }
      const int value = stack.back().second.back();
      stack.back().second.pop_back();
      const int op = producer(value);
      if (op >= 0 &&
          group_of_[static_cast<std::size_t>(op)] == group_of_[static_cast<std::size_t>(last)]) {
        push(op);
      } else {
        group.needs.push_back(value);
      }
    }
  }

  const Ir& ir_;
  std::vector<Group> groups_;
  std::vector<int> group_of_;  // of operators
  std::vector<bool> is_member_done_;
  std::vector<int> reader_counts_;  // of values
  std::vector<Frame> stack_;
  std::vector<int> order_;
};

std::vector<int> Walk::operands(const Operator& op) const {
  std::vector<int> values = operand_ids(op);
  if (values.size() < 2) {
    return values;
  }
  const auto others = std::stable_partition(values.begin(), values.end(), [&](int value) {
    return reader_counts_[static_cast<std::size_t>(value)] > 1;
  });
  if (op.kind >= OpKind::Add && op.kind <= OpKind::Cast) {
    std::stable_partition(others, values.end(), [&](int value) {
      const int maker = producer(value);
      return maker >= 0 &&
             op_info(ir_.operators[static_cast<std::size_t>(maker)].kind).op_class == OpClass::View;
    });
  }
  return values;
}

}  // namespace

std::vector<int> canonical_order(const Ir& ir, const std::vector<int>& outputs) {
  Walk walk(ir, needed(ir, outputs));
  for (const int output : outputs) {
    walk.visit(ir.outputs[static_cast<std::size_t>(output)].value);
  }
  return std::move(walk).order();
}

}  // namespace stof::graph
