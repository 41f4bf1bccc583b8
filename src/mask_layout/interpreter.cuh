// Runs a program at the eight neighbouring keys of each thread, as expr::Interpreter does on the
// host.
#pragma once

#include <algorithm>

#include "expr/operation.hpp"
#include "expr/semantics.hpp"
#include "mask_layout/views.hpp"
#include "mask_layout/words.cuh"

namespace stof::mask_layout {

constexpr int kLanes = 8;

// Where a thread is; its keys are `key` to `key` + 7.
struct Point {
  std::int64_t batch;
  std::int64_t head;
  std::int64_t query;
  std::int64_t key;
};

// Slots in shared memory: the word of a lane of a slot lies beside that of the next thread.
class Interpreter {
 public:
  __device__ Interpreter(const MaskView& mask, const Grid& grid, Word* slots)
      : mask_(mask), grid_(grid), slots_(slots + threadIdx.x) {}

  // The truth of the results, bit i for key i.
  __device__ unsigned run(int first_step, int end_step, const Point& point) {
    Step step{};
    for (int i = first_step; i < end_step; ++i) {
      step = load(mask_.steps + i);
      perform(step, point);
    }
    if (!(step.flags & kResultVaries)) {
      return *slot(0) != 0 ? 0xFF : 0;
    }
    unsigned bits = 0;
#pragma unroll
    for (int lane = 0; lane < kLanes; ++lane) {
      bits |= unsigned{slot(0)[lane * blockDim.x] != 0} << lane;
    }
    return bits;
  }

 private:
  static __device__ Step load(const Step* step) {
    const int4 words = __ldg(reinterpret_cast<const int4*>(step));
    Step loaded;
    memcpy(&loaded, &words, sizeof(loaded));
    return loaded;
  }

  __device__ Word* slot(int number) const {
    return slots_ + number * kLanes * blockDim.x;
  }

  // Lanes of an operand: all the first where it does not vary.
  struct Operand {
    const Word* words;
    unsigned stride;
    __device__ Word operator[](int lane) const { return words[lane * stride]; }
  };

  __device__ Operand operand(const Step& step, int i) const {
    return {slot(step.operands[i]), step.flags & operand_varies(i) ? blockDim.x : 0};
  }

  // All lanes are read before one is written, since an operand may lie in the destination.
  template <typename Function>
  __device__ void fill(const Step& step, Function function) {
    Word* result = slot(step.destination);
    if (!(step.flags & kResultVaries)) {
      *result = function(0);
      return;
    }
    Word words[kLanes];
#pragma unroll
    for (int lane = 0; lane < kLanes; ++lane) {
      words[lane] = function(lane);
    }
#pragma unroll
    for (int lane = 0; lane < kLanes; ++lane) {
      result[lane * blockDim.x] = words[lane];
    }
  }

  template <typename Function>
  __device__ void unary(const Step& step, Function function) {
    const Operand a = operand(step, 0);
    fill(step, [&](int lane) -> Word { return function(a[lane]); });
  }

  template <typename Function>
  __device__ void binary(const Step& step, Function function) {
    const Operand a = operand(step, 0);
    const Operand b = operand(step, 1);
    fill(step, [&](int lane) -> Word { return function(a[lane], b[lane]); });
  }

  template <typename Function>
  __device__ void floats(const Step& step, Function function) {
    binary(step, [=](Word a, Word b) { return as_word(function(as_float(a), as_float(b))); });
  }

  template <typename Compare>
  __device__ void compare(const Step& step, Compare compare) {
    if ((step.flags & kIsFloat) != 0) {
      binary(step, [=](Word a, Word b) -> Word { return compare(as_float(a), as_float(b)); });
    } else {
      binary(step, [=](Word a, Word b) -> Word { return compare(a, b); });
    }
  }

  __device__ Word scalar(Scalar name, const Point& point) const {
    switch (name) {
      case Scalar::Batch:
        return point.batch;
      case Scalar::Head:
        return point.head;
      case Scalar::Query:
        return point.query;
      case Scalar::Key:
        return point.key;
      case Scalar::QueryLength:
        return grid_.q_len;
      case Scalar::KeyLength:
        break;
    }
    return grid_.kv_len;
  }

  __device__ void read_table(const Step& step) {
    const TableView& table = mask_.tables[step.word];
    const std::int64_t* entries = table.entries;
    const std::int64_t last = table.size - 1;
    unary(step,
          [=](Word index) { return __ldg(entries + std::min(std::max(index, Word{0}), last)); });
  }

  __device__ void read_capture(const Step& step) {
    const CaptureView& capture = mask_.captures[step.word];
    fill(step, [&](int lane) -> Word {
      std::int64_t at = 0;
      for (int axis = 0; axis < capture.rank; ++axis) {
        const Word index = operand(step, axis)[lane];
        at += std::min(std::max(index, Word{0}), capture.shape[axis] - 1) * capture.strides[axis];
      }
      return element(capture, at);
    });
  }

  __device__ void choose(const Step& step) {
    const Operand condition = operand(step, 0);
    const Operand a = operand(step, 1);
    const Operand b = operand(step, 2);
    fill(step, [&](int lane) -> Word { return condition[lane] != 0 ? a[lane] : b[lane]; });
  }

