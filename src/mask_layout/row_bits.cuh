// Which of the 64 keys of a tile a query sees, at once, for masks whose expressions are linear.
#pragma once

#include <algorithm>

#include "mask_layout/key_bits.cuh"

namespace stof::mask_layout {

// The first `count` of 64 bits.
__device__ inline std::uint64_t first_bits(std::int64_t count) {
  return count <= 0 ? 0 : count >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
}

// A number that grows by as much from key to key.
struct Line {
  Word first;
  Word growth;

  __device__ Word at(int key) const { return expr::wrap_add(first, growth * key); }
};

__device__ inline bool compares(expr::Op op, Word a, Word b) {
  switch (op) {
    case expr::Op::Equal:
      return a == b;
    case expr::Op::NotEqual:
      return a != b;
    case expr::Op::Less:
      return a < b;
    case expr::Op::LessEqual:
      return a <= b;
    case expr::Op::Greater:
      return a > b;
    default:
      return a >= b;
  }
}

// Key by key, where numbers may wrap.
__device__ __noinline__ inline std::uint64_t compared_one_by_one(expr::Op op, Line a, Line b) {
  std::uint64_t bits = 0;
#pragma unroll 1
  for (int key = 0; key < 64; ++key) {
    bits |= std::uint64_t{compares(op, a.at(key), b.at(key))} << key;
  }
  return bits;
}

// The difference of the two is one of -1, 0 and 1 from key to key.
__device__ inline std::uint64_t compared_lines(expr::Op op, Line a, Line b) {
  constexpr Word kSafe = Word{1} << 60;
  if (std::max(a.first, b.first) > kSafe || std::min(a.first, b.first) < -kSafe) {
    return compared_one_by_one(op, a, b);
  }
  const Word difference = a.first - b.first;
  const Word growth = a.growth - b.growth;
  const Word zero_at = growth > 0 ? -difference : difference;  // the key where they are equal
  std::uint64_t is_less = difference < 0 ? ~std::uint64_t{0} : 0;
  std::uint64_t is_equal = difference == 0 ? ~std::uint64_t{0} : 0;
  if (growth != 0) {
    is_less = growth > 0 ? first_bits(zero_at) : ~first_bits(zero_at + 1);
    is_equal = zero_at >= 0 && zero_at < 64 ? std::uint64_t{1} << zero_at : 0;
  }
  switch (op) {
    case expr::Op::Equal:
      return is_equal;
    case expr::Op::NotEqual:
      return ~is_equal;
    case expr::Op::Less:
      return is_less;
    case expr::Op::LessEqual:
      return is_less | is_equal;
    case expr::Op::Greater:
      return ~(is_less | is_equal);
    default:
      return ~is_less;
  }
}

// Runs the steps of a linear program: numbers are lines, truth values bits of 64 keys. A slot holds
// either in its first two words.
class LineInterpreter {
 public:
  __device__ LineInterpreter(const Program& program, const Grid& grid, const Point& point,
                             const Slots& slots)
      : program_(program), grid_(grid), point_(point), slots_(slots) {}

  __device__ std::uint64_t run(int first_step, int end_step) {
#pragma unroll 1
    for (int i = first_step; i < end_step; ++i) {
      const Step step = load_step(program_.steps + i);
      const auto op = static_cast<expr::Op>(step.op);
      if ((step.flags & kIsTruth) != 0) {
        bits_ = combined(step, op);
      } else if (op == expr::Op::Add || op == expr::Op::Subtract) {
        line_ = sum(op, line(step, 0), line(step, 1));
      } else {
        bits_ = compared_lines(op, line(step, 0), line(step, 1));
      }
      if ((step.flags & kIsForwarded) == 0) {
        const bool is_line = op == expr::Op::Add || op == expr::Op::Subtract;
        Word* words = slots_.of_keys(step.destination);
        words[0] = is_line ? line_.first : static_cast<Word>(bits_);
        words[slots_.threads] = line_.growth;
      }
    }
    return bits_;
  }

 private:
  static __device__ Line sum(expr::Op op, Line a, Line b) {
    return op == expr::Op::Add ? Line{expr::wrap_add(a.first, b.first), a.growth + b.growth}
                               : Line{expr::wrap_subtract(a.first, b.first), a.growth - b.growth};
  }

