#include "mask_layout/upload.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>

#include "base/check.hpp"
#include "cuda/check.hpp"
#include "expr/node.hpp"
#include "expr/table.hpp"
#include "mask_layout/lower_program.hpp"
#include "stof/error.hpp"

namespace stof::mask_layout {

namespace {

// How many parts wait on the stack while the mask is evaluated, where the operand that needs most
// goes first.
int stack_needed(const Mask& mask) {
  const auto* combination = std::get_if<mask::Combination>(&mask.node().form);
  if (combination == nullptr) {
    return 1;
  }
  const int first = stack_needed(combination->operands.front());
  const int last = stack_needed(combination->operands.back());
  const bool is_one = combination->operands.size() == 1;
  return is_one || first != last ? std::max(first, last) : first + 1;
}

constexpr int kDrawDepth = 3;  // of operations that are parts, so that a draw is one

// Nothing where the operation is no part of its own.
std::optional<PartKind> kind_of(expr::Op op) {
  switch (op) {
    case expr::Op::And:
      return PartKind::And;
    case expr::Op::Or:
      return PartKind::Or;
    case expr::Op::Not:
      return PartKind::Not;
    default:
      return std::nullopt;
  }
}

bool draws(const Expr& predicate, int depth) {
  const expr::Node& node = predicate.node();
  const auto operand_draws = [&](const Expr& operand) { return draws(operand, depth - 1); };
  return node.op == expr::Op::Keep || (depth > 0 && kind_of(node.op).has_value() &&
                                       std::ranges::any_of(node.operands, operand_draws));
}

PartKind kind_of(mask::Operation operation) {
  switch (operation) {
    case mask::Operation::And:
      return PartKind::And;
    case mask::Operation::Or:
      return PartKind::Or;
    case mask::Operation::Not:
      break;
  }
  return PartKind::Not;
}

void check_capture(const Capture& capture, const TensorView& view) {
  if (view.dtype != capture.dtype() || std::ssize(view.shape) != capture.rank()) {
    throw GraphError(fmt::format("mask: {} is {} of rank {}, not {} of rank {}", capture.name(),
                                 name(view.dtype), view.shape.size(), name(capture.dtype()),
                                 capture.rank()));
  }
  if (view.element_count() == 0) {
    throw GraphError(fmt::format("mask: {} is empty", capture.name()));
  }
}

std::array<std::int64_t, 4> packed_strides(const std::vector<std::int64_t>& shape) {
  std::array<std::int64_t, 4> strides{};
  std::int64_t stride = 1;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    strides[axis] = stride;
    stride *= shape[axis];
  }
  return strides;
}

}  // namespace

std::byte* Uploader::allocate(std::size_t size_bytes) {
  return memory_.emplace_back(std::max<std::size_t>(size_bytes, 1)).data();
}

template <typename T>
const T* Uploader::copy(std::span<const T> values) {
  std::byte* memory = allocate(values.size_bytes());
  STOF_CUDA(cudaMemcpy(memory, values.data(), values.size_bytes(), cudaMemcpyHostToDevice));
  return reinterpret_cast<const T*>(memory);
}

void Uploader::add(const Mask& mask) {
  STOF_CHECK(stack_needed(mask) < kMaxStack) << "a stack of " << stack_needed(mask);
  const auto* combination = std::get_if<mask::Combination>(&mask.node().form);
  const auto* predicate = std::get_if<Expr>(&mask.node().form);
  if (parts_.empty() && predicate != nullptr) {
    add(*predicate, kDrawDepth);
    return;
  }
  if (combination == nullptr) {
    const auto found = leaves_.find(&mask.node());
    const Part part = found != leaves_.end() ? found->second : leaf(mask.node());
    leaves_[&mask.node()] = part;
    parts_.push_back(part);
    return;
  }
  std::vector<Mask> operands = combination->operands;
  std::ranges::stable_sort(operands, std::ranges::greater{}, stack_needed);
  for (const Mask& operand : operands) {
    add(operand);
  }
  parts_.push_back({.kind = kind_of(combination->operation)});
}

void Uploader::add(const Expr& predicate, int depth) {
  const std::optional<PartKind> kind = kind_of(predicate.node().op);
  if (depth == 0 || !kind.has_value() || !draws(predicate, depth)) {
    parts_.push_back(expression(predicate));
    return;
  }
  for (const Expr& operand : predicate.node().operands) {
    add(operand, depth - 1);
  }
  parts_.push_back({.kind = *kind});
}

Part Uploader::leaf(const mask::Node& node) {
  const auto bits = [&](PartKind kind, const mask::BitTensor& keep) {
    return Part{.kind = kind,
                .data = copy(std::span(keep.words)),
                .batch = keep.batch,
                .heads = keep.heads,
                .rows = keep.rows,
                .columns = keep.columns};
  };
  if (const auto* dense = std::get_if<mask::DenseData>(&node.form)) {
    return bits(PartKind::Bits, dense->keep);
  }
  if (const auto* blocks = std::get_if<mask::BlockData>(&node.form)) {
    Part part = bits(PartKind::Blocks, blocks->keep);
    part.block_size = blocks->block_size;
    return part;
  }
  if (const auto* csr = std::get_if<mask::CsrData>(&node.form)) {
    return {.kind = PartKind::Csr,
            .data = copy(std::span(csr->col_idx)),
            .row_ptr = copy(std::span(csr->row_ptr))};
  }
  return expression(std::get<Expr>(node.form));
}

