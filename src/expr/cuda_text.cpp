#include "expr/cuda_text.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "expr/cuda_piece.hpp"
#include "expr/node.hpp"
#include "expr/transform.hpp"
#include "stof/error.hpp"

namespace stof::expr {

namespace {

class CudaPrinter {
 public:
  CudaPrinter(const CudaNames& names, const Ranges& ranges, const CudaUse& use)
      : names_(names), ranges_(ranges), use_(use), is_coarse_(use.is_score) {}

  Piece emit(const Expr& expr) {
    Piece piece = emit_node(expr);
    // What is settled needs no code. Floats are computed in fewer bits than their bounds.
    const bool is_settled = expr.type() != ScalarType::Float && piece.interval.is_point();
    return is_settled ? literal_piece(piece.interval) : piece;
  }

 private:
  Piece emit_node(const Expr& expr) {
    // What is 1 or next to 1 may be one integer or another.
    const bool was_coarse =
        std::exchange(is_coarse_, is_coarse_ && expr.type() == ScalarType::Float);
    Piece piece = emit_operation(expr);
    is_coarse_ = was_coarse;
    return piece;
  }

  Piece emit_operand(const Node& node, std::size_t i) {
    const bool was_linear = std::exchange(is_linear_, is_linear_ && passes_on(node, i));
    Piece piece = emit(node.operands[i]);
    is_linear_ = was_linear;
    return piece;
  }

  // Whether the operand may be a KeyNumber, or have been made of one: the result is off by as much
  // as it is, but for a factor that all of a row shares. Maxima and roots are not so next to 0, and
  // a factor of one score or captured number may be infinite, which two parts do not bear.
  static bool passes_on(const Node& node, std::size_t i) {
    switch (node.op) {
      case Op::Add:
      case Op::Subtract:
      case Op::Negate:
      case Op::Select:
      case Op::Tanh:
        return true;
      case Op::Multiply:
        return is_of_row(node.operands[1 - i]);
      case Op::Divide:
        return i == 0 && is_of_row(node.operands[1]);
      default:
        return false;
    }
  }

  Piece emit_operation(const Expr& expr) {
    const Node& node = expr.node();
    switch (node.op) {
      case Op::Constant:
        return emit_literal(node);
      case Op::Scalar:
        return emit_scalar(node);
      case Op::Table:
        return emit_table(node);
      case Op::Capture:
        return emit_capture(node);
      case Op::Select:
        return emit_select(node);
      case Op::Hash:
        return wide(call_helper("hash", "", emit_counters(node)));
      case Op::Draw:
        return emit_draw(node);
      case Op::Keep:
        return emit_keep(node);
      default:
        break;
    }
    std::vector<Piece> operands;
    std::vector<Interval> intervals;
    for (std::size_t i = 0; i < node.operands.size(); ++i) {
      operands.push_back(emit_operand(node, i));
      intervals.push_back(operands.back().interval);
    }
    const ScalarType type = node.operands[0].type();
    if (type == ScalarType::Float) {
      return emit_float(node, operands);
    }
    const Interval result = apply(node.op, type, intervals);
    if (type == ScalarType::Int && node.type == ScalarType::Int) {
      return integer_operation(node.op, operands, result);
    }
    if (node.op == Op::ToFloat) {
      return number(is_coarse_ && is_linear_ ? call("stof::score_number", operands)
                                             : prefix("(float)", operands[0]));
    }
    return emit_logic(node.op, operands, result);
  }

  Piece emit_literal(const Node& node) {
    if (node.type == ScalarType::Float) {
      return literal_piece(std::get<double>(node.value()));
    }
    const std::int64_t* integer = std::get_if<std::int64_t>(&node.value());
    const std::int64_t word = integer != nullptr ? *integer : std::get<bool>(node.value()) ? 1 : 0;
    return literal_piece(Interval::point(node.type, word));
  }

  Piece emit_scalar(const Node& node) {
    Piece piece;
    piece.interval = range(node.name(), node.type);
    const bool is_settled = node.type != ScalarType::Float && piece.interval.is_point();
    piece.text = is_settled ? "" : text_of(node.name());
    piece.is_wide = node.type == ScalarType::Int && !fits_int(piece.interval);
    return piece;
  }