  __device__ Line line(const Step& step, int i) const {
    const int place = step.operands[i];
    if (place < kRowSlot) {
      const Word* words = slots_.of_keys(place);
      return {words[0], words[slots_.threads]};
    }
    if (place < kPrevious) {
      return {*slots_.of_row(program_.mask, place, point_.query), 0};
    }
    if (place == kPrevious) {
      return line_;
    }
    if (place == kWord) {
      return {step.word, 0};
    }
    const auto name = static_cast<Scalar>(place - kScalar);
    return {scalar_at(name, grid_, point_), name == Scalar::Key ? 1 : 0};
  }

  // A truth value that is worked out with the keys is bits; others are 0 or not.
  __device__ std::uint64_t bits(const Step& step, int i) const {
    const int place = step.operands[i];
    if (place == kPrevious) {
      return bits_;
    }
    if (place < kRowSlot) {
      return static_cast<std::uint64_t>(*slots_.of_keys(place));
    }
    return line(step, i).first != 0 ? ~std::uint64_t{0} : 0;
  }

  __device__ std::uint64_t combined(const Step& step, expr::Op op) const {
    const std::uint64_t a = bits(step, 0);
    const std::uint64_t b = bits(step, 1);
    switch (op) {
      case expr::Op::Not:
        return ~a;
      case expr::Op::And:
        return a & b;
      case expr::Op::Or:
        return a | b;
      case expr::Op::Equal:
        return ~(a ^ b);
      case expr::Op::NotEqual:
        return a ^ b;
      case expr::Op::Select:
        return (a & b) | (~a & bits(step, 2));
      default:  // Constant
        return a;
    }
  }

  const Program& program_;
  const Grid& grid_;
  const Point& point_;
  const Slots& slots_;
  Line line_ = {};
  std::uint64_t bits_ = 0;
};

__device__ inline std::uint64_t leaf_row_bits(const Program& program, const Grid& grid,
                                              const Part& part, const Point& point,
                                              const Slots& slots) {
  switch (part.kind) {
    case PartKind::Expression:
      return LineInterpreter(program, grid, point, slots).run(part.first_key_step, part.end_step);
    case PartKind::Bits:
      return *reinterpret_cast<const std::uint64_t*>(
          static_cast<const std::uint8_t*>(part.data) +
          data_row(part, point, point.query) * bytes_of_row(part) + point.key / kLanes);
    case PartKind::KeyLengths:
      return first_bits(static_cast<const std::int32_t*>(part.data)[point.batch] - point.key);
    case PartKind::Documents: {
      const int document = document_of(part, point.query);
      if (document == 0 || document == part.columns) {
        return 0;
      }
      const auto* offsets = static_cast<const std::int32_t*>(part.data) + document;
      return first_bits(offsets[0] - point.key) & ~first_bits(offsets[-1] - point.key);
    }
    default:
      break;
  }
  std::uint64_t bits = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    Point eight = point;
    eight.key += i * kLanes;
    const unsigned own = part.kind == PartKind::Bytes    ? dense_bytes(part, eight)
                         : part.kind == PartKind::Blocks ? block_bits(part, eight)
                                                         : csr_bits(part, eight);
    bits |= std::uint64_t{own & 0xFF} << (i * kLanes);
  }
  return bits;
}

// As key_bits, of the 64 keys from the point on; prepare_row comes before it.
__device__ inline std::uint64_t row_bits(const Program& program, const Grid& grid,
                                         const Point& point, const Slots& slots) {
  std::uint64_t stack[kMaxStack];
  int depth = 0;
#pragma unroll 1
  for (int i = 0; i < program.mask.part_count; ++i) {
    const Part& part = program.parts[i];
    switch (part.kind) {
      case PartKind::And:
        --depth;
        stack[depth - 1] &= stack[depth];
        break;
      case PartKind::Or:
        --depth;
        stack[depth - 1] |= stack[depth];
        break;
      case PartKind::Not:
        stack[depth - 1] = ~stack[depth - 1];
        break;
      default:
        stack[depth++] = leaf_row_bits(program, grid, part, point, slots);
    }
  }
  std::uint64_t bits = stack[0];
#pragma unroll 1
  for (int i = 0; i < program.mask.input_count; ++i) {
    bits &= leaf_row_bits(program, grid, program.mask.inputs[i], point, slots);
  }
  return bits & first_bits(grid.kv_len - point.key);
}

}  // namespace stof::mask_layout
