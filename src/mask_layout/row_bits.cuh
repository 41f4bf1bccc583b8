// Which of the 64 keys of a tile a query sees, at once, for masks whose expressions go by rows.
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

// The bits of a comparison, of what is less and what is equal.
__device__ inline std::uint64_t chosen(expr::Op op, std::uint64_t is_less, std::uint64_t is_equal) {
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

// The difference of the two grows by -1, 0 or 1 from key to key.
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
  return chosen(op, is_less, is_equal);
}

// What one operation makes of a line at each key; that of Op::Constant is the line itself.
struct Curve {
  Line line;
  expr::Op op = expr::Op::Constant;
  Word word = 0;
};

// Bits of the keys at which a curve is less than a line, and at which they are equal. The function
// says what the curve has where its line has a number.
template <typename Function>
__device__ std::uint64_t compared_key_by_key(expr::Op op, Line a, Line b, Function value_of) {
  std::uint64_t is_less = 0;
  std::uint64_t is_equal = 0;
#pragma unroll 4
  for (int key = 0; key < 64; ++key) {
    const Word value = value_of(a.first);
    is_less |= std::uint64_t{value < b.first} << key;
    is_equal |= std::uint64_t{value == b.first} << key;
    a.first = expr::wrap_add(a.first, a.growth);
    b.first = expr::wrap_add(b.first, b.growth);
  }
  return chosen(op, is_less, is_equal);
}

__device__ inline std::uint64_t compared_curve(expr::Op op, const Curve& curve, Line b,
                                               const TableView* tables) {
  const Word word = curve.word;
  switch (curve.op) {
    case expr::Op::Table: {
      const std::int64_t* entries = tables[word].entries;
      const std::int64_t last = tables[word].size - 1;
      return compared_key_by_key(op, curve.line, b, [=](Word index) {
        return __ldg(entries + std::min(std::max(index, Word{0}), last));
      });
    }
    case expr::Op::Modulo:
      return compared_key_by_key(op, curve.line, b, [=](Word a) { return modulo(a, word); });
    case expr::Op::Divide:
      return compared_key_by_key(op, curve.line, b, [=](Word a) { return divide(a, word); });
    case expr::Op::BitAnd:
      return compared_key_by_key(op, curve.line, b, [=](Word a) { return a & word; });
    case expr::Op::ShiftRight:
      return compared_key_by_key(op, curve.line, b,
                                 [=](Word a) { return expr::shift_right(a, word); });
    default:
      return compared_key_by_key(op, curve.line, b, [](Word a) { return expr::wrap_abs(a); });
  }
}

// The operation with its operands the other way round.
__device__ inline expr::Op mirrored(expr::Op op) {
  switch (op) {
    case expr::Op::Less:
      return expr::Op::Greater;
    case expr::Op::LessEqual:
      return expr::Op::GreaterEqual;
    case expr::Op::Greater:
      return expr::Op::Less;
    case expr::Op::GreaterEqual:
      return expr::Op::LessEqual;
    default:
      return op;
  }
}

__device__ inline std::uint64_t compared(expr::Op op, const Curve& a, const Curve& b,
                                         const TableView* tables) {
  if (a.op == expr::Op::Constant && b.op == expr::Op::Constant) {
    return compared_lines(op, a.line, b.line);
  }
  const bool is_first = a.op != expr::Op::Constant;
  return compared_curve(is_first ? op : mirrored(op), is_first ? a : b, is_first ? b.line : a.line,
                        tables);
}

constexpr std::uint32_t low_half(std::uint64_t word) {
  return static_cast<std::uint32_t>(word);
}
constexpr std::uint32_t high_half(std::uint64_t word) {
  return static_cast<std::uint32_t>(word >> 32);
}

// The least of the sums that draws at start ^ 0 to start ^ 63 begin with; the most is 63 more.
__device__ inline std::uint64_t least_sum(std::uint64_t start) {
  return (start & ~std::uint64_t{63}) + expr::kMixStep;
}

// Bit i for bit i ^ number, for numbers up to 63.
__device__ inline std::uint64_t exchanged(std::uint64_t bits, unsigned number) {
  constexpr std::uint64_t kLower[] = {0x5555555555555555, 0x3333333333333333, 0x0F0F0F0F0F0F0F0F};
#pragma unroll
  for (int i = 0; i < 3; ++i) {
    const int distance = 1 << i;
    const std::uint64_t other = (bits >> distance & kLower[i]) | (bits & kLower[i]) << distance;
    bits = (number >> i & 1) != 0 ? other : bits;
  }
  const std::uint32_t halves[] = {low_half(bits), high_half(bits)};
  const unsigned bytes = 0x3210 ^ (number >> 3 & 3) * 0x1111;
  const bool is_swapped = number >= 32;
  const std::uint32_t low = __byte_perm(is_swapped ? halves[1] : halves[0], 0, bytes);
  const std::uint32_t high = __byte_perm(is_swapped ? halves[0] : halves[1], 0, bytes);
  return low | std::uint64_t{high} << 32;
}

