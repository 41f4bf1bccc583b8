// Masks from data: what callers hand over is checked here once, and packed into bits.
#include <array>
#include <limits>
#include <string_view>

#include <fmt/format.h>

#include "mask/node.hpp"
#include "stof/error.hpp"

namespace stof {

namespace {

using mask::BitTensor;
using mask::kMaxLength;

constexpr std::int64_t kMaxBits = std::int64_t{1} << 36;  // with padding: 8 GiB

std::string list_text(std::span<const std::int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

void check_length(std::string_view what, std::int64_t value) {
  if (value < 1 || value > kMaxLength) {
    throw GraphError(fmt::format("mask: {} {} is not in 1 to {}", what, value, kMaxLength));
  }
}

// The extents of [rows, columns] or [batch, heads, rows, columns], with no words yet.
BitTensor bit_extents(std::string_view form, std::span<const std::int64_t> shape) {
  if (shape.size() != 2 && shape.size() != 4) {
    throw GraphError(fmt::format("mask: {} data has the shape {}; its rank must be 2 or 4", form,
                                 list_text(shape)));
  }
  std::int64_t bits = 1;
  for (const std::int64_t size : shape) {
    if (size < 1 || size > kMaxLength || bits > kMaxBits / size) {
      throw GraphError(fmt::format(
          "mask: {} data has the shape {}; each extent must be in 1 to {} and all in 2^36", form,
          list_text(shape), kMaxLength));
    }
    bits *= size;
  }
  const bool has_planes = shape.size() == 4;
  BitTensor tensor{.batch = has_planes ? shape[0] : 1,
                   .heads = has_planes ? shape[1] : 1,
                   .rows = shape[shape.size() - 2],
                   .columns = shape[shape.size() - 1],
                   .words = {}};
  const std::int64_t rows = tensor.batch * tensor.heads * tensor.rows;
  if (rows > kMaxBits / mask::kWordBits / tensor.words_per_row()) {
    throw GraphError(fmt::format("mask: {} data has the shape {}, which takes more than 2^36 bits",
                                 form, list_text(shape)));
  }
  return tensor;
}

std::int64_t word_count(const BitTensor& bits) {
  return bits.batch * bits.heads * bits.rows * bits.words_per_row();
}

void check_view(std::string_view form, const TensorView& keep) {
  if (keep.dtype != DType::Bool && keep.dtype != DType::UInt8) {
    throw GraphError(fmt::format("mask: {} data is {}, not bool or uint8", form, name(keep.dtype)));
  }
  if (keep.location != Location::Host) {
    throw GraphError(fmt::format("mask: {} data lies on the device, not on the host", form));
  }
  if (keep.data == nullptr) {
    throw GraphError(fmt::format("mask: {} data has no address", form));
  }
  if (!keep.strides.empty() && keep.strides.size() != keep.shape.size()) {
    throw GraphError(fmt::format("mask: {} data has {} strides for {} extents", form,
                                 keep.strides.size(), keep.shape.size()));
  }
}

// Strides of batch, head, row and column, in bytes.
std::array<std::int64_t, 4> strides_of(const TensorView& keep, const BitTensor& bits) {
  if (keep.strides.empty()) {
    const std::int64_t plane = bits.rows * bits.columns;
    return {bits.heads * plane, plane, bits.columns, 1};
  }
  const auto& strides = keep.strides;
  return strides.size() == 4
             ? std::array<std::int64_t, 4>{strides[0], strides[1], strides[2], strides[3]}
             : std::array<std::int64_t, 4>{0, 0, strides[0], strides[1]};
}

BitTensor pack(std::string_view form, const TensorView& keep) {
  check_view(form, keep);
  BitTensor bits = bit_extents(form, keep.shape);
  bits.words.resize(word_count(bits));
  const auto strides = strides_of(keep, bits);
  const auto* bytes = static_cast<const unsigned char*>(keep.data);
  auto word = bits.words.begin();
  for (std::int64_t r = 0; r < bits.batch * bits.heads * bits.rows; ++r) {
    const std::int64_t plane = r / bits.rows;
    const unsigned char* row = bytes + plane / bits.heads * strides[0] +
                               plane % bits.heads * strides[1] + r % bits.rows * strides[2];
    for (std::int64_t c = 0; c < bits.columns; ++c) {
      word[c / mask::kWordBits] |= std::uint64_t{row[c * strides[3]] != 0} << (c % mask::kWordBits);
    }
    word += bits.words_per_row();
  }
  return bits;
}

void check_row_ptr(std::span<const std::int32_t> row_ptr, std::int64_t columns) {
  check_length("the number of csr rows", std::ssize(row_ptr) - 1);
  if (row_ptr.front() != 0) {
    throw GraphError(fmt::format("mask: csr row_ptr starts with {}, not 0", row_ptr.front()));
  }
  for (std::size_t r = 1; r < row_ptr.size(); ++r) {
    if (row_ptr[r] < row_ptr[r - 1]) {
      throw GraphError(fmt::format("mask: csr row_ptr falls from {} to {} at row {}",
                                   row_ptr[r - 1], row_ptr[r], r - 1));
    }
  }
  if (row_ptr.back() != columns) {
    throw GraphError(fmt::format("mask: csr row_ptr ends with {}, but col_idx has {} entries",
                                 row_ptr.back(), columns));
  }
}

void check_columns(std::span<const std::int32_t> row_ptr, std::span<const std::int32_t> col_idx,
                   std::int64_t kv_len) {
  for (std::size_t r = 0; r + 1 < row_ptr.size(); ++r) {
    for (std::int32_t i = row_ptr[r]; i < row_ptr[r + 1]; ++i) {
      if (col_idx[i] < 0 || col_idx[i] >= kv_len) {
        throw GraphError(
            fmt::format("mask: csr row {} holds column {}, which is not below kv_len {}", r,
                        col_idx[i], kv_len));
      }
      if (i > row_ptr[r] && col_idx[i] <= col_idx[i - 1]) {
        throw GraphError(fmt::format("mask: csr row {} holds column {} after {}; columns ascend", r,
                                     col_idx[i], col_idx[i - 1]));
      }
    }
  }
}

}  // namespace

Mask Mask::dense(const TensorView& keep) {
  return mask::make_mask(mask::DenseData{.keep = pack("dense", keep)});
}

Mask Mask::bits(std::span<const std::uint64_t> words, const Shape& shape) {
  BitTensor keep = bit_extents("packed", shape.sizes());
  if (std::ssize(words) != word_count(keep)) {
    throw GraphError(fmt::format("mask: bits of {} take {} words, not {}", shape.text(),
                                 word_count(keep), words.size()));
  }
  keep.words.assign(words.begin(), words.end());
  const std::int64_t width = keep.words_per_row();
  const std::uint64_t last = mask::low_bits(keep.columns - (width - 1) * mask::kWordBits);
  for (std::int64_t i = width - 1; i < std::ssize(keep.words); i += width) {
    keep.words[i] &= last;
  }
  return mask::make_mask(mask::DenseData{.keep = std::move(keep)});
}

Mask Mask::csr(std::span<const std::int32_t> row_ptr, std::span<const std::int32_t> col_idx,
               std::int64_t kv_len) {
  check_length("kv_len", kv_len);
  check_row_ptr(row_ptr, std::ssize(col_idx));
  check_columns(row_ptr, col_idx, kv_len);
  return mask::make_mask(mask::CsrData{.row_ptr = {row_ptr.begin(), row_ptr.end()},
                                       .col_idx = {col_idx.begin(), col_idx.end()},
                                       .kv_len = kv_len});
}

Mask Mask::blocks(const TensorView& keep, int block_size, std::int64_t q_len, std::int64_t kv_len) {
  return mask::make_mask(mask::BlockData{
      .keep = pack("block", keep), .block_size = block_size, .q_len = q_len, .kv_len = kv_len});
}

}  // namespace stof
