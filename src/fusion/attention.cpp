#include "fusion/attention.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/check.hpp"
#include "expr/cuda_text.hpp"
#include "expr/node.hpp"
#include "expr/skeleton.hpp"
#include "expr/table.hpp"
#include "expr/transform.hpp"
#include "fusion/cuda_type.hpp"
#include "graph/op_info.hpp"
#include "mask/longest_first.hpp"
#include "mask/rows.hpp"
#include "stof/error.hpp"

namespace stof::fusion {

namespace {

constexpr double kTilePairs = 64.0 * 64.0;
constexpr std::size_t kMaskData = 4;  // the input of attention that carries a run-time mask

template <typename T>
kernel::ConstantArray bytes_of(std::span<const T> values) {
  const auto bytes = std::as_bytes(values);
  return std::make_shared<const std::vector<std::byte>>(bytes.begin(), bytes.end());
}

template <typename T>
kernel::ConstantArray bytes_of(const std::vector<T>& values) {
  return bytes_of(std::span<const T>(values));
}

// A mask of which nothing is known before it runs: every tile has to be looked at.
mask::AttentionTiles unknown_tiles(const mask::Extent& extent, std::int64_t tile_q) {
  const auto rows = static_cast<std::int32_t>((extent.q_len + tile_q - 1) / tile_q);
  const auto columns = static_cast<std::int32_t>((extent.kv_len + mask::kTile - 1) / mask::kTile);
  mask::AttentionTiles tiles;
  tiles.tile_q = tile_q;
  tiles.row_ptr.push_back(0);
  for (std::int32_t row = 0; row < rows; ++row) {
    tiles.order.push_back(row);
    for (std::int32_t column = 0; column < columns; ++column) {
      tiles.tile_col.push_back(column);
    }
    tiles.row_ptr.push_back((row + 1) * columns);
  }
  const std::int64_t parts = std::max<std::int64_t>(tile_q / mask::kTile, 1);
  tiles.tile_bitmap.assign(tiles.tile_col.size() * static_cast<std::size_t>(parts), 0);
  return tiles;
}

// What a mask that arrives at run time hides, as a predicate over the tensor that carries it.
Expr run_time_predicate(std::string_view form, const Capture& data) {
  const Expr batch = batch_index();
  if (form == graph::name(MaskForm::KeyLengths)) {
    return key_position() < data(batch);
  }
  if (form == graph::name(MaskForm::Dense)) {
    const Expr keep = data(batch, head_index(), query_position(), key_position());
    return keep.type() == ScalarType::Bool ? keep : keep != 0;
  }
  throw GraphError(fmt::format(
      "lower: a mask that arrives as {} has no kernel yet, the GPU takes key_lengths and dense",
      form));
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

// The narrow or wide C type of integers from low to high, and all that it holds: kernels are the
// same for all data of one type.
struct IntegerType {
  const char* name;
  expr::Interval range;
};

IntegerType integer_type(std::int64_t low, std::int64_t high, std::int64_t least,
                         std::int64_t most) {
  return low >= least && high <= most
             ? IntegerType{"int", expr::Interval::integers(least, most)}
             : IntegerType{"long long", expr::Interval::all(ScalarType::Int)};
}

}  // namespace

AttentionMask::AttentionMask(const graph::Ir& ir, const graph::Operator& attention,
                             const Placement& placement) {
  const std::vector<std::int64_t>& q = placement.extents(attention.inputs[0]);
  const std::vector<std::int64_t>& k = placement.extents(attention.inputs[1]);
  extent_ = {.batch = q[0], .heads = q[1], .q_len = q[2], .kv_len = k[2]};
  mod_ = {{"predicate", nullptr},
          {"score", nullptr},
          {"captures", nlohmann::json::array()},
          {"parameters", nlohmann::json::array()}};
  read_mask(ir, attention);
  if (predicate_) {
    add_expression("predicate", *predicate_, ir, attention, placement);
  }
  if (const auto* score = graph::find_attribute<Expr>(attention, "score")) {
    add_expression("score", *score, ir, attention, placement);
  }
}

void AttentionMask::read_mask(const graph::Ir& ir, const graph::Operator& op) {
  const auto* given = graph::find_attribute<Mask>(op, "mask");
  const Mask fixed = given == nullptr ? Mask() : *given;
  const auto* form = graph::find_attribute<std::string>(op, "mask_form");
  if (form == nullptr && !fixed.has_captures()) {
    layout_ = std::make_unique<const mask::MaskLayout>(mask::build_layout(fixed, extent_));
    const mask::MaskFeatures features = mask::measure(fixed, *layout_);
    class_ = features.mask_class;
    const auto active = static_cast<double>(features.full_tiles + features.part_tiles);
    density_ = features.density;
    longest_tile_row_ = features.longest_tile_row;
    keys_per_tile_ = features.density * static_cast<double>(features.tiles) * kTilePairs / active;
    if (class_ == mask::MaskClass::InlinePredicate) {
      predicate_ = std::make_unique<const Expr>(std::get<Expr>(fixed.node().form));
    }
    return;
  }
  class_ = mask::MaskClass::InlinePredicate;
  keys_per_tile_ = kTilePairs;
  longest_tile_row_ = (extent_.kv_len + mask::kTile - 1) / mask::kTile;
  if (!fixed.is_expression()) {
    throw GraphError(
        "lower: a mask that holds data has no kernel yet where another arrives at run time");
  }
  Expr predicate = std::get<Expr>(fixed.node().form);
  if (form != nullptr) {
    const graph::Value& data = *ir.values[static_cast<std::size_t>(op.inputs.at(kMaskData))];
    predicate =
        predicate && run_time_predicate(*form, Capture("mask.data", data.dtype, data.shape.rank()));
  }
  predicate_ = std::make_unique<const Expr>(predicate);
}

void AttentionMask::add_expression(const char* field, const Expr& expression, const graph::Ir& ir,
                                   const graph::Operator& op, const Placement& placement) {
  const expr::Skeleton skeleton = expr::skeleton(expr::fold(expression));
  expr::Ranges ranges = ranges_of(skeleton.expr);
  const ExprNames& used = expr::names_used(skeleton.expr);
  expr::CudaNames names;
  for (const auto& [name, type] : used.scalars) {
    names.emplace(name, name);
  }
  const auto add = [&](ModArgument argument) {
    mod_["parameters"].push_back({{"type", argument.type}, {"name", argument.name}});
    arguments_.push_back(std::move(argument));
  };
  for (const expr::Skeleton::Argument& argument : skeleton.arguments) {
    const std::string name = fmt::format("{}_{}", field, argument.name);
    names.insert_or_assign(argument.name, name);
    if (const auto* real = std::get_if<double>(&argument.value)) {
      ranges.erase(argument.name);
      add({.type = "float", .name = name, .value = static_cast<float>(*real)});
      continue;
    }
    const std::int64_t value = std::get<std::int64_t>(argument.value);
    constexpr std::int64_t kMost = std::int64_t{1} << 30;
    const IntegerType type = integer_type(value, value, -kMost, kMost);
    ranges.insert_or_assign(argument.name, type.range);
    const bool is_wide = type.range == expr::Interval::all(ScalarType::Int);
    add({.type = type.name,
         .name = name,
         .value = is_wide ? kernel::LaunchArgument(value)
                          : kernel::LaunchArgument(static_cast<std::int32_t>(value))});
  }
  for (const auto& [name, table] : used.tables) {
    const std::string called = fmt::format("{}_table{}", field, arguments_.size());
    names.emplace(name, called);
    names.emplace(name + ".size", called + "_size");
    const expr::TableData& data = table.data();
    ModArgument pointer{.type = "const float*", .name = called};
    if (data.type == ScalarType::Float) {
      std::vector<float> entries;
      entries.reserve(data.entries.size());
      for (const std::int64_t word : data.entries) {
        entries.push_back(static_cast<float>(expr::float_of(word)));
      }
      pointer.table = bytes_of(entries);
    } else {
      const IntegerType type =
          integer_type(data.low, data.high, std::numeric_limits<std::int32_t>::min(),
                       std::numeric_limits<std::int32_t>::max());
      pointer.type = fmt::format("const {}*", type.name);
      ranges.emplace(name, type.range);
      pointer.table =
          type.name == std::string_view("int")
              ? bytes_of(std::vector<std::int32_t>(data.entries.begin(), data.entries.end()))
              : bytes_of(data.entries);
    }
    ranges.emplace(name + ".size",
                   expr::Interval::integers(1, std::numeric_limits<std::int32_t>::max()));
    add(std::move(pointer));
    add({.type = "int",
         .name = called + "_size",
         .value = static_cast<std::int32_t>(table.size())});
  }
  for (const auto& [name, capture] : used.captures) {
    const int value = name == "mask.data" ? op.inputs.at(kMaskData) : op.captures.at(name);
    const auto view = placement.view(value);
    if (!view) {
      throw GraphError(fmt::format("lower: '{}', which a {} reads, has no strides",
                                   ir.values[static_cast<std::size_t>(value)]->name, field));
    }
    const std::string called = fmt::format("{}_capture{}", field, arguments_.size());
    names.emplace(name, "read_" + called);
    const char* type = cuda_type(capture.dtype());
    mod_["captures"].push_back({{"name", "read_" + called},
                                {"pointer", called},
                                {"dtype", type},
                                {"rank", capture.rank()}});
    add({.type = fmt::format("const {}*", type), .name = called, .capture = *view});
    for (int axis = 0; axis < capture.rank(); ++axis) {
      add({.type = "int",
           .name = fmt::format("{}_n{}", called, axis),
           .value = static_cast<std::int32_t>(view->extents[static_cast<std::size_t>(axis)])});
    }
    for (int axis = 0; axis < capture.rank(); ++axis) {
      add({.type = "long long",
           .name = fmt::format("{}_s{}", called, axis),
           .value = view->strides[static_cast<std::size_t>(axis)]});
    }
  }
  mod_[field] = expr::cuda_text(skeleton.expr, names, ranges).text;
}

const mask::AttentionTiles& AttentionMask::tiles(std::int64_t tile_q) {
  const auto found = tiles_.find(tile_q);
  if (found != tiles_.end()) {
    return found->second;
  }
  return tiles_
      .emplace(tile_q,
               layout_ ? mask::attention_tiles(*layout_, tile_q) : unknown_tiles(extent_, tile_q))
      .first->second;
}

kernel::ConstantArray AttentionMask::array(const std::string& name, std::int64_t tile_q) {
  const std::string key = fmt::format("{}:{}", name, tile_q);
  if (const auto found = arrays_.find(key); found != arrays_.end()) {
    return found->second;
  }
  kernel::ConstantArray array;
  if (name == "order") {
    array = bytes_of(tiles(tile_q).order);
  } else if (name == "row_ptr") {
    array = bytes_of(tiles(tile_q).row_ptr);
  } else if (name == "tile_col") {
    array = bytes_of(tiles(tile_q).tile_col);
  } else if (name == "tile_bitmap") {
    array = bytes_of(tiles(tile_q).tile_bitmap);
  } else if (name == "bitmaps") {
    if (class_ == mask::MaskClass::Bitmap) {
      array = bytes_of(mask::lane_ordered_bitmaps(*layout_));
    }
  } else if (name == "row_first" || name == "row_end") {
    if (class_ == mask::MaskClass::IntervalRows) {
      const auto rows = mask::interval_rows(*layout_);
      STOF_CHECK(rows.has_value()) << "a mask of class interval_rows has no intervals";
      array = bytes_of(name == "row_first" ? rows->first : rows->end);
    }
  } else {
    const mask::KeyRows rows = mask::key_rows(*layout_);
    arrays_.emplace(fmt::format("key_row_ptr:{}", tile_q), bytes_of(rows.row_ptr));
    arrays_.emplace(fmt::format("key_col:{}", tile_q), bytes_of(rows.col_idx));
    arrays_.emplace(fmt::format("row_order:{}", tile_q),
                    bytes_of(mask::longest_first(rows.row_ptr)));
    return arrays_.at(key);
  }
  return arrays_.emplace(key, std::move(array)).first->second;
}

}  // namespace stof::fusion
