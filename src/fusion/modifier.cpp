#include "fusion/modifier.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <limits>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "expr/node.hpp"
#include "expr/table.hpp"
#include "expr/transform.hpp"
#include "fusion/constant_array.hpp"
#include "fusion/cuda_type.hpp"
#include "stof/error.hpp"

namespace stof::fusion {

namespace {

using Int32 = std::numeric_limits<std::int32_t>;

// Tensors of which kernels keep tiles; each takes 2 KiB of shared memory for a warp.
constexpr std::int64_t kMostTiledTensors = 2;

// The narrow or wide C type of integers from low to high, and all that it holds: kernels are the
// same for all data of one type.
struct IntegerType {
  const char* name;
  bool is_wide;
  expr::Interval range;
};

IntegerType integer_type(std::int64_t low, std::int64_t high, std::int64_t least,
                         std::int64_t most) {
  return low >= least && high <= most
             ? IntegerType{"int", false, expr::Interval::integers(least, most)}
             : IntegerType{"long long", true, expr::Interval::all(ScalarType::Int)};
}

expr::Ranges ranges_of(const Expr& expression) {
  constexpr std::int64_t kMost = (std::int64_t{1} << 30) - 1;
  expr::Ranges ranges;
  for (const auto& [name, type] : expr::names_used(expression).scalars) {
    if (type == ScalarType::Int) {
      ranges.emplace(name, expr::Interval::integers(0, kMost));
    }
  }
  return ranges;
}

// What the scalars of an attention and the literals of a skeleton are.
expr::Ranges exact_ranges(const mask::Extent& extent, const expr::Skeleton& skeleton) {
  const auto below = [](std::int64_t end) { return expr::Interval::integers(0, end - 1); };
  const auto point = [](std::int64_t value) { return expr::Interval::integers(value, value); };
  expr::Ranges ranges = {{"batch", below(extent.batch)}, {"head", below(extent.heads)},
                         {"q_pos", below(extent.q_len)}, {"k_pos", below(extent.kv_len)},
                         {"q_len", point(extent.q_len)}, {"kv_len", point(extent.kv_len)}};
  for (const expr::Skeleton::Argument& literal : skeleton.arguments) {
    if (const auto* integer = std::get_if<std::int64_t>(&literal.value)) {
      ranges.insert_or_assign(literal.name, point(*integer));
    }
  }
  return ranges;
}

// What an expression reads of a captured tensor, and whether all scores of a row do or none.
struct Reads {
  std::vector<Expr> of_capture;
  bool are_of_rows = true;
};

void add_reads(const Expr& expression, const std::string& capture, bool is_row, Reads& reads) {
  const expr::Node& node = expression.node();
  if (node.op == expr::Op::Capture && node.capture().name() == capture) {
    reads.of_capture.push_back(expression);
    reads.are_of_rows &= is_row;
  }
  // Behind the first operand of these the others may not be looked at.
  const bool is_choice =
      node.op == expr::Op::Select || node.op == expr::Op::And || node.op == expr::Op::Or;
  for (const Expr& operand : node.operands) {
    const bool is_asked_for = is_row && (!is_choice || &operand == &node.operands.front() ||
                                         expr::is_of_row(node.operands.front()));
    add_reads(operand, capture, is_asked_for, reads);
  }
}

// Whether the expression reads one element of a captured tensor for each score of a row, that of
// the next key lies behind it, and where that is can be told before there are scores.
bool reads_along_keys(const Expr& expression, const std::string& capture) {
  Reads reads;
  add_reads(expression, capture, true, reads);
  const Expr& first = reads.of_capture.front();
  const std::vector<Expr>& indices = first.node().operands;
  const expr::Node& last = indices.back().node();
  return reads.are_of_rows && last.op == expr::Op::Scalar && last.name() == "k_pos" &&
         std::all_of(indices.begin(), indices.end() - 1, expr::is_of_row) &&
         std::all_of(reads.of_capture.begin(), reads.of_capture.end(),
                     [&](const Expr& read) { return expr::same(read, first); });
}

bool has_any(const Expr& expression, std::initializer_list<expr::Op> ops) {
  const expr::Node& node = expression.node();
  return std::find(ops.begin(), ops.end(), node.op) != ops.end() ||
         std::any_of(node.operands.begin(), node.operands.end(),
                     [&](const Expr& operand) { return has_any(operand, ops); });
}

// Whether what the expression reads of tables and captured tensors depends on the key, but for
// tensors of those names.
bool reads_by_key(const Expr& expression, const std::set<std::string>& besides = {}) {
  const expr::Node& node = expression.node();
  const bool reads = node.op == expr::Op::Table ||
                     (node.op == expr::Op::Capture && !besides.contains(node.capture().name()));
  return std::any_of(node.operands.begin(), node.operands.end(), [&](const Expr& operand) {
    return (reads && expr::uses(operand, "k_pos")) || reads_by_key(operand, besides);
  });
}

// Whether rows along the last axis, of at least so many elements, are chunks of 16 bytes.
bool has_chunks(const View& view, std::int64_t elements) {
  const std::int64_t chunk = kAlignmentBytes / size_bytes(view.dtype);
  const auto is_multiple = [&](std::int64_t stride) { return stride % chunk == 0; };
  const bool has_tiles = size_bytes(view.dtype) == 2 || view.dtype == DType::Bool;
  return has_tiles && view.alignment_bytes() == kAlignmentBytes && view.strides.back() == 1 &&
         view.extents.back() >= elements &&
         std::all_of(view.strides.begin(), view.strides.end() - 1, is_multiple);
}

// Elements from the first to the last of a view, at most.
std::int64_t reach(const View& view) {
  std::int64_t elements = 1;
  for (std::size_t axis = 0; axis < view.extents.size(); ++axis) {
    elements += (view.extents[axis] - 1) * std::abs(view.strides[axis]);
  }
  return elements;
}

}  // namespace

Modifier::Modifier(const graph::Ir& ir, const Placement& placement, const mask::Extent& extent)
    : ir_(ir),
      placement_(placement),
      extent_(extent),
      variables_({{"predicate", nullptr},
                  {"score", nullptr},
                  {"score_reads_by_key", false},
                  {"score_reads_bytes_alone", false},
                  {"score_has_tanh", false},
                  {"captures", nlohmann::json::array()},
                  {"parameters", nlohmann::json::array()}}) {}

std::int64_t Modifier::tile_count() const {
  const nlohmann::json& captures = variables_.at("captures");
  return std::count_if(captures.begin(), captures.end(), [](const nlohmann::json& capture) {
    return capture.at("is_tile").get<bool>();
  });
}

void Modifier::add(const char* field, const Expr& expression, const Captures& captures) {
  const expr::Skeleton skeleton = expr::skeleton(expr::fold(expression));
  const ExprNames& used = expr::names_used(skeleton.expr);
  Text text{.field = field,
            .expr = skeleton.expr,
            .names = {},
            .ranges = ranges_of(skeleton.expr),
            .use = {}};
  text.use.is_score = text.field == "score";
  if (text.use.is_score) {
    variables_["score_reads_by_key"] = reads_by_key(skeleton.expr);
    variables_["score_has_tanh"] = has_any(skeleton.expr, {expr::Op::Tanh});
    takes_registers_ =
        has_any(skeleton.expr, {expr::Op::Tanh, expr::Op::Hash, expr::Op::Draw, expr::Op::Keep});
    text.use.tanh = "reads.tanh";
    text.use.inside = exact_ranges(extent_, skeleton);
  }
  for (const auto& [name, type] : used.scalars) {
    text.names.emplace(name, name);
  }
  for (const expr::Skeleton::Argument& literal : skeleton.arguments) {
    add_literal(text, literal);
  }
  for (const auto& [name, table] : used.tables) {
    add_table(text, name, table);
  }
  std::set<std::string> bytes;
  for (const auto& [name, capture] : used.captures) {
    add_capture(text, name, capture, captures.at(name));
    if (capture.dtype() == DType::Bool && variables_["captures"].back().at("is_tile")) {
      bytes.insert(name);
    }
  }
  if (text.use.is_score) {
    variables_["score_reads_bytes_alone"] = !bytes.empty() && !reads_by_key(skeleton.expr, bytes);
  }
  variables_[field] = expr::cuda_text(text.expr, text.names, text.ranges, text.use).text;
}

void Modifier::add_literal(Text& text, const expr::Skeleton::Argument& literal) {
  const std::string called = fmt::format("{}_{}", text.field, literal.name);
  text.names.insert_or_assign(literal.name, called);
  if (const auto* real = std::get_if<double>(&literal.value)) {
    text.ranges.erase(literal.name);
    add_argument({.type = "float", .name = called, .value = static_cast<float>(*real)});
    return;
  }
  constexpr std::int64_t kMost = std::int64_t{1} << 30;
  const std::int64_t value = std::get<std::int64_t>(literal.value);
  const IntegerType type = integer_type(value, value, -kMost, kMost);
  text.ranges.insert_or_assign(literal.name, type.range);
  add_argument({.type = type.name,
                .name = called,
                .value = type.is_wide ? kernel::LaunchArgument(value)
                                      : kernel::LaunchArgument(static_cast<std::int32_t>(value))});
}

void Modifier::add_table(Text& text, const std::string& name, const Table& table) {
  const std::string called = fmt::format("{}_table{}", text.field, arguments_.size());
  text.names.emplace(name, called);
  const expr::TableData& data = table.data();
  ModifierArgument pointer{.type = "const float*", .name = called};
  if (data.type == ScalarType::Float) {
    std::vector<float> entries;
    entries.reserve(data.entries.size());
    for (const std::int64_t word : data.entries) {
      entries.push_back(static_cast<float>(expr::float_of(word)));
    }
    pointer.table = constant_array(entries);
  } else {
    const IntegerType type = integer_type(data.low, data.high, Int32::min(), Int32::max());
    pointer.type = fmt::format("const {}*", type.name);
    text.ranges.emplace(name, type.range);
    pointer.table =
        type.is_wide
            ? constant_array(data.entries)
            : constant_array(std::vector<std::int32_t>(data.entries.begin(), data.entries.end()));
  }
  add_argument(std::move(pointer));
  add_size(text, name + ".size", called + "_size", table.size());
}

void Modifier::add_capture(Text& text, const std::string& name, const Capture& capture, int value) {
  const auto view = placement_.view(value);
  if (!view) {
    throw GraphError(fmt::format("lower: '{}', which a {} reads, has no strides",
                                 ir_.values[static_cast<std::size_t>(value)]->name, text.field));
  }
  const std::string called = fmt::format("{}_capture{}", text.field, arguments_.size());
  const std::string reader = "read_" + called;
  text.names.emplace(name, text.use.is_score ? "reads." + reader : reader);
  const char* type = cuda_type(capture.dtype());
  const bool is_wide = reach(*view) > Int32::max();
  variables_["captures"].push_back(
      {{"name", reader},
       {"pointer", called},
       {"dtype", type},
       {"rank", capture.rank()},
       {"is_wide", is_wide},
       {"has_unit_stride", view->strides.back() == 1},
       {"is_tile", text.use.is_score && tile_count() < kMostTiledTensors &&
                       has_chunks(*view, extent_.kv_len) && reads_along_keys(text.expr, name)}});
  add_argument({.type = fmt::format("const {}*", type), .name = called, .capture = *view});
  for (std::size_t axis = 0; axis < view->extents.size(); ++axis) {
    add_size(text, fmt::format("{}.size{}", name, axis), fmt::format("{}_n{}", called, axis),
             view->extents[axis]);
  }
  for (std::size_t axis = 0; axis < view->strides.size(); ++axis) {
    add_argument({.type = "long long",
                  .name = fmt::format("{}_s{}", called, axis),
                  .value = view->strides[axis]});
  }
}

void Modifier::add_size(Text& text, const std::string& name, const std::string& called,
                        std::int64_t size) {
  text.names.emplace(name, called);
  text.ranges.emplace(name, expr::Interval::integers(1, Int32::max()));
  text.use.inside.emplace(name, expr::Interval::integers(size, size));
  add_argument({.type = "int", .name = called, .value = static_cast<std::int32_t>(size)});
}

void Modifier::add_argument(ModifierArgument argument) {
  variables_["parameters"].push_back({{"type", argument.type}, {"name", argument.name}});
  arguments_.push_back(std::move(argument));
}

}  // namespace stof::fusion