Part Uploader::expression(const Expr& predicate) {
  const expr::Program program = expr::compile(predicate);
  const PoolOffsets offsets = {.tables = std::ssize(tables_),
                               .captures = std::ssize(capture_views_),
                               .row_slots = row_slots_};
  for (const Table& each : program.tables) {
    tables_.push_back(table(each));
  }
  for (const Capture& each : program.captures) {
    capture_views_.push_back(capture(each));
  }
  if (capture_views_.size() > kMaxCaptures) {
    throw GraphError(fmt::format("mask: expressions read {} captures, more than the limit of {}",
                                 capture_views_.size(), kMaxCaptures));
  }
  const LoweredProgram lowered = lower_program(program, offsets);
  Part part{.kind = PartKind::Expression};
  part.first_step = static_cast<std::int32_t>(steps_.size());
  steps_.insert(steps_.end(), lowered.row_steps.begin(), lowered.row_steps.end());
  part.first_key_step = static_cast<std::int32_t>(steps_.size());
  steps_.insert(steps_.end(), lowered.key_steps.begin(), lowered.key_steps.end());
  part.end_step = static_cast<std::int32_t>(steps_.size());
  slots_ = std::max(slots_, lowered.slots);
  row_slots_ += lowered.row_slots;
  goes_by_rows_ = goes_by_rows_ && lowered.goes_by_rows;
  return part;
}

TableView Uploader::table(const Table& table) {
  const expr::TableData& data = table.data();
  const auto [known, is_new] = known_tables_.try_emplace(&data);
  if (is_new) {
    known->second = {.entries = copy(std::span(data.entries)),
                     .block_low = copy(std::span(data.block_low)),
                     .block_high = copy(std::span(data.block_high)),
                     .size = table.size(),
                     .low = data.low,
                     .high = data.high,
                     .is_float = data.type == ScalarType::Float};
  }
  return known->second;
}

CaptureView Uploader::capture(const Capture& capture) {
  const auto found = captures_.find(capture.name());
  if (found == captures_.end()) {
    throw GraphError(fmt::format(
        "mask: {} is known at run time only; what depends on its values cannot be built here",
        capture.name()));
  }
  const TensorView& tensor = found->second;
  check_capture(capture, tensor);
  CaptureView view{.data = tensor.data, .rank = capture.rank(), .dtype = capture.dtype()};
  std::ranges::copy(tensor.shape, view.shape);
  std::ranges::copy(packed_strides(tensor.shape), view.strides);
  if (tensor.location == Location::Host) {
    const HostTensor packed(tensor);
    view.data = copy(packed.bytes());
    return view;
  }
  if (!tensor.strides.empty()) {
    std::ranges::copy(tensor.strides, view.strides);
  }
  device_captures_[capture.name()].push_back(capture_views_.size());
  return view;
}

// The only part that is one step for the keys of a row, a draw by the key.
std::int32_t Uploader::drawn_part() const {
  const auto is_draw = [&](const Part& part) {
    const bool is_one_step = part.end_step == part.first_key_step + 1;
    if (part.kind != PartKind::Expression || !is_one_step) {
      return false;
    }
    const Step& step = steps_[static_cast<std::size_t>(part.first_key_step)];
    const bool by_key = (step.operands[0] == kKeyOperand) != (step.operands[1] == kKeyOperand);
    return step.op == static_cast<std::uint8_t>(expr::Op::Keep) && by_key;
  };
  const auto found = std::ranges::find_if(parts_, is_draw);
  const bool is_only = std::ranges::count_if(parts_, is_draw) == 1;
  return is_only ? static_cast<std::int32_t>(found - parts_.begin()) : -1;
}

MaskView Uploader::finish() {
  MaskView view = {.parts = copy(std::span<const Part>(parts_)),
                   .steps = copy(std::span<const Step>(steps_)),
                   .tables = copy(std::span<const TableView>(tables_)),
                   .part_count = static_cast<std::int32_t>(parts_.size()),
                   .step_count = static_cast<std::int32_t>(steps_.size()),
                   .slots = slots_,
                   .row_slots = row_slots_,
                   .drawn_part = drawn_part(),
                   .goes_by_rows = goes_by_rows_};
  if (view.drawn_part >= 0) {
    const Part& part = parts_[static_cast<std::size_t>(view.drawn_part)];
    const Step& step = steps_[static_cast<std::size_t>(part.first_key_step)];
    view.drawn_limit = static_cast<std::uint32_t>(step.word);
  }
  std::ranges::copy(capture_views_, view.captures);
  // A copy from pageable memory may still be under way when the call returns, and other streams do
  // not wait for it.
  STOF_CUDA(cudaStreamSynchronize(nullptr));
  return view;
}

}  // namespace stof::mask_layout
