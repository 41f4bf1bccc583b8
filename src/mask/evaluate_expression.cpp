#include "mask/evaluate_expression.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "base/check.hpp"
#include "expr/program.hpp"
#include "expr/semantics.hpp"
#include "mask/bits.hpp"
#include "mask/node.hpp"
#include "stof/error.hpp"

namespace stof::mask {

namespace {

// A captured tensor as words of programs, row-major.
struct CaptureWords {
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> words;

  // An index that is out of range moves to the nearest end.
  std::int64_t at(std::span<const std::int64_t> indices) const {
    std::int64_t position = 0;
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      position =
          position * shape[axis] + std::clamp<std::int64_t>(indices[axis], 0, shape[axis] - 1);
    }
    return words[position];
  }
};

std::int64_t word_at(const HostTensor& tensor, std::int64_t position) {
  if (tensor.dtype() == DType::Int64) {  // a double does not hold all of them
    std::int64_t word = 0;
    std::memcpy(&word, tensor.bytes().data() + position * sizeof(word), sizeof(word));
    return word;
  }
  const double value = tensor.at(position);
  return is_floating(tensor.dtype()) ? expr::word_of(value) : static_cast<std::int64_t>(value);
}

CaptureWords capture_words(const Capture& capture, const CaptureValues& values) {
  const auto found = values.find(capture.name());
  if (found == values.end()) {
    throw GraphError(fmt::format(
        "mask: {} is known at run time only; what depends on its values cannot be built here",
        capture.name()));
  }
  const TensorView& view = found->second;
  if (view.dtype != capture.dtype() || std::ssize(view.shape) != capture.rank()) {
    throw GraphError(fmt::format("mask: {} is {} of rank {}, not {} of rank {}", capture.name(),
                                 name(view.dtype), view.shape.size(), name(capture.dtype()),
                                 capture.rank()));
  }
  const HostTensor tensor(view);
  CaptureWords words{.shape = tensor.shape(), .words = {}};
  if (tensor.element_count() == 0) {
    throw GraphError(fmt::format("mask: {} is empty", capture.name()));
  }
  words.words.resize(tensor.element_count());
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) {
    words.words[i] = word_at(tensor, i);
  }
  return words;
}

expr::CaptureReader reader_of(const expr::Program& program, const CaptureValues& values) {
  if (program.captures.empty()) {
    return {};
  }
  std::vector<CaptureWords> captures;
  for (const Capture& capture : program.captures) {
    captures.push_back(capture_words(capture, values));
  }
  // Shared, since the evaluators of all threads read it.
  return [shared = std::make_shared<const std::vector<CaptureWords>>(std::move(captures))](
             int capture, std::span<const std::int64_t> indices) {
    return (*shared)[capture].at(indices);
  };
}

expr::Interpreter interpreter_of(const Expr& predicate, const CaptureValues& captures) {
  expr::Program program = expr::compile(predicate);
  expr::CaptureReader reader = reader_of(program, captures);
  return expr::Interpreter(std::move(program), std::move(reader));
}

template <typename T>
void assign(std::vector<T>& values, std::optional<int> slot, const T& value) {
  if (slot) {
    values[*slot] = value;
  }
}

}  // namespace

ExpressionEvaluator::ExpressionEvaluator(const Expr& predicate, const Extent& extent,
                                         const CaptureValues& captures)
    : interpreter_(interpreter_of(predicate, captures)),
      kv_len_(extent.kv_len),
      scalars_(interpreter_.program().scalars.size()),
      ranges_(scalars_.size()) {
  const expr::Program& program = interpreter_.program();
  slots_ = {.batch = program.scalar("batch"),
            .head = program.scalar("head"),
            .query = program.scalar("q_pos"),
            .key = program.scalar("k_pos")};
  for (const auto& [name, length] :
       {std::pair("q_len", extent.q_len), std::pair("kv_len", extent.kv_len)}) {
    assign(scalars_, program.scalar(name), length);
    assign(ranges_, program.scalar(name), expr::Interval::integers(length, length));
  }
}

void ExpressionEvaluator::row(const RowPosition& row, std::int64_t k_begin,
                              std::span<std::uint64_t> words) {
  assign(scalars_, slots_.batch, row.batch);
  assign(scalars_, slots_.head, row.head);
  assign(scalars_, slots_.query, row.query);
  std::int64_t key = k_begin;
  for (std::uint64_t& word : words) {
    const std::int64_t count = std::min(kWordBits, kv_len_ - key);
    if (count <= 0) {
      return;
    }
    assign(scalars_, slots_.key, key);
    word = interpreter_.run_bits(scalars_, slots_.key, static_cast<int>(count));
    key += kWordBits;
  }
}

Truth ExpressionEvaluator::over(const Region& region) {
  using expr::Interval;
  assign(ranges_, slots_.batch, Interval::integers(region.batch, region.batch));
  assign(ranges_, slots_.head, Interval::integers(region.head, region.head));
  assign(ranges_, slots_.query, Interval::integers(region.q_begin, region.q_end - 1));
  assign(ranges_, slots_.key, Interval::integers(region.k_begin, region.k_end - 1));
  const Interval truth = expr::bounds(interpreter_.program(), ranges_);
  if (truth.is_true()) {
    return Truth::Always;
  }
  return truth.is_false() ? Truth::Never : Truth::Unknown;
}

}  // namespace stof::mask