  Piece emit_table(const Node& node) {
    const Table& table = node.table();
    const std::string size_name = table.name() + ".size";
    const bool has_size = names_.contains(size_name);
    Interval reached;
    Piece index = emit_index(node.operands[0], size_name,
                             Interval::integers(table.size(), table.size()), reached);
    Piece piece;
    piece.text = fmt::format("{}[{}]", text_of(table.name()), index.text);
    piece.helpers = std::move(index.helpers);
    piece.interval = ranges_.contains(table.name()) ? range(table.name(), table.type())
                     : has_size                     ? Interval::all(table.type())
                                                    : bounds(table, reached);
    return sized(std::move(piece), table.type());
  }

  Piece emit_capture(const Node& node) {
    const Capture& capture = node.capture();
    std::vector<Piece> indices;
    for (std::size_t axis = 0; axis < node.operands.size(); ++axis) {
      const std::string size_name = fmt::format("{}.size{}", capture.name(), axis);
      Interval reached;
      indices.push_back(names_.contains(size_name)
                            ? emit_index(node.operands[axis], size_name, {}, reached)
                            : emit(node.operands[axis]));
    }
    Piece piece = call(text_of(capture.name()), indices);
    piece.interval = range(capture.name(), capture.type());
    return sized(std::move(piece), capture.type());
  }

  // An index of what has as many entries as the operand of that name says, or `size` where it has
  // no text; moved to the nearest end if it is not proven to be inside. `reached`: what it is
  // before.
  Piece emit_index(const Expr& expr, const std::string& size_name, const Interval& size,
                   Interval& reached) {
    Piece index = emit(expr);
    reached = index.interval;
    const bool has_size = names_.contains(size_name);
    const Interval entries = has_size ? range(size_name, ScalarType::Int) : size;
    if (is_inside(reached, entries)) {
      return index;
    }
    const auto exact = use_.inside.find(size_name);
    if (exact != use_.inside.end() && !has_floats(expr) &&
        is_inside(bounds(expr, use_.inside), exact->second)) {
      return index;
    }
    Piece count = has_size ? Piece{} : literal_piece(entries);
    if (has_size) {
      count.text = text_of(size_name);  // an int
    }
    const bool is_narrow = fits_int(reached) && !count.is_wide;
    return call_helper("clamp_index", is_narrow ? "int" : "long long", {index, count});
  }

  // Whose bounds are those of doubles, and kernels have floats.
  static bool has_floats(const Expr& expr) {
    const std::vector<Expr>& operands = expr.node().operands;
    return expr.type() == ScalarType::Float ||
           std::any_of(operands.begin(), operands.end(), has_floats);
  }

  static bool is_inside(const Interval& index, const Interval& entries) {
    return index.low >= 0 && index.high < entries.low;
  }

  Piece emit_select(const Node& node) {
    const Piece condition = emit(node.operands[0]);
    if (condition.interval.is_point()) {
      return emit(node.operands[condition.interval.is_true() ? 1 : 2]);
    }
    const Piece a = emit_operand(node, 1);
    const Piece b = emit_operand(node, 2);
    Piece piece;
    piece.text = fmt::format("{} ? {} : {}", enclosed(condition, kTernaryPrecedence + 1), a.text,
                             enclosed(b, kTernaryPrecedence));
    piece.precedence = kTernaryPrecedence;
    piece.interval = hull(a.interval, b.interval);
    piece.is_wide = a.is_wide || b.is_wide;
    for (const Piece* part : {&condition, &a, &b}) {
      piece.helpers.insert(part->helpers.begin(), part->helpers.end());
    }
    return piece;
  }

  // draw_bits(seed, a, b), an int that is not negative, modulo the count.
  Piece emit_draw(const Node& node) {
    Piece bits = call_helper("draw_bits", "", emit_counters(node));
    bits.interval = Interval::integers(0, (std::int64_t{1} << 31) - 1);
    const std::vector<Piece> operands = {bits, emit(node.operands[3])};
    const std::vector<Interval> intervals = {bits.interval, operands[1].interval};
    return integer_operation(Op::Modulo, operands, apply(Op::Modulo, ScalarType::Int, intervals));
  }

