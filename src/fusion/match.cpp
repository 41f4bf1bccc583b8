#include "fusion/match.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

#include "graph/op_info.hpp"

namespace stof::fusion {

namespace {

using contract::PatternAttribute;
using contract::PatternStep;
using contract::TemplateContract;
using graph::Ir;
using graph::OpKind;

bool is_commutative(OpKind kind) {
  constexpr std::array kKinds = {OpKind::Add, OpKind::Multiply, OpKind::Maximum, OpKind::Minimum};
  return std::find(kKinds.begin(), kKinds.end(), kind) != kKinds.end();
}

constexpr std::string_view kSequence = "seq";

bool is_rotary(OpKind kind) {
  return kind == OpKind::Rotary || kind == OpKind::RotaryHeads;
}

// As patterns see attributes: numbers, with truth as 0 and 1. Of a rotary style they ask whether it
// is interleaved, and of rotary_heads how many rows of x are a sequence, since ports join its
// leading axes; axes count from the innermost, -1, for the same reason.
std::optional<double> attribute_value(const Ir& ir, const graph::Operator& op,
                                      const std::string& name) {
  if (is_rotary(op.kind) && name == "interleaved") {
    return graph::attribute<std::string>(op, "style") == graph::name(RotaryStyle::Interleaved);
  }
  if (op.kind == OpKind::RotaryHeads && name == kSequence) {
    return static_cast<double>(graph::value_at(ir, op.inputs[0]).shape[-2].value());
  }
  const auto found = op.attributes.find(name);
  if (found == op.attributes.end()) {
    return std::nullopt;
  }
  if (name == "axis") {
    const int rank = graph::value_at(ir, op.inputs[0]).shape.rank();
    return static_cast<double>(std::get<std::int64_t>(found->second) - rank);
  }
  if (const auto* truth = std::get_if<bool>(&found->second)) {
    return *truth ? 1 : 0;
  }
  if (const auto* integer = std::get_if<std::int64_t>(&found->second)) {
    return static_cast<double>(*integer);
  }
  const auto* number = std::get_if<double>(&found->second);
  return number != nullptr ? std::optional(*number) : std::nullopt;
}

}  // namespace

std::vector<std::string> pattern_attributes(OpKind kind) {
  std::vector<std::string> names;
  for (const graph::AttributeInfo& attribute : graph::op_info(kind).attributes) {
    names.emplace_back(is_rotary(kind) && attribute.name == "style" ? "interleaved"
                                                                    : attribute.name);
  }
  if (kind == OpKind::RotaryHeads) {
    names.emplace_back(kSequence);
  }
  return names;
}

namespace {

// What a few names are bound to: it is copied for each way in which a pattern may fit.
class Bound {
 public:
  std::optional<int> find(std::string_view name) const {
    const auto found = std::find_if(values_.begin(), values_.end(),
                                    [&](const auto& bound) { return bound.first == name; });
    return found == values_.end() ? std::nullopt : std::optional(found->second);
  }

  // Unless it is bound to another value. The name must stay.
  bool bind(std::string_view name, int value) {
    const std::optional<int> known = find(name);
    if (!known) {
      values_.emplace_back(name, value);
    }
    return known.value_or(value) == value;
  }

  std::map<std::string, int> values() const { return {values_.begin(), values_.end()}; }

 private:
  std::vector<std::pair<std::string_view, int>> values_;
};

// Binds the steps of one pattern to operators, one step at a time; copied where there is a choice.
class Matcher {
 public:
  Matcher(const TemplateContract& contract, const Ir& ir, const Readers& readers,
          const std::vector<bool>& is_free)
      : contract_(&contract),
        ir_(&ir),
        readers_(&readers),
        is_free_(&is_free),
        steps_(contract.pattern.size(), kUnbound) {}

  void search(int op, std::vector<Match>& found) const {
    const auto required = std::find_if(contract_->pattern.begin(), contract_->pattern.end(),
                                       [](const PatternStep& step) { return !step.is_optional; });
    bind_each_way(static_cast<std::size_t>(required - contract_->pattern.begin()), op, found);
  }

 private:
  static constexpr int kUnbound = -2;
  static constexpr int kAbsent = -1;