  __device__ void perform(const Step& step, const Point& point) {
    using expr::Op;
    switch (static_cast<Op>(step.op)) {
      case Op::Constant:
        return fill(step, [&](int) { return step.word; });
      case Op::Scalar: {
        const Word word = scalar(static_cast<Scalar>(step.word), point);
        return fill(step, [=](int lane) { return expr::wrap_add(word, lane); });
      }
      case Op::Table:
        return read_table(step);
      case Op::Capture:
        return read_capture(step);
      case Op::Not:
        return unary(step, [](Word a) { return a ^ 1; });
      case Op::And:
      case Op::BitAnd:
        return binary(step, [](Word a, Word b) { return a & b; });
      case Op::Or:
      case Op::BitOr:
        return binary(step, [](Word a, Word b) { return a | b; });
      case Op::BitXor:
        return binary(step, [](Word a, Word b) { return a ^ b; });
      case Op::Select:
        return choose(step);
      case Op::Equal:
        return compare(step, [](auto a, auto b) { return a == b; });
      case Op::NotEqual:
        return compare(step, [](auto a, auto b) { return a != b; });
      case Op::Less:
        return compare(step, [](auto a, auto b) { return a < b; });
      case Op::LessEqual:
        return compare(step, [](auto a, auto b) { return a <= b; });
      case Op::Greater:
        return compare(step, [](auto a, auto b) { return a > b; });
      case Op::GreaterEqual:
        return compare(step, [](auto a, auto b) { return a >= b; });
      default:
        return (step.flags & kIsFloat) != 0 ? on_floats(step) : on_integers(step);
    }
  }

  __device__ void on_integers(const Step& step) {
    using expr::Op;
    switch (static_cast<Op>(step.op)) {
      case Op::Add:
        return binary(step, [](Word a, Word b) { return expr::wrap_add(a, b); });
      case Op::Subtract:
        return binary(step, [](Word a, Word b) { return expr::wrap_subtract(a, b); });
      case Op::Multiply:
        return binary(step, [](Word a, Word b) { return expr::wrap_multiply(a, b); });
      case Op::Min:
        return binary(step, [](Word a, Word b) { return std::min(a, b); });
      case Op::Max:
        return binary(step, [](Word a, Word b) { return std::max(a, b); });
      case Op::Divide:
        return binary(step, [](Word a, Word b) { return divide(a, b); });
      case Op::Modulo:
        return binary(step, [](Word a, Word b) { return modulo(a, b); });
      case Op::CeilDiv:
        return binary(step, [](Word a, Word b) { return ceil_div_wide(a, b); });
      case Op::ShiftLeft:
        return binary(step, [](Word a, Word b) { return expr::shift_left(a, b); });
      case Op::ShiftRight:
        return binary(step, [](Word a, Word b) { return expr::shift_right(a, b); });
      case Op::ShiftRightLogical:
        return binary(step, [](Word a, Word b) { return expr::shift_right_logical(a, b); });
      case Op::Negate:
        return unary(step, [](Word a) { return expr::wrap_negate(a); });
      case Op::BitNot:
        return unary(step, [](Word a) { return ~a; });
      case Op::Abs:
        return unary(step, [](Word a) { return expr::wrap_abs(a); });
      case Op::ToFloat:
        return unary(step, [](Word a) { return as_word(static_cast<double>(a)); });
      case Op::Mix:
        return unary(step, [](Word a) { return expr::mix(a); });
      default:
        return;  // no program has others
    }
  }

  __device__ void on_floats(const Step& step) {
    using expr::Op;
    switch (static_cast<Op>(step.op)) {
      case Op::Add:
        return floats(step, [](double a, double b) { return a + b; });
      case Op::Subtract:
        return floats(step, [](double a, double b) { return a - b; });
      case Op::Multiply:
        return floats(step, [](double a, double b) { return a * b; });
      case Op::Divide:
        return binary(step, [](Word a, Word b) { return as_word(as_float(a) / as_float(b)); });
      case Op::Min:
        return floats(step, [](double a, double b) { return fmin(a, b); });
      case Op::Max:
        return floats(step, [](double a, double b) { return fmax(a, b); });
      case Op::Negate:
        return unary(step, [](Word a) { return as_word(-as_float(a)); });
      case Op::Abs:
        return unary(step, [](Word a) { return as_word(fabs(as_float(a))); });
      case Op::ToInt:
        return unary(step, [](Word a) { return to_integer(as_float(a)); });
      case Op::Exp:
        return unary(step, [](Word a) { return as_word(exp_of(as_float(a))); });
      case Op::Log:
        return unary(step, [](Word a) { return as_word(log_of(as_float(a))); });
      case Op::Sqrt:
        return unary(step, [](Word a) { return as_word(::sqrt(as_float(a))); });
      case Op::Tanh:
        return unary(step, [](Word a) { return as_word(tanh_of(as_float(a))); });
      default:
        return;  // no program has others
    }
  }

  const MaskView& mask_;
  const Grid& grid_;
  Word* slots_;
};

}  // namespace stof::mask_layout
