// Whether a query sees each of eight neighbouring keys.
#pragma once

#include <algorithm>

#include "mask_layout/interpreter.cuh"
#include "mask_layout/region_truth.cuh"

namespace stof::mask_layout {

// Bits [begin, end) of eight, as far as they are among them.
__device__ inline unsigned run_of_bits(std::int64_t begin, std::int64_t end) {
  const auto first =
      static_cast<unsigned>(std::min(std::max(begin, std::int64_t{0}), std::int64_t{kLanes}));
  const auto last =
      static_cast<unsigned>(std::min(std::max(end, std::int64_t{0}), std::int64_t{kLanes}));
  return first < last ? (1U << last) - (1U << first) : 0;
}

// Where the row of the data that the query reads begins, in rows.
__device__ inline std::int64_t data_row(const Part& part, const Point& point, std::int64_t row) {
  const std::int64_t batch = part.batch == 1 ? 0 : point.batch;
  const std::int64_t head = part.heads == 1 ? 0 : point.head;
  return (batch * part.heads + head) * part.rows + row;
}

__device__ inline std::int64_t bytes_of_row(const Part& part) {
  return (part.columns + 63) / 64 * 8;
}

__device__ inline unsigned dense_bits(const Part& part, const Point& point) {
  const auto* bytes = static_cast<const std::uint8_t*>(part.data);
  return bytes[data_row(part, point, point.query) * bytes_of_row(part) + point.key / kLanes];
}

// Bit i for byte i: the highest bit of each byte that is not 0, gathered by a product.
__device__ inline unsigned nonzero_bytes(std::uint64_t bytes) {
  constexpr std::uint64_t kLow = 0x7F7F7F7F7F7F7F7F;
  const std::uint64_t high = (((bytes & kLow) + kLow) | bytes) & ~kLow;
  return static_cast<unsigned>((high >> 7) * 0x0102040810204080 >> 56);
}

__device__ inline unsigned dense_bytes(const Part& part, const Point& point) {
  const auto* row = static_cast<const std::uint8_t*>(part.data) +
                    data_row(part, point, point.query) * part.columns;
  const std::uint8_t* bytes = row + point.key;
  if (point.key + kLanes <= part.columns && reinterpret_cast<std::uintptr_t>(bytes) % kLanes == 0) {
    return nonzero_bytes(*reinterpret_cast<const std::uint64_t*>(bytes));
  }
  unsigned bits = 0;
#pragma unroll
  for (int lane = 0; lane < kLanes; ++lane) {
    bits |= unsigned{point.key + lane < part.columns && bytes[lane] != 0} << lane;
  }
  return bits;
}

__device__ inline unsigned block_bits(const Part& part, const Point& point) {
  const auto* row = static_cast<const std::uint8_t*>(part.data) +
                    data_row(part, point, point.query / part.block_size) * bytes_of_row(part);
  unsigned bits = 0;
  std::int64_t block = point.key / part.block_size;
  for (std::int64_t end = point.key; end < point.key + kLanes && block < part.columns; ++block) {
    const std::int64_t begin = end;
    end = (block + 1) * part.block_size;
    if (row[block / 8] >> (block % 8) & 1) {
      bits |= run_of_bits(begin - point.key, end - point.key);
    }
  }
  return bits;
}

__device__ inline unsigned csr_bits(const Part& part, const Point& point) {
  const auto* columns = static_cast<const std::int32_t*>(part.data);
  std::int32_t low = part.row_ptr[point.query];
  const std::int32_t row_end = part.row_ptr[point.query + 1];
  for (std::int32_t high = row_end; low < high;) {
    const std::int32_t middle = low + (high - low) / 2;
    if (columns[middle] < point.key) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  unsigned bits = 0;
  for (; low < row_end && columns[low] < point.key + kLanes; ++low) {
    bits |= 1U << (columns[low] - point.key);
  }
  return bits;
}

__device__ inline unsigned document_bits(const Part& part, const Point& point) {
  const int document = document_of(part, point.query);
  if (document == 0 || document == part.columns) {
    return 0;
  }
  const auto* offsets = static_cast<const std::int32_t*>(part.data) + document;
  return run_of_bits(offsets[-1] - point.key, offsets[0] - point.key);
}

// Bits of keys beyond kv_len may be 1.
__device__ inline unsigned leaf_bits(const Program& program, const Grid& grid, const Part& part,
                                     const Point& point, const Slots& slots) {
  switch (part.kind) {
    case PartKind::Bits:
      return dense_bits(part, point);
    case PartKind::Bytes:
      return dense_bytes(part, point);
    case PartKind::Blocks:
      return block_bits(part, point);
    case PartKind::Csr:
      return csr_bits(part, point);
    case PartKind::KeyLengths:
      return run_of_bits(0, static_cast<const std::int32_t*>(part.data)[point.batch] - point.key);
    case PartKind::Documents:
      return document_bits(part, point);
    default:
      return Interpreter<kLanes>(program, grid, point, slots)
          .run(part.first_key_step, part.end_step);
  }
}

// What expressions need of the row of the point, for its keys.
__device__ inline void prepare_row(const Program& program, const Grid& grid, const Point& point,
                                   const Slots& slots) {
  for (int i = 0; i < program.mask.part_count; ++i) {
    const Part& part = program.parts[i];
    if (part.first_step != part.first_key_step) {
      Interpreter<1>(program, grid, point, slots).run(part.first_step, part.first_key_step);
    }
  }
}

__device__ inline unsigned key_bits(const Program& program, const Grid& grid, const Point& point,
                                    const Slots& slots) {
  unsigned __int128 stack = 0;  // a byte a part, the last in the lowest
  for (int i = 0; i < program.mask.part_count; ++i) {
    const Part& part = program.parts[i];
    const auto a = static_cast<unsigned>(stack & 0xFF);
    const auto b = static_cast<unsigned>(stack >> 8 & 0xFF);
    switch (part.kind) {
      case PartKind::And:
        stack = (stack >> 16 << 8) | (a & b);
        break;
      case PartKind::Or:
        stack = (stack >> 16 << 8) | (a | b);
        break;
      case PartKind::Not:
        stack = (stack >> 8 << 8) | (a ^ 0xFF);
        break;
      default:
        stack = stack << 8 | leaf_bits(program, grid, part, point, slots);
    }
  }
  auto bits = static_cast<unsigned>(stack & 0xFF);
  for (int i = program.mask.part_count; i < program.mask.evaluated_count(); ++i) {
    bits &= leaf_bits(program, grid, program.input(i), point, slots);
  }
  return bits & run_of_bits(0, grid.kv_len - point.key);
}

}  // namespace stof::mask_layout