  const PatternStep& step(std::size_t i) const { return contract_->pattern[i]; }

  // Goes on from every way in which the operator fits the step.
  void bind_each_way(std::size_t i, int op, std::vector<Match>& found) const {
    if (!is_named(i, op) || !(*is_free_)[static_cast<std::size_t>(op)] ||
        std::find(steps_.begin(), steps_.end(), op) != steps_.end()) {
      return;
    }
    const std::size_t input_count = ir_->operators[static_cast<std::size_t>(op)].inputs.size();
    const bool has_choice =
        input_count == 2 && is_commutative(ir_->operators[static_cast<std::size_t>(op)].kind);
    for (int way = 0; way < (has_choice ? 2 : 1); ++way) {
      Matcher next = *this;
      if (next.bind(i, op, /*is_swapped=*/way == 1)) {
        next.complete(found);
      }
    }
  }

  void complete(std::vector<Match>& found) const {
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      if (steps_[i] != kUnbound) {
        continue;
      }
      if (const std::optional<int> op = operator_for(i)) {
        if (*op != kAbsent) {
          bind_each_way(i, *op, found);
        }
        if (step(i).is_optional) {
          Matcher next = *this;
          if (next.leave_out(i)) {
            next.complete(found);
          }
        }
        return;
      }
    }
    if (std::find(steps_.begin(), steps_.end(), kUnbound) == steps_.end() && is_closed()) {
      found.push_back(match());
    }
  }

  // The operator that a step stands for, kAbsent where there can be none; nothing as long as
  // neither its output nor an input that the pattern makes is known.
  std::optional<int> operator_for(std::size_t i) const {
    for (const std::string& output : step(i).outputs) {
      if (const std::optional<int> value = values_.find(output)) {
        return ir_->values[static_cast<std::size_t>(*value)]->producer;
      }
    }
    for (const std::string& input : step(i).inputs) {
      const std::optional<int> value = values_.find(input);
      if (!value || contract_->find_port(input) != nullptr) {
        const auto& escapes = contract_->escapes;
        if (!value || std::find(escapes.begin(), escapes.end(), input) == escapes.end()) {
          continue;
        }
      }
      for (const int reader : readers_->of(*value)) {
        if (reader != Readers::kBorder && is_named(i, reader)) {
          return reader;
        }
      }
      return kAbsent;
    }
    return std::nullopt;
  }

  bool is_named(std::size_t i, int op) const {
    const std::string_view name = name_of(op);
    const auto& others = step(i).alternatives;
    return name == step(i).op || std::find(others.begin(), others.end(), name) != others.end();
  }

  std::string_view name_of(int op) const {
    return graph::name(ir_->operators[static_cast<std::size_t>(op)].kind);
  }

  bool bind(std::size_t i, int op, bool is_swapped) {
    const graph::Operator& actual = ir_->operators[static_cast<std::size_t>(op)];
    std::vector<int> inputs = actual.inputs;
    if (actual.kind == OpKind::Attention) {
      // What lies behind carries a mask, which kernels do not see as a port.
      inputs.resize(std::min<std::size_t>(inputs.size(), 4));
    }
    if (is_swapped) {
      std::swap(inputs[0], inputs[1]);
    }
    return bind_names(step(i).inputs, inputs) && bind_names(step(i).outputs, actual.outputs) &&
           bind_attributes(i, actual) && (steps_[i] = op, true);
  }

  // Names beyond the operator's values are of optional ports, and stay unbound.
  bool bind_names(const std::vector<std::string>& names, const std::vector<int>& values) {
    for (std::size_t i = 0; i < std::max(names.size(), values.size()); ++i) {
      const bool has_value = i < values.size() && values[i] >= 0;
      if (i >= names.size()) {
        if (has_value) {
          return false;
        }
        continue;
      }
      if (!has_value) {
        const contract::Port* port = contract_->find_port(names[i]);
        if (port == nullptr || !port->is_optional) {
          return false;
        }
        continue;
      }
      if (!values_.bind(names[i], values[i])) {
        return false;
      }
    }
    return true;
  }

