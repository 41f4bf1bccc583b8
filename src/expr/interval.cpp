#include "expr/interval.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "base/check.hpp"
#include "expr/table.hpp"
#include "expr/typed_interval.hpp"

namespace stof::expr {

namespace {

// Truth values are 0 or 1, so the ends combine like values.
Interval apply_to_truths(Op op, const Interval& a, const Interval& b) {
  switch (op) {
    case Op::Not:
      return {ScalarType::Bool, false, 1 - a.high, 1 - a.low};
    case Op::And:
      return {ScalarType::Bool, false, a.low & b.low, a.high & b.high};
    case Op::Or:
      return {ScalarType::Bool, false, a.low | b.low, a.high | b.high};
    default:
      break;
  }
  return compare(op, a.low, a.high, b.low, b.high);
}

Interval draw(const Interval& count) {
  return apply_to_integers(Op::Modulo, Interval::integers(0, kIntMax >> (kDrawShift - 1)), count);
}

// Widens to what the entry at the index, or the ends of a block, add.
struct TableHull {
  explicit TableHull(const TableData& data)
      : type(data.type), result(Interval::all(data.type)), may_be_nan(data.has_nan) {}

  void add(std::int64_t low, std::int64_t high) {
    const bool is_float = type == ScalarType::Float;
    const bool is_empty = is_float && !(float_of(low) <= float_of(high));  // NaN alone
    if (!is_empty) {
      const Interval more{type, false, low, high};
      result = is_first ? more : hull(result, more);
      is_first = false;
    }
  }

  Interval take() const {
    Interval taken = result;
    taken.may_be_nan = may_be_nan;
    return taken;
  }

  ScalarType type;
  Interval result;  // everything, until the first is added
  bool may_be_nan;
  bool is_first = true;
};

}  // namespace

Interval Interval::all(ScalarType type) {
  switch (type) {
    case ScalarType::Bool:
      return truths(true, true);
    case ScalarType::Int:
      return integers(kIntMin, kIntMax);
    case ScalarType::Float:
      break;
  }
  constexpr double kUnbounded = std::numeric_limits<double>::infinity();
  return floats(-kUnbounded, kUnbounded, true);
}

Interval Interval::point(ScalarType type, std::int64_t word) {
  if (type == ScalarType::Float && std::isnan(float_of(word))) {
    return all(type);
  }
  return {type, false, word, word};
}

bool Interval::contains(std::int64_t word) const {
  if (type != ScalarType::Float) {
    return low <= word && word <= high;
  }
  const double value = float_of(word);
  return std::isnan(value) ? may_be_nan : float_low() <= value && value <= float_high();
}

Interval hull(const Interval& a, const Interval& b) {
  if (a.type == ScalarType::Float) {
    return Interval::floats(std::min(a.float_low(), b.float_low()),
                            std::max(a.float_high(), b.float_high()), a.may_be_nan || b.may_be_nan);
  }
  return {a.type, false, std::min(a.low, b.low), std::max(a.high, b.high)};
}

Interval apply(Op op, ScalarType type, std::span<const Interval> operands) {
  switch (op) {
    case Op::Select:
      return operands[0].is_true()    ? operands[1]
             : operands[0].is_false() ? operands[2]
                                      : hull(operands[1], operands[2]);
    case Op::Hash:
      return Interval::all(ScalarType::Int);
    case Op::Draw:
      return draw(operands[3]);
    case Op::Keep:
      return Interval::all(ScalarType::Bool);
    default:
      break;
  }
  const Interval& a = operands[0];
  const Interval& b = operands.back();
  switch (type) {
    case ScalarType::Bool:
      return apply_to_truths(op, a, b);
    case ScalarType::Int:
      return apply_to_integers(op, a, b);
    case ScalarType::Float:
      break;
  }
  return apply_to_floats(op, a, b);
}

Interval bounds(const Table& table, const Interval& index) {
  const TableData& data = table.data();
  const std::int64_t last = table.size() - 1;
  const std::int64_t low = std::clamp<std::int64_t>(index.low, 0, last);
  const std::int64_t high = std::clamp<std::int64_t>(index.high, 0, last);
  TableHull result(data);
  if (low == 0 && high == last) {
    result.add(data.low, data.high);
    return result.take();
  }
  for (std::int64_t i = low; i <= high;) {
    if (i % kTableBlock == 0 && i + kTableBlock - 1 <= high) {
      result.add(data.block_low[i / kTableBlock], data.block_high[i / kTableBlock]);
      i += kTableBlock;
    } else {
      result.add(data.entries[i], data.entries[i]);
      ++i;
    }
  }
  return result.take();
}

Interval bounds(const Program& program, std::span<const Interval> scalars,
                std::span<const Interval> captures) {
  STOF_CHECK(scalars.size() == program.scalars.size()) << scalars.size() << " scalars";
  std::array<Interval, kMaxSlots> slots;
  std::array<Interval, 4> operands;
  for (const Instruction& code : program.code) {
    Interval& result = slots[code.destination];
    switch (code.op) {
      case Op::Constant:
        result = Interval::point(code.type, program.constants[code.index]);
        continue;
      case Op::Scalar:
        result = scalars[code.index];
        continue;
      case Op::Table:
        result = bounds(program.tables[code.index], slots[code.operands[0]]);
        continue;
      case Op::Capture:
        result = captures.empty() ? Interval::all(program.captures[code.index].type())
                                  : captures[code.index];
        continue;
      default:
        break;
    }
    const auto arity = static_cast<std::size_t>(info(code.op).arity);
    for (std::size_t i = 0; i < arity; ++i) {
      operands[i] = slots[code.operands[i]];
    }
    result = apply(code.op, code.type, std::span(operands).first(arity));
  }
  return slots[0];
}

Interval bounds(const Expr& expr, const Ranges& ranges) {
  const Program program = compile(expr);
  const auto range = [&](const std::string& name, ScalarType type) {
    const auto found = ranges.find(name);
    STOF_CHECK(found == ranges.end() || found->second.type == type) << "the range of " << name;
    return found == ranges.end() ? Interval::all(type) : found->second;
  };
  std::vector<Interval> scalars;
  for (std::size_t i = 0; i < program.scalars.size(); ++i) {
    scalars.push_back(range(program.scalars[i], program.scalar_types[i]));
  }
  std::vector<Interval> captures;
  for (const Capture& capture : program.captures) {
    captures.push_back(range(capture.name(), capture.type()));
  }
  return bounds(program, scalars, captures);
}

}  // namespace stof::expr