// bits * 2, and 1 more where a + b does not fit 32 bits.
__device__ inline std::uint32_t with_carry(std::uint32_t bits, std::uint32_t a, std::uint32_t b) {
  asm("{ .reg .u32 sum; add.cc.u32 sum, %1, %2; addc.u32 %0, %0, %0; }"
      : "+r"(bits)
      : "r"(a), "r"(b));
  return bits;
}

// is_kept(start ^ key, limit >> 8) for keys 0 to 63, where the first sums differ in bits below the
// 30th alone: all that follows from the others is worked out once. Limits are above 0.
__device__ inline std::uint64_t kept_of_aligned(std::uint64_t start, std::uint32_t limit) {
  constexpr int kKeys = 8;  // at once: more are more code than a multiprocessor keeps near
  // Sums go over 64 neighbours: first those that end a stretch of 64, then those that begin the
  // next one. Not by key but by the last six bits of the sum there is no sum to work out.
  constexpr int kStart = static_cast<int>(expr::kMixStep % 64);
  const std::uint64_t sum = least_sum(start);
  const std::uint64_t top = sum >> 30;
  const std::uint32_t high = high_half(sum) ^ high_half(top);
  const std::uint64_t high_product = std::uint64_t{high * low_half(expr::kMixFirstFactor)} << 32;
  const std::uint32_t stretch = low_half(sum) / 64 * 64;
  const std::uint32_t ending = stretch ^ low_half(top);
  const std::uint32_t beginning = (stretch + 64) ^ low_half(top);
  // The last bits of a sum are added to the others, not set by an exclusive or: multipliers can
  // add, and the units of logic are what bounds the loop.
  std::uint32_t last_bits[kKeys];
#pragma unroll
  for (int i = 0; i < kKeys; ++i) {
    last_bits[i] = i ^ (low_half(top) % kKeys);
  }
  std::uint64_t hidden = 0;
#pragma unroll 1
  for (int begin = 64 - kKeys; begin >= 0; begin -= kKeys) {
    const std::uint32_t lower = ((begin < kStart ? beginning : ending) ^ begin) / kKeys * kKeys;
    const std::uint32_t upper =
        ((begin + kKeys <= kStart ? beginning : ending) ^ begin) / kKeys * kKeys;
    std::uint32_t own = 0;
#pragma unroll
    for (int i = kKeys - 1; i >= 0; --i) {
      const std::uint32_t first = (i < kStart % kKeys ? lower : upper) + last_bits[i];
      const std::uint64_t product =
          std::uint64_t{first} * low_half(expr::kMixFirstFactor) + high_product;
      std::uint32_t x_low = low_half(product);
      std::uint32_t x_high = high_half(product) + first * high_half(expr::kMixFirstFactor);
      x_low ^= __funnelshift_r(x_low, x_high, 27);
      x_high ^= x_high >> 27;
      const std::uint32_t drawn = __umulhi(x_low, low_half(expr::kMixSecondFactor)) +
                                  x_low * high_half(expr::kMixSecondFactor) +
                                  x_high * low_half(expr::kMixSecondFactor);
      own = with_carry(own, drawn, 0 - limit);  // carries where drawn >= limit
    }
    hidden = hidden << kKeys | own;
  }
  const std::uint64_t by_sum = hidden >> kStart | hidden << (64 - kStart);
  return exchanged(~by_sum, low_half(start) % 64);
}

__device__ __noinline__ inline std::uint64_t kept_key_by_key(Line a, Line b, std::uint32_t limit) {
  std::uint64_t bits = 0;
#pragma unroll 1
  for (int key = 0; key < 64; ++key) {
    bits |= std::uint64_t{is_kept(a.at(key) ^ b.at(key), limit)} << key;
  }
  return bits;
}

__device__ inline std::uint64_t kept_keys(Line a, Line b, std::uint32_t limit) {
  constexpr std::uint32_t kAll = 1U << (64 - expr::kKeepShift);
  const std::uint64_t start = expr::bits_of(a.first ^ b.first);
  const std::uint64_t sum = least_sum(start);
  const bool is_aligned = (a.growth == 0 && b.growth == 1 && b.first % 64 == 0) ||
                          (a.growth == 1 && b.growth == 0 && a.first % 64 == 0);
  const bool is_plain = limit > 0 && limit < kAll;
  if (!is_aligned || (sum ^ (sum + 63)) >> 30 != 0 || !is_plain) {
    return kept_key_by_key(a, b, limit);
  }
  return kept_of_aligned(start, limit << (expr::kKeepShift - 32));
}

