#include "mask/evaluate.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/parallel.hpp"
#include "mask/bits.hpp"
#include "stof/error.hpp"

namespace stof::mask {

namespace {

constexpr std::int64_t kMaxPairs = std::int64_t{1} << 33;

void fill_row(const DenseData& data, const RowPosition& row, std::int64_t k_begin,
              std::span<std::uint64_t> words) {
  const auto bits = data.keep.row(row.batch, row.head, row.query).subspan(k_begin / kWordBits);
  std::ranges::copy(bits.first(std::min(bits.size(), words.size())), words.begin());
}

void fill_row(const BlockData& data, const RowPosition& row, std::int64_t k_begin,
              std::span<std::uint64_t> words) {
  const std::int64_t k_end = std::min(data.kv_len, k_begin + std::ssize(words) * kWordBits);
  const std::int64_t block_row = row.query / data.block_size;
  for (std::int64_t k = k_begin; k < k_end;) {
    const std::int64_t block = k / data.block_size;
    const std::int64_t stop = std::min(k_end, (block + 1) * data.block_size);
    if (data.keep.at(row.batch, row.head, block_row, block)) {
      set_bits(words, k - k_begin, stop - k_begin);
    }
    k = stop;
  }
}

void fill_row(const CsrData& data, const RowPosition& row, std::int64_t k_begin,
              std::span<std::uint64_t> words) {
  const auto begin = data.col_idx.begin() + data.row_ptr[row.query];
  const auto end = data.col_idx.begin() + data.row_ptr[row.query + 1];
  const std::int64_t k_end = k_begin + std::ssize(words) * kWordBits;
  for (auto key = std::lower_bound(begin, end, k_begin); key != end && *key < k_end; ++key) {
    const std::int64_t at = *key - k_begin;
    words[at / kWordBits] |= std::uint64_t{1} << (at % kWordBits);
  }
}

Truth combine_truths(Operation operation, Truth a, Truth b) {
  const Truth decides = operation == Operation::And ? Truth::Never : Truth::Always;
  if (a == decides || b == decides) {
    return decides;
  }
  return a == b ? a : Truth::Unknown;
}

Truth negate(Truth truth) {
  switch (truth) {
    case Truth::Never:
      return Truth::Always;
    case Truth::Always:
      return Truth::Never;
    case Truth::Unknown:
      break;
  }
  return Truth::Unknown;
}

// Words hold the answer of data at once, so that only an empty stretch of rows is worth a look.
Truth truth_of(const CsrData& data, const Region& region) {
  return data.row_ptr[region.q_begin] == data.row_ptr[region.q_end] ? Truth::Never : Truth::Unknown;
}

}  // namespace

Evaluator::Evaluator(const Mask& mask, const Extent& extent, const CaptureValues& captures)
    : mask_(mask), extent_(extent) {
  check_extent(mask, extent);
  add_part(mask, captures);
  truths_.resize(parts_.size());
}

void Evaluator::add_part(const Mask& mask, const CaptureValues& captures) {
  const auto& form = mask.node().form;
  if (const auto* predicate = std::get_if<Expr>(&form)) {
    parts_.push_back({ExpressionEvaluator(*predicate, extent_, captures), {}, {}});
  } else if (const auto* dense = std::get_if<DenseData>(&form)) {
    parts_.push_back({dense, {}, {}});
  } else if (const auto* blocks = std::get_if<BlockData>(&form)) {
    parts_.push_back({blocks, {}, {}});
  } else if (const auto* csr = std::get_if<CsrData>(&form)) {
    parts_.push_back({csr, {}, {}});
  } else {
    const auto& combination = std::get<Combination>(form);
    std::vector<std::size_t> operands;
    for (const Mask& operand : combination.operands) {
      add_part(operand, captures);
      operands.push_back(parts_.size() - 1);
    }
    parts_.push_back({combination.operation, std::move(operands), {}});
  }
}

bool Evaluator::at(const RowPosition& position, std::int64_t key) {
  std::uint64_t word = 0;
  row(position, key / kWordBits * kWordBits, {&word, 1});
  return word >> (key % kWordBits) & 1;
}

void Evaluator::row(const RowPosition& row, std::int64_t k_begin, std::span<std::uint64_t> words) {
  for (std::size_t i = 0; i + 1 < parts_.size(); ++i) {
    parts_[i].words.resize(words.size());
    fill(parts_[i], row, k_begin, parts_[i].words);
  }
  fill(parts_.back(), row, k_begin, words);
}

void Evaluator::fill(Part& part, const RowPosition& row, std::int64_t k_begin,
                     std::span<std::uint64_t> words) {
  std::ranges::fill(words, 0);
  if (auto* predicate = std::get_if<ExpressionEvaluator>(&part.form)) {
    predicate->row(row, k_begin, words);
  } else if (const auto* dense = std::get_if<const DenseData*>(&part.form)) {
    fill_row(**dense, row, k_begin, words);
  } else if (const auto* blocks = std::get_if<const BlockData*>(&part.form)) {
    fill_row(**blocks, row, k_begin, words);
  } else if (const auto* csr = std::get_if<const CsrData*>(&part.form)) {
    fill_row(**csr, row, k_begin, words);
  } else {
    combine(part, k_begin, words);
  }
}

void Evaluator::combine(const Part& part, std::int64_t k_begin,
                        std::span<std::uint64_t> words) const {
  const std::vector<std::uint64_t>& a = parts_[part.operands[0]].words;
  switch (std::get<Operation>(part.form)) {
    case Operation::And:
      std::ranges::transform(a, parts_[part.operands[1]].words, words.begin(), std::bit_and{});
      break;
    case Operation::Or:
      std::ranges::transform(a, parts_[part.operands[1]].words, words.begin(), std::bit_or{});
      break;
    case Operation::Not:
      for (std::size_t i = 0; i < words.size(); ++i) {
        const std::int64_t key = k_begin + static_cast<std::int64_t>(i) * kWordBits;
        words[i] = ~a[i] & low_bits(std::max<std::int64_t>(0, extent_.kv_len - key));
      }
      break;
  }
}

Truth Evaluator::over(const Region& region) {
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    Part& part = parts_[i];
    if (auto* predicate = std::get_if<ExpressionEvaluator>(&part.form)) {
      truths_[i] = predicate->over(region);
    } else if (const auto* csr = std::get_if<const CsrData*>(&part.form)) {
      truths_[i] = truth_of(**csr, region);
    } else if (const auto* operation = std::get_if<Operation>(&part.form)) {
      const Truth a = truths_[part.operands[0]];
      truths_[i] = *operation == Operation::Not
                       ? negate(a)
                       : combine_truths(*operation, a, truths_[part.operands[1]]);
    } else {
      truths_[i] = Truth::Unknown;
    }
  }
  return truths_.back();
}