  bool bind_attributes(std::size_t i, const graph::Operator& op) {
    for (const PatternAttribute& attribute : step(i).attributes) {
      const std::optional<double> value = attribute_value(*ir_, op, attribute.name);
      if (!value || (attribute.value && *attribute.value != *value)) {
        return false;
      }
      if (!attribute.value && attributes_.emplace(attribute.name, *value).first->second != *value) {
        return false;
      }
    }
    return true;
  }

  // The first input of an absent operator is its output.
  bool leave_out(std::size_t i) {
    steps_[i] = kAbsent;
    const std::string& input = step(i).inputs[0];
    const std::string& output = step(i).outputs[0];
    const std::optional<int> made = values_.find(output);
    const std::optional<int> value = made ? made : values_.find(input);
    return value && values_.bind(input, *value) && values_.bind(output, *value);
  }

  // Nobody outside reads what is made inside, unless it is an output port.
  bool is_closed() const {
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      if (steps_[i] == kAbsent) {
        continue;
      }
      const graph::Operator& op = ir_->operators[static_cast<std::size_t>(steps_[i])];
      for (std::size_t j = 0; j < step(i).outputs.size() && j < op.outputs.size(); ++j) {
        const contract::Port* port = contract_->find_port(step(i).outputs[j]);
        if (port == nullptr && !is_read_inside_only(op.outputs[j])) {
          return false;
        }
      }
    }
    return true;
  }

  bool is_read_inside_only(int value) const {
    const std::vector<int>& readers = readers_->of(value);
    return std::all_of(readers.begin(), readers.end(), [&](int reader) {
      return std::find(steps_.begin(), steps_.end(), reader) != steps_.end() &&
             reader != Readers::kBorder;
    });
  }

  Match match() const {
    Match match{
        .operators = {}, .values = values_.values(), .attributes = attributes_, .alternatives = {}};
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      if (steps_[i] >= 0) {
        match.operators.push_back(steps_[i]);
        if (const std::string_view name = name_of(steps_[i]); name != step(i).op) {
          match.alternatives.emplace(step(i).outputs[0], name);
        }
      }
    }
    return match;
  }

  const TemplateContract* contract_;
  const Ir* ir_;
  const Readers* readers_;
  const std::vector<bool>* is_free_;
  std::vector<int> steps_;
  Bound values_;
  std::map<std::string, double> attributes_;
};

}  // namespace

std::vector<int> values_read(const graph::Operator& op) {
  std::vector<int> values = op.inputs;
  for (const auto& [name, value] : op.captures) {
    values.push_back(value);
  }
  std::erase_if(values, [](int value) { return value < 0; });
  return values;
}

Readers::Readers(const Ir& ir) : readers_(ir.values.size()) {
  for (std::size_t op = 0; op < ir.operators.size(); ++op) {
    for (const int value : values_read(ir.operators[op])) {
      readers_[static_cast<std::size_t>(value)].push_back(static_cast<int>(op));
    }
  }
  for (const graph::Output& output : ir.outputs) {
    readers_[static_cast<std::size_t>(output.value)].push_back(kBorder);
  }
}

std::optional<int> Readers::only(int value) const {
  const std::vector<int>& readers = of(value);
  const bool is_one = !readers.empty() && readers.front() != kBorder &&
                      std::count(readers.begin(), readers.end(), readers.front()) ==
                          static_cast<std::ptrdiff_t>(readers.size());
  return is_one ? std::optional(readers.front()) : std::nullopt;
}

bool is_turned(const TemplateContract& contract, const Match& match, const std::string& port) {
  const auto turns = match.attributes.find("transpose_b");
  return turns != match.attributes.end() && turns->second != 0 &&
         std::any_of(contract.pattern.begin(), contract.pattern.end(), [&](const auto& step) {
           return step.op == graph::name(OpKind::MatMul) && step.inputs[1] == port;
         });
}

std::vector<Match> find_matches(const TemplateContract& contract, const Ir& ir,
                                const Readers& readers, int op, const std::vector<bool>& is_free) {
  std::vector<Match> found;
  Matcher(contract, ir, readers, is_free).search(op, found);
  return found;
}

}  // namespace stof::fusion
