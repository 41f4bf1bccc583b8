#include "graph/masking.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "expr/node.hpp"
#include "mask/evaluate.hpp"
#include "mask/extent.hpp"
#include "mask/node.hpp"

namespace stof::graph {

namespace {

bool is_static(const ScoreExtent& extent) {
  return extent.batch.is_static() && extent.heads.is_static() && extent.q_len.is_static() &&
         extent.kv_len.is_static();
}

bool has_no_key(const mask::BitTensor& keep) {
  return std::ranges::all_of(keep.words, [](std::uint64_t word) { return word == 0; });
}

// Whether no query sees any key, as far as bounds over all pairs at once, or the data, tell.
bool is_never_true(const stof::Mask& mask, const mask::Extent& extent) {
  const auto& form = mask.node().form;
  if (const auto* dense = std::get_if<mask::DenseData>(&form)) {
    return has_no_key(dense->keep);
  }
  if (const auto* blocks = std::get_if<mask::BlockData>(&form)) {
    return has_no_key(blocks->keep);
  }
  if (const auto* csr = std::get_if<mask::CsrData>(&form)) {
    return csr->col_idx.empty();
  }
  if (mask.has_captures() || mask.uses_batch() || mask.uses_head()) {
    return false;
  }
  return mask::Evaluator(mask, extent).over({.q_end = extent.q_len, .k_end = extent.kv_len}) ==
         mask::Truth::Never;
}

mask::Extent sizes_of(const ScoreExtent& extent) {
  return {.batch = extent.batch.value(),
          .heads = extent.heads.value(),
          .q_len = extent.q_len.value(),
          .kv_len = extent.kv_len.value()};
}

// Without a query or a key there is nothing to hide.
bool is_empty(const mask::Extent& sizes) {
  return sizes.batch == 0 || sizes.heads == 0 || sizes.q_len == 0 || sizes.kv_len == 0;
}

// Calls check, and fails with its words.
template <typename Check>
void run_check(const Inference& inference, const Check& check) {
  try {
    check();
  } catch (const GraphError& error) {
    inference.fail("{}", error.what());
  }
}

void check_extents_of(const Inference& inference, std::string_view what, const stof::Mask& mask,
                      const ScoreExtent& extent) {
  if (is_static(extent)) {
    const mask::Extent sizes = sizes_of(extent);
    if (is_empty(sizes)) {
      return;
    }
    run_check(inference, [&] { mask::check_extent(mask, sizes, what); });
    if (what == "mask" && is_never_true(mask, sizes)) {
      inference.fail("the mask {} shows no key to any query for q_len {} and kv_len {}",
                     mask.text(), sizes.q_len, sizes.kv_len);
    }
    return;
  }
  const auto lengths = mask.lengths();
  if (lengths && !(extent.q_len == Dim(lengths->first) && extent.kv_len == Dim(lengths->second))) {
    inference.fail("{} {} is for q_len {} and kv_len {}, which are {} and {}", what, mask.text(),
                   lengths->first, lengths->second, extent.q_len.text(), extent.kv_len.text());
  }
}

void take_shape(const Inference& inference, int position, const Shape& shape) {
  if (!(inference.shape(position) == shape)) {
    const Value& value = inference.in(position);
    const std::string name =
        value.role == ValueRole::Input ? fmt::format(" '{}'", value.name) : std::string();
    inference.fail("{}{} {} is not {}", inference.label(position), name, value.shape.text(),
                   shape.text());
  }
}

void take_lengths(const Inference& inference, int position, const ScoreExtent& extent) {
  inference.take_dtype(position, DType::Int32);
  take_shape(inference, position, Shape{extent.batch});
}

void check_dense(const Inference& inference, int position, const ScoreExtent& extent) {
  inference.take_dtype(position, DType::Bool);
  inference.take_axes(position, 4, "[batch or 1, heads or 1, q_len, kv_len]");
  const Shape& shape = inference.shape(position);
  const Shape wanted{shape[0] == Dim(1) ? Dim(1) : extent.batch,
                     shape[1] == Dim(1) ? Dim(1) : extent.heads, extent.q_len, extent.kv_len};
  take_shape(inference, position, wanted);
}

void check_csr(const Inference& inference, int row_ptr, const ScoreExtent& extent) {
  inference.take_dtype(row_ptr, DType::Int32);
  take_shape(inference, row_ptr, Shape{extent.q_len + 1});
  inference.take_dtype(row_ptr + 1, DType::Int32);
  inference.take_rank(row_ptr + 1, 1);
}

void check_documents(const Inference& inference, int position) {
  inference.take_dtype(position, DType::Int32);
  inference.take_rank(position, 1);
  if (inference.shape(position)[0].min() < 2) {
    inference.fail("{} may hold fewer than 2 offsets", inference.text(position));
  }
}

void check_mask_form(const Inference& inference, int data, const ScoreExtent& extent) {
  const auto* form_name = find_attribute<std::string>(inference.op(), "mask_form");
  const auto* max_part_tiles = find_attribute<std::int64_t>(inference.op(), "max_part_tiles");
  const int count = inference.has(data + 1) ? 2 : inference.has(data) ? 1 : 0;
  if (form_name == nullptr) {
    if (count > 0 || max_part_tiles != nullptr ||
        find_attribute<stof::Mask>(inference.op(), "like") != nullptr) {
      inference.fail("attribute mask_form is missing");
    }
    return;
  }
  const std::optional<MaskForm> form = mask_form_from_name(*form_name);
  if (!form) {
    inference.fail("mask_form \"{}\" is none of key_lengths, cu_seqlens, dense and csr",
                   form_name->substr(0, 40));
  }
  const int wanted = *form == MaskForm::Csr ? 2 : 1;
  if (count != wanted || !inference.has(data)) {
    inference.fail("mask_form {} takes {} tensors, it has {}", *form_name, wanted, count);
  }
  if (max_part_tiles != nullptr && *max_part_tiles < 0) {
    inference.fail("max_part_tiles {} is negative", *max_part_tiles);
  }
  switch (*form) {
    case MaskForm::KeyLengths:
      return take_lengths(inference, data, extent);
    case MaskForm::CuSeqlens:
      return check_documents(inference, data);
    case MaskForm::Dense:
      return check_dense(inference, data, extent);
    case MaskForm::Csr:
      return check_csr(inference, data, extent);
  }
}

void add_expressions(std::vector<Expr>& found, const stof::Mask& mask) {
  const auto& form = mask.node().form;
  if (const auto* expression = std::get_if<stof::Expr>(&form)) {
    found.push_back(*expression);
  } else if (const auto* combination = std::get_if<mask::Combination>(&form)) {
    for (const stof::Mask& operand : combination->operands) {
      add_expressions(found, operand);
    }
  }
}

// Masks have been checked when they were made.
void check_scalars(const Inference& inference, const Expr& score) {
  static const ExprNames known = score_names();
  for (const auto& [scalar, type] : expr::names_used(score).scalars) {
    const auto found = known.scalars.find(scalar);
    if (found == known.scalars.end()) {
      std::vector<std::string_view> names;
      for (const auto& [name, known_type] : known.scalars) {
        names.push_back(name);
      }
      inference.fail("the score reads {}, it knows {}", scalar, fmt::join(names, ", "));
    }
    if (type != found->second) {
      inference.fail("the score reads {} as {}, it is {}", scalar, expr::name_of(type),
                     expr::name_of(found->second));
    }
  }
}

void check_bound(const Inference& inference, std::string_view what, const Expr& expression,
                 std::set<std::string>& seen) {
  for (const auto& [capture_name, capture] : expr::names_used(expression).captures) {
    const auto found = inference.op().captures.find(capture_name);
    if (found == inference.op().captures.end()) {
      inference.fail("the {} captures {}, which is bound to no tensor", what, capture_name);
    }
    const Value& value = inference.value(found->second);
    if (value.dtype != capture.dtype() || value.shape.rank() != capture.rank()) {
      inference.fail("the {} captures {} as {} of rank {}, it is {} {}", what, capture_name,
                     stof::name(capture.dtype()), capture.rank(), stof::name(value.dtype),
                     value.shape.text());
    }
    seen.insert(capture_name);
  }
}

// A capture that is indexed by batch, head, q_pos or k_pos alone has an entry for each.
void check_capture_extents(const Inference& inference, std::string_view what,
                           const Expr& expression, const mask::Extent& sizes) {
  const expr::Node& node = expression.node();
  for (std::size_t axis = 0; axis < node.operands.size(); ++axis) {
    check_capture_extents(inference, what, node.operands[axis], sizes);
    const auto range = mask::range_of(node.operands[axis], sizes);
    if (node.op != expr::Op::Capture || !range) {
      continue;
    }
    const auto found = inference.op().captures.find(node.capture().name());
    if (found == inference.op().captures.end()) {
      continue;  // check_captures says so
    }
    const Shape& shape = inference.value(found->second).shape;
    if (static_cast<int>(axis) < shape.rank() && shape[static_cast<int>(axis)].is_static() &&
        mask::is_too_short(shape[static_cast<int>(axis)].value(), *range)) {
      inference.fail("the {} reads {}, but axis {} of {} has {} entries and {} is {}", what,
                     expression.text(), axis, shape.text(), shape[static_cast<int>(axis)].text(),
                     range->name, range->size);
    }
  }
}

void check_indices(const Inference& inference, const ScoreExtent& extent) {
  if (!is_static(extent) || is_empty(sizes_of(extent))) {
    return;
  }
  const mask::Extent sizes = sizes_of(extent);
  if (const auto* mask = find_attribute<stof::Mask>(inference.op(), "mask")) {
    for (const Expr& expression : expressions(*mask)) {
      check_capture_extents(inference, "mask", expression, sizes);
    }
  }
  if (const auto* score = find_attribute<stof::Expr>(inference.op(), "score")) {
    run_check(inference, [&] { mask::check_tables(*score, sizes, "score"); });
    check_capture_extents(inference, "score", *score, sizes);
  }
}

}  // namespace

ScoreExtent score_extent(const Shape& shape) {
  return {.batch = shape[0], .heads = shape[1], .q_len = shape[2], .kv_len = shape[3]};
}

void check_masking(const Inference& inference, int first, const ScoreExtent& extent) {
  if (inference.has(first)) {
    take_lengths(inference, first, extent);
  }
  check_mask_form(inference, first + 1, extent);
  for (const std::string_view what : {"mask", "like"}) {
    if (const auto* mask = find_attribute<stof::Mask>(inference.op(), what)) {
      check_extents_of(inference, what, *mask, extent);
    }
  }
  check_indices(inference, extent);
}

void check_captures(const Inference& inference) {
  std::set<std::string> seen;
  for (const std::string_view what : {"mask", "like"}) {
    const auto* mask = find_attribute<stof::Mask>(inference.op(), what);
    if (mask != nullptr && what == "like" && mask->has_captures()) {
      inference.fail("like {} reads tensors of the graph", mask->text());
    }
    for (const Expr& expression : mask == nullptr ? std::vector<Expr>() : expressions(*mask)) {
      check_bound(inference, what, expression, seen);
    }
  }
  if (const auto* score = find_attribute<stof::Expr>(inference.op(), "score")) {
    if (score->type() != ScalarType::Float) {
      inference.fail("score {} is of type {}, it takes a float", score->text(),
                     expr::name_of(score->type()));
    }
    check_scalars(inference, *score);
    check_bound(inference, "score", *score, seen);
  }
  for (const auto& [capture_name, id] : inference.op().captures) {
    if (!seen.contains(capture_name)) {
      inference.fail("neither mask nor score reads the captured {}", capture_name);
    }
  }
}

std::vector<Expr> expressions(const stof::Mask& mask) {
  std::vector<Expr> found;
  add_expressions(found, mask);
  return found;
}

std::vector<Expr> expressions(const Operator& op) {
  std::vector<Expr> found;
  if (const auto* mask = find_attribute<stof::Mask>(op, "mask")) {
    add_expressions(found, *mask);
  }
  if (const auto* score = find_attribute<stof::Expr>(op, "score")) {
    found.push_back(*score);
  }
  return found;
}

std::set<std::string> captures_read(const Operator& op) {
  std::set<std::string> found;
  for (const Expr& expression : expressions(op)) {
    for (const auto& [capture_name, capture] : expr::names_used(expression).captures) {
      found.insert(capture_name);
    }
  }
  return found;
}

}  // namespace stof::graph
