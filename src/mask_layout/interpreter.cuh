// Runs a program at neighbouring keys of each thread, as expr::Interpreter does on the host.
#pragma once

#include <algorithm>

#include "expr/operation.hpp"
#include "expr/semantics.hpp"
#include "mask/layout.hpp"
#include "mask_layout/program.cuh"
#include "mask_layout/words.cuh"

namespace stof::mask_layout {

constexpr int kLanes = 8;  // keys of a thread

// Where a thread is; its keys are `key` to `key` + 7.
struct Point {
  std::int64_t batch;
  std::int64_t head;
  std::int64_t query;
  std::int64_t key;
};

__device__ inline Word scalar_at(Scalar name, const Grid& grid, const Point& point) {
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
      return grid.q_len;
    case Scalar::KeyLength:
      break;
  }
  return grid.kv_len;
}

// Words of shared memory that the slots of so many threads take.
constexpr std::int64_t slot_words(const MaskView& mask, int threads) {
  return std::int64_t{mask.slots} * kLanes * threads + mask.row_slots * mask::kTile;
}

// Slots of threads that work on a tile: the word of a lane of a slot lies beside that of the next
// thread, and behind all of them come those of rows, a word for each of 64.
struct Slots {
  Word* words;
  int thread;
  int threads;

  __device__ Word* of_keys(int number) const { return words + number * kLanes * threads + thread; }
  __device__ Word* of_row(const MaskView& mask, int number, std::int64_t query) const {
    const auto row = static_cast<int>(query) % static_cast<int>(mask::kTile);
    return words + mask.slots * kLanes * threads +
           (number - kRowSlot) * static_cast<int>(mask::kTile) + row;
  }
};

// Steps over so many keys at once: one for what does not depend on them, else kLanes. The last
// result stays in registers: words, or the bits of truth values, bit i for key i. In slots a truth
// value that varies is its bits, and one that does not is 0 or anything else.
template <int kKeys>
class Interpreter {
 public:
  __device__ Interpreter(const Program& program, const Grid& grid, const Point& point,
                         const Slots& slots)
      : program_(program), grid_(grid), point_(point), slots_(slots) {}

  // The bits of the last result.
  __device__ unsigned run(int first_step, int end_step) {
    Step following = load_step(program_.steps + first_step);
    for (int i = first_step; i < end_step; ++i) {
      const Step step = following;
      following = load_step(program_.steps + std::min(i + 1, end_step - 1));
      perform(step);
      if ((step.flags & kIsForwarded) == 0) {
        keep_result(step);
      }
    }
    return bits_;
  }

 private:
  static constexpr unsigned kAllKeys = (1U << kKeys) - 1;

  static __device__ bool has_truth(const Step& step) {
    const auto op = static_cast<expr::Op>(step.op);
    return (step.flags & kIsTruth) != 0 || op == expr::Op::Keep ||
           (op >= expr::Op::Equal && op <= expr::Op::GreaterEqual);
  }

  __device__ Word* slot_of(int number) const {
    return number < kRowSlot ? slots_.of_keys(number)
                             : slots_.of_row(program_.mask, number, point_.query);
  }

  __device__ void keep_result(const Step& step) {
    Word* result = slot_of(step.destination);
    if (has_truth(step)) {
      *result = bits_;
      return;
    }
#pragma unroll
    for (int key = 0; key < kKeys; ++key) {
      result[key * slots_.threads] = words_[key];
    }
  }

  // The only word of an operand that does not vary, or the first.
  __device__ Word first_word(const Step& step, int i) const {
    const int place = step.operands[i];
    return place < kPrevious    ? *slot_of(place)
           : place == kPrevious ? words_[0]
           : place == kWord     ? step.word
                                : scalar_at(static_cast<Scalar>(place - kScalar), grid_, point_);
  }

  __device__ void read(const Step& step, int i, Word (&words)[kKeys]) const {
    const int place = step.operands[i];
    const bool varies = (step.flags & operand_varies(i)) != 0;
    if (varies && place == kPrevious) {
#pragma unroll
      for (int key = 0; key < kKeys; ++key) {
        words[key] = words_[key];
      }
    } else if (varies && place < kPrevious) {
      const Word* slot = slot_of(place);
#pragma unroll
      for (int key = 0; key < kKeys; ++key) {
        words[key] = slot[key * slots_.threads];
      }
    } else {
      const Word first = first_word(step, i);
#pragma unroll
      for (int key = 0; key < kKeys; ++key) {
        words[key] = varies ? first + key : first;
      }
    }
  }

  __device__ unsigned read_bits(const Step& step, int i) const {
    const bool varies = (step.flags & operand_varies(i)) != 0;
    const int place = step.operands[i];
    const unsigned bits = place == kPrevious ? bits_ : static_cast<unsigned>(first_word(step, i));
    return varies ? bits : bits != 0 ? kAllKeys : 0;
  }

