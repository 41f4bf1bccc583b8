// What can be said of a region without asking for each pair; never wrong.
#pragma once

#include "mask/attention_tiles.hpp"
#include "mask/layout.hpp"
#include "mask_layout/intervals.cuh"
#include "mask_layout/program.cuh"

namespace stof::mask_layout {

// Bits: some pair may be hidden, some may be seen.
enum Truth : unsigned { kNever = 1, kAlways = 2, kUnknown = 3 };

__device__ inline Truth truth_of(Range truth) {
  return truth.low == 1 ? kAlways : truth.high == 0 ? kNever : kUnknown;
}

// The interval of a scalar.
__device__ inline Range scalar_range(Scalar name, const Grid& grid, const Region& region) {
  switch (name) {
    case Scalar::Batch:
      return {region.batch, region.batch};
    case Scalar::Head:
      return {region.head, region.head};
    case Scalar::Query:
      return region.query;
    case Scalar::Key:
      return region.key;
    case Scalar::QueryLength:
      return {grid.q_len, grid.q_len};
    case Scalar::KeyLength:
      break;
  }
  return {grid.kv_len, grid.kv_len};
}

__device__ inline Range kept(Range a, Range b, std::int64_t limit) {
  if (!is_point(a) || !is_point(b)) {
    return maybe();
  }
  const std::int64_t draw = expr::shift_right_logical(expr::mix(a.low ^ b.low), expr::kKeepShift);
  return outcome(draw < limit, draw >= limit);
}

// Slots of regions in shared memory: each lies beside that of the next region.
struct RegionSlots {
  Range* ranges;
  int region;
  int regions;