  Piece emit_keep(const Node& node) {
    const std::int64_t threshold = keep_threshold(std::get<double>(*literal(node.operands[3])));
    const Piece bits = call_helper("keep_bits", "", emit_counters(node));
    Piece piece = infix("<", info(Op::Less).precedence, bits,
                        literal_piece(Interval::integers(threshold, threshold)));
    piece.interval = Interval::all(ScalarType::Bool);
    return piece;
  }

  std::vector<Piece> emit_counters(const Node& node) {
    return {emit(node.operands[0]), emit(node.operands[1]), emit(node.operands[2])};
  }

  // On truth values, and comparisons of integers.
  Piece emit_logic(Op op, const std::vector<Piece>& operands, const Interval& result) {
    Piece piece;
    const bool is_and = op == Op::And;
    if ((is_and || op == Op::Or) && operands[0].interval.is_point()) {
      return operands[0].interval.is_true() == is_and ? operands[1] : operands[0];
    }
    if ((is_and || op == Op::Or) && operands[1].interval.is_point()) {
      return operands[1].interval.is_true() == is_and ? operands[0] : operands[1];
    }
    piece = op == Op::Not ? prefix("!", operands[0])
                          : infix(info(op).text, info(op).precedence, operands[0], operands[1]);
    piece.interval = result;
    piece.is_wide = false;
    return piece;
  }

  Piece emit_float(const Node& node, const std::vector<Piece>& operands) const {
    switch (node.op) {
      case Op::Negate:
        return number(prefix("-", operands[0]));
      case Op::Abs:
        return number(call("fabsf", operands));
      case Op::Exp:
        return number(call("expf", operands));
      case Op::Log:
        return number(call("logf", operands));
      case Op::Sqrt:
        return number(call("sqrtf", operands));
      case Op::Tanh:
        return number(call(is_coarse_ ? use_.tanh : "tanhf", operands));
      case Op::Divide:
        if (is_coarse_) {
          return number(call("stof::score_quotient", operands));
        }
        break;
      case Op::Min:
        return number(call("fminf", operands));
      case Op::Max:
        return number(call("fmaxf", operands));
      case Op::ToInt:
        return wide(call_helper("to_int64", "", {operands[0]}));
      default:
        break;
    }
    Piece piece = infix(info(node.op).text, info(node.op).precedence, operands[0], operands[1]);
    piece.interval = Interval::all(node.type);
    return piece;
  }

  static Piece number(Piece piece) {
    piece.interval = Interval::all(ScalarType::Float);
    piece.is_wide = false;
    return piece;
  }

  static Piece wide(Piece piece) {
    piece.interval = Interval::all(ScalarType::Int);
    piece.is_wide = true;
    return piece;
  }

  static Piece sized(Piece piece, ScalarType type) {
    piece.is_wide = type == ScalarType::Int && !fits_int(piece.interval);
    return piece;
  }

  Interval range(const std::string& name, ScalarType type) const {
    const auto found = ranges_.find(name);
    return found == ranges_.end() ? Interval::all(type) : found->second;
  }

  const std::string& text_of(const std::string& name) const {
    const auto found = names_.find(name);
    if (found == names_.end()) {
      throw ExpressionError(0, fmt::format("expression: {} has no text in the kernel", name));
    }
    return found->second;
  }

  const CudaNames& names_;
  const Ranges& ranges_;
  const CudaUse& use_;
  bool is_coarse_;         // floats of scores
  bool is_linear_ = true;  // what they are made of, up to here
};

}  // namespace

CudaText cuda_text(const Expr& expr, const CudaNames& names, const Ranges& ranges,
                   const CudaUse& use) {
  const Piece piece = CudaPrinter(names, ranges, use).emit(expr);
  return {piece.text, expr.type(), piece.is_wide, piece.helpers};
}

}  // namespace stof::expr