  template <typename Function>
  __device__ void unary(const Step& step, Function function) {
    Word a[kKeys];
    read(step, 0, a);
#pragma unroll
    for (int key = 0; key < kKeys; ++key) {
      words_[key] = function(a[key]);
    }
  }

  template <typename Function>
  __device__ void binary(const Step& step, Function function) {
    Word a[kKeys];
    Word b[kKeys];
    read(step, 0, a);
    read(step, 1, b);
#pragma unroll
    for (int key = 0; key < kKeys; ++key) {
      words_[key] = function(a[key], b[key]);
    }
  }

  template <typename Function>
  __device__ void floats(const Step& step, Function function) {
    binary(step, [=](Word a, Word b) { return as_word(function(as_float(a), as_float(b))); });
  }

  template <typename Test>
  __device__ void test(const Step& step, Test is_true) {
    Word a[kKeys];
    Word b[kKeys];
    read(step, 0, a);
    read(step, 1, b);
    bits_ = 0;
#pragma unroll
    for (int key = 0; key < kKeys; ++key) {
      bits_ |= unsigned{is_true(a[key], b[key])} << key;
    }
  }

  template <typename Compare>
  __device__ void compare(const Step& step, Compare compare) {
    if ((step.flags & kIsFloat) != 0) {
      test(step, [=](Word a, Word b) -> bool { return compare(as_float(a), as_float(b)); });
    } else {
      test(step, [=](Word a, Word b) -> bool { return compare(a, b); });
    }
  }

  __device__ void take_nonzero() {
    bits_ = 0;
#pragma unroll
    for (int key = 0; key < kKeys; ++key) {
      bits_ |= unsigned{words_[key] != 0} << key;
    }
  }

  __device__ void read_table(const Step& step) {
    const TableView& table = program_.mask.tables[step.word];
    const std::int64_t* entries = table.entries;
    const std::int64_t last = table.size - 1;
    unary(step,
          [=](Word index) { return __ldg(entries + std::min(std::max(index, Word{0}), last)); });
  }

  __device__ void read_capture(const Step& step) {
    const CaptureView& capture = program_.mask.captures[step.word];
    Word at[kKeys] = {};
    for (int axis = 0; axis < capture.rank; ++axis) {
      Word index[kKeys];
      read(step, axis, index);
#pragma unroll
      for (int key = 0; key < kKeys; ++key) {
        at[key] += std::min(std::max(index[key], Word{0}), capture.shape[axis] - 1) *
                   capture.strides[axis];
      }
    }
#pragma unroll
    for (int key = 0; key < kKeys; ++key) {
      words_[key] = element(capture, at[key]);
    }
  }

  __device__ void choose(const Step& step) {
    const unsigned chosen = read_bits(step, 0);
    Word a[kKeys];
    Word b[kKeys];
    read(step, 1, a);
    read(step, 2, b);
#pragma unroll
    for (int key = 0; key < kKeys; ++key) {
      words_[key] = (chosen >> key & 1) != 0 ? a[key] : b[key];
    }
  }

  __device__ void perform(const Step& step) {
    using expr::Op;
    switch (static_cast<Op>(step.op)) {
      case Op::Table:
        read_table(step);
        break;
      case Op::Capture:
        read_capture(step);
        break;
      case Op::Constant:
        unary(step, [](Word a) { return a; });
        break;
      default:
        return (step.flags & kIsTruth) != 0 ? on_truths(step) : on_numbers(step);
    }
    if ((step.flags & kIsTruth) != 0) {
      take_nonzero();
    }
  }

  __device__ void on_truths(const Step& step) {
    using expr::Op;
    const unsigned a = read_bits(step, 0);
    const unsigned b = read_bits(step, 1);
    switch (static_cast<Op>(step.op)) {
      case Op::Not:
        bits_ = a ^ kAllKeys;
        break;
      case Op::And:
        bits_ = a & b;
        break;
      case Op::Or:
        bits_ = a | b;
        break;
      case Op::Equal:
        bits_ = a ^ b ^ kAllKeys;
        break;
      case Op::NotEqual:
        bits_ = a ^ b;
        break;
      default:  // Select
        bits_ = (a & b) | (~a & read_bits(step, 2));
        break;
    }
  }

  __device__ void on_numbers(const Step& step) {
    using expr::Op;
    switch (static_cast<Op>(step.op)) {
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
      case Op::Select:
        return choose(step);
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
      case Op::BitAnd:
        return binary(step, [](Word a, Word b) { return a & b; });
      case Op::BitOr:
        return binary(step, [](Word a, Word b) { return a | b; });
      case Op::BitXor:
        return binary(step, [](Word a, Word b) { return a ^ b; });
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
      case Op::Keep: {
        const auto limit = static_cast<std::uint32_t>(step.word);
        return test(step, [=](Word a, Word b) { return is_kept(a ^ b, limit); });
      }
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

  const Program& program_;
  const Grid& grid_;
  const Point& point_;
  const Slots& slots_;
  Word words_[kKeys] = {};
  unsigned bits_ = 0;
};

}  // namespace stof::mask_layout
