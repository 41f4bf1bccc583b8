#include "fusion/modifier.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>

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

}  // namespace

Modifier::Modifier(const graph::Ir& ir, const Placement& placement)
    : ir_(ir),
      placement_(placement),
      variables_({{"predicate", nullptr},
                  {"score", nullptr},
                  {"captures", nlohmann::json::array()},
                  {"parameters", nlohmann::json::array()}}) {}

void Modifier::add(const char* field, const Expr& expression, const Captures& captures) {
  const expr::Skeleton skeleton = expr::skeleton(expr::fold(expression));
  const ExprNames& used = expr::names_used(skeleton.expr);
  Text text{.field = field, .names = {}, .ranges = ranges_of(skeleton.expr)};
  for (const auto& [name, type] : used.scalars) {
    text.names.emplace(name, name);
  }
  for (const expr::Skeleton::Argument& literal : skeleton.arguments) {
    add_literal(text, literal);
  }
  for (const auto& [name, table] : used.tables) {
    add_table(text, name, table);
  }
  for (const auto& [name, capture] : used.captures) {
    add_capture(text, name, capture, captures.at(name));
  }
  variables_[field] = expr::cuda_text(skeleton.expr, text.names, text.ranges).text;
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
  text.names.emplace(name + ".size", called + "_size");
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
  text.ranges.emplace(name + ".size", expr::Interval::integers(1, Int32::max()));
  add_argument(std::move(pointer));
  add_argument(
      {.type = "int", .name = called + "_size", .value = static_cast<std::int32_t>(table.size())});
}

void Modifier::add_capture(Text& text, const std::string& name, const Capture& capture, int value) {
  const auto view = placement_.view(value);
  if (!view) {
    throw GraphError(fmt::format("lower: '{}', which a {} reads, has no strides",
                                 ir_.values[static_cast<std::size_t>(value)]->name, text.field));
  }
  const std::string called = fmt::format("{}_capture{}", text.field, arguments_.size());
  text.names.emplace(name, "read_" + called);
  const char* type = cuda_type(capture.dtype());
  variables_["captures"].push_back(
      {{"name", "read_" + called}, {"pointer", called}, {"dtype", type}, {"rank", capture.rank()}});
  add_argument({.type = fmt::format("const {}*", type), .name = called, .capture = *view});
  for (std::size_t axis = 0; axis < view->extents.size(); ++axis) {
    add_argument({.type = "int",
                  .name = fmt::format("{}_n{}", called, axis),
                  .value = static_cast<std::int32_t>(view->extents[axis])});
  }
  for (std::size_t axis = 0; axis < view->strides.size(); ++axis) {
    add_argument({.type = "long long",
                  .name = fmt::format("{}_s{}", called, axis),
                  .value = view->strides[axis]});
  }
}

void Modifier::add_argument(ModifierArgument argument) {
  variables_["parameters"].push_back({{"type", argument.type}, {"name", argument.name}});
  arguments_.push_back(std::move(argument));
}

}  // namespace stof::fusion