BitTensor evaluate_all(const Mask& mask, const Extent& extent, const CaptureValues& captures) {
  const Evaluator evaluator(mask, extent, captures);
  BitTensor bits{.batch = mask.uses_batch() ? extent.batch : 1,
                 .heads = mask.uses_head() ? extent.heads : 1,
                 .rows = extent.q_len,
                 .columns = extent.kv_len,
                 .words = {}};
  const std::int64_t planes = bits.batch * bits.heads;  // at most 2^60
  if (planes > kMaxPairs || planes * bits.rows > kMaxPairs ||
      planes * bits.rows * bits.words_per_row() > kMaxPairs / kWordBits) {
    throw GraphError(fmt::format("mask: [{}, {}, {}, {}] is too large to be written out in full",
                                 bits.batch, bits.heads, bits.rows, bits.columns));
  }
  const std::int64_t width = bits.words_per_row();
  bits.words.resize(planes * bits.rows * width);
  constexpr std::int64_t kRowsAtOnce = 64;  // share one copy of the evaluator
  const std::int64_t rows = planes * bits.rows;
  base::parallel_for(ceil_div(rows, kRowsAtOnce), [&](std::int64_t chunk) {
    Evaluator own = evaluator;
    for (std::int64_t r = chunk * kRowsAtOnce; r < std::min(rows, (chunk + 1) * kRowsAtOnce); ++r) {
      const std::int64_t plane = r / bits.rows;
      own.row({.batch = plane / bits.heads, .head = plane % bits.heads, .query = r % bits.rows}, 0,
              std::span(bits.words).subspan(r * width, width));
    }
  });
  return bits;
}

}  // namespace stof::mask