  __device__ Range& at(const MaskView& mask, int number) const {
    const int place = number < kRowSlot ? number : number - kRowSlot + mask.slots;
    return ranges[place * regions + region];
  }
};
constexpr int region_slot_count(const MaskView& mask, int regions) {
  return regions * (mask.slots + mask.row_slots);
}
constexpr std::int64_t region_slot_words(const MaskView& mask, int regions) {
  return region_slot_count(mask, regions) * static_cast<std::int64_t>(sizeof(Range) / sizeof(Word));
}

// The program of an expression.
__device__ inline Truth expression_truth(const Program& program, const Grid& grid, const Part& part,
                                         const Region& region, const RegionSlots& slots) {
  const auto slot = [&](int number) -> Range& { return slots.at(program.mask, number); };
  Range previous = {};
  Step following = load_step(program.steps + part.first_step);
  for (int i = part.first_step; i < part.end_step; ++i) {
    const Step step = following;
    following = load_step(program.steps + std::min(i + 1, part.end_step - 1));
    const auto operand = [&](int number) -> Range {
      const int place = step.operands[number];
      return place < kPrevious    ? slot(place)
             : place == kPrevious ? previous
             : place == kWord     ? Range{step.word, step.word}
                              : scalar_range(static_cast<Scalar>(place - kScalar), grid, region);
    };
    const auto op = static_cast<expr::Op>(step.op);
    const Range a = operand(0);
    const Range b = operand(1);
    const bool is_float = (step.flags & kIsFloat) != 0;
    Range result = {};
    if (op == expr::Op::Constant) {
      result = {step.word, step.word};
    } else if (op == expr::Op::Table) {
      result = looked_up(program.mask.tables[step.word], a);
    } else if (op == expr::Op::Capture) {
      result = (step.flags & kIsTruth) != 0 ? maybe() : all();
    } else if (op == expr::Op::Select) {
      const Range c = operand(2);
      result = a.low == 1 ? b : a.high == 0 ? c : hull(b, c);
    } else if (op == expr::Op::Not) {
      result = {1 - a.high, 1 - a.low};
    } else if (op == expr::Op::And) {
      result = {a.low & b.low, a.high & b.high};
    } else if (op == expr::Op::Or) {
      result = {a.low | b.low, a.high | b.high};
    } else if (op == expr::Op::Keep) {
      result = kept(a, b, step.word);
    } else if (is_comparison(op)) {
      result = is_float ? maybe() : compared(op, a, b);
    } else {
      result = is_float ? all() : applied(op, a, b);
    }
    if ((step.flags & kIsForwarded) == 0) {
      slot(step.destination) = result;
    }
    previous = result;
  }
  return truth_of(previous);
}

__device__ inline Truth key_lengths_truth(const Part& part, const Region& region) {
  const std::int64_t length = static_cast<const std::int32_t*>(part.data)[region.batch];
  return region.key.high < length ? kAlways : region.key.low >= length ? kNever : kUnknown;
}

// How many offsets are at most the position: the number of its document plus one, 0 in front of
// all.
__device__ inline int document_of(const Part& part, std::int64_t position) {
  const auto* offsets = static_cast<const std::int32_t*>(part.data);
  int low = 0;
  int high = static_cast<int>(part.columns);
  while (low < high) {
    const int middle = low + (high - low) / 2;
    if (offsets[middle] <= position) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

__device__ inline Truth documents_truth(const Part& part, const Region& region) {
  const int first_query = document_of(part, region.query.low);
  const int last_query = document_of(part, region.query.high);
  const int first_key = document_of(part, region.key.low);
  const int last_key = document_of(part, region.key.high);
  const int behind_all = static_cast<int>(part.columns);
  if (last_query < first_key || last_key < first_query || first_query == behind_all ||
      first_key == behind_all) {
    return kNever;
  }
  const bool is_one = first_query == last_query && first_key == last_key;
  return is_one && first_query == first_key ? kAlways : kUnknown;
}

// Words hold the answer of data at once, so that only an empty stretch of rows is worth a look.
__device__ inline Truth csr_truth(const Part& part, const Region& region) {
  return part.row_ptr[region.query.low] == part.row_ptr[region.query.high + 1] ? kNever : kUnknown;
}

__device__ inline Truth data_truth(const Part& part, const Region& region) {
  switch (part.kind) {
    case PartKind::KeyLengths:
      return key_lengths_truth(part, region);
    case PartKind::Documents:
      return documents_truth(part, region);
    case PartKind::Csr:
      return csr_truth(part, region);
    default:
      return kUnknown;
  }
}

__device__ inline Truth leaf_truth(const Program& program, const Grid& grid, const Part& part,
                                   const Region& region, const RegionSlots& slots) {
  return part.kind == PartKind::Expression ? expression_truth(program, grid, part, region, slots)
                                           : data_truth(part, region);
}

// What is said of a region where nothing that is drawn is kept, in the lower two bits, and where
// all of it is, in the upper two.
inline constexpr unsigned kAnyNever = kNever * 5;
inline constexpr unsigned kAnyAlways = kAlways * 5;
inline constexpr unsigned kAsDrawn = kNever | kAlways << 2;

__device__ inline unsigned both(unsigned a, unsigned b) {
  return ((a | b) & kAnyNever) | (a & b & kAnyAlways);
}

__device__ inline unsigned region_truth(const Program& program, const Grid& grid,
                                        const Region& region, const RegionSlots& slots) {
  std::uint64_t stack = 0;  // four bits a part, the last in the lowest
  const int parts = program.mask.part_count;
#pragma unroll 1
  for (int i = 0; i < program.mask.evaluated_count(); ++i) {
    const Part& part = i < parts ? program.parts[i] : program.input(i);
    const auto a = static_cast<unsigned>(stack & 15);
    const auto b = static_cast<unsigned>(stack >> 4 & 15);
    switch (part.kind) {
      case PartKind::And:
        stack = (stack >> 8 << 4) | both(a, b);
        break;
      case PartKind::Or:
        stack = (stack >> 8 << 4) | (a & b & kAnyNever) | ((a | b) & kAnyAlways);
        break;
      case PartKind::Not:
        stack = (stack >> 4 << 4) | (a >> 1 & kAnyNever) | (a << 1 & kAnyAlways);
        break;
      default: {
        const Truth known = leaf_truth(program, grid, part, region, slots);
        const unsigned truth =
            i == program.mask.drawn_part && known == kUnknown ? kAsDrawn : known * 5U;
        stack = i < parts ? stack << 4 | truth : both(a, truth);
      }
    }
  }
  return static_cast<unsigned>(stack & 15);
}

}  // namespace stof::mask_layout