// Runs the steps of a program for the 64 keys from the point on: numbers are curves, truth values
// bits. A slot holds either in its first words.
class RowInterpreter {
 public:
  __device__ RowInterpreter(const Program& program, const Grid& grid, const Point& point,
                            const Slots& slots)
      : program_(program), grid_(grid), point_(point), slots_(slots) {}

  __device__ std::uint64_t run(int first_step, int end_step) {
#pragma unroll 1
    for (int i = first_step; i < end_step; ++i) {
      const Step step = load_step(program_.steps + i);
      perform(step);
      if ((step.flags & kIsForwarded) == 0) {
        keep_result(step);
      }
    }
    return bits_;
  }

 private:
  static __device__ bool is_number(const Step& step) {
    const auto op = static_cast<expr::Op>(step.op);
    return (step.flags & kIsTruth) == 0 &&
           (op == expr::Op::Add || op == expr::Op::Subtract || is_curve(op));
  }

  __device__ void perform(const Step& step) {
    const auto op = static_cast<expr::Op>(step.op);
    if ((step.flags & kIsTruth) != 0) {
      bits_ = combined(step, op);
    } else if (op == expr::Op::Add || op == expr::Op::Subtract) {
      curve_ = {.line = sum(op, curve(step, 0).line, curve(step, 1).line)};
    } else if (is_curve(op)) {
      curve_ = {.line = curve(step, 0).line, .op = op, .word = step.word};
    } else if (op == expr::Op::Keep) {
      bits_ = kept_keys(curve(step, 0).line, curve(step, 1).line,
                        static_cast<std::uint32_t>(step.word));
    } else {
      bits_ = compared(op, curve(step, 0), curve(step, 1), program_.mask.tables);
    }
  }

  __device__ void keep_result(const Step& step) {
    Word* words = slots_.of_keys(step.destination);
    if (!is_number(step)) {
      words[0] = static_cast<Word>(bits_);
      return;
    }
    words[0] = curve_.line.first;
    words[slots_.threads] = curve_.line.growth;
    words[2 * slots_.threads] = static_cast<Word>(curve_.op);
    words[3 * slots_.threads] = curve_.word;
  }

  static __device__ Line sum(expr::Op op, Line a, Line b) {
    return op == expr::Op::Add ? Line{expr::wrap_add(a.first, b.first), a.growth + b.growth}
                               : Line{expr::wrap_subtract(a.first, b.first), a.growth - b.growth};
  }

  __device__ Curve curve(const Step& step, int i) const {
    const int place = step.operands[i];
    if (place < kRowSlot) {
      const Word* words = slots_.of_keys(place);
      return {.line = {words[0], words[slots_.threads]},
              .op = static_cast<expr::Op>(words[2 * slots_.threads]),
              .word = words[3 * slots_.threads]};
    }
    if (place < kPrevious) {
      return {.line = {*slots_.of_row(program_.mask, place, point_.query), 0}};
    }
    if (place == kPrevious) {
      return curve_;
    }
    if (place == kWord) {
      return {.line = {step.word, 0}};
    }
    const auto name = static_cast<Scalar>(place - kScalar);
    return {.line = {scalar_at(name, grid_, point_), name == Scalar::Key ? 1 : 0}};
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
    return curve(step, i).line.first != 0 ? ~std::uint64_t{0} : 0;
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
  Curve curve_ = {};
  std::uint64_t bits_ = 0;
};

__device__ inline std::uint64_t data_row_bits(const Part& part, const Point& point) {
  switch (part.kind) {
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

__device__ inline std::uint64_t leaf_row_bits(const Program& program, const Grid& grid,
                                              const Part& part, const Point& point,
                                              const Slots& slots) {
  return part.kind == PartKind::Expression
             ? RowInterpreter(program, grid, point, slots).run(part.first_key_step, part.end_step)
             : data_row_bits(part, point);
}

// As key_bits, of the 64 keys from the point on; prepare_row comes before it. A leaf is in one
// place of the code, which is long.
__device__ inline std::uint64_t row_bits(const Program& program, const Grid& grid,
                                         const Point& point, const Slots& slots) {
  std::uint64_t below[kMaxStack];  // the stack but for its top
  std::uint64_t top = 0;
  int depth = 0;
  const int parts = program.mask.part_count;
#pragma unroll 1
  for (int i = 0; i < program.mask.evaluated_count(); ++i) {
    const Part& part = i < parts ? program.parts[i] : program.input(i);
    if (part.kind == PartKind::And) {
      top &= below[--depth];
    } else if (part.kind == PartKind::Or) {
      top |= below[--depth];
    } else if (part.kind == PartKind::Not) {
      top = ~top;
    } else {
      const std::uint64_t bits = leaf_row_bits(program, grid, part, point, slots);
      if (i < parts && i > 0) {
        below[depth++] = top;
      }
      top = i < parts ? bits : top & bits;
    }
  }
  return top & first_bits(grid.kv_len - point.key);
}

}  // namespace stof::mask_layout
