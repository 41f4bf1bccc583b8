#pragma once

#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "mask/evaluate_expression.hpp"
#include "mask/extent.hpp"
#include "mask/node.hpp"
#include "stof/mask.hpp"

namespace stof::mask {

// A mask for one attention, ready to be asked. Not for use by two threads at once; copies are cheap
// and independent. The tensors of captures must outlive it.
class Evaluator {
 public:
  // Throws GraphError where the mask does not fit (check_extent) or a capture has no value, or one
  // of another dtype or rank, or one that is empty or not on the host.
  Evaluator(const Mask& mask, const Extent& extent, const CaptureValues& captures = {});

  // Whether the query sees the key.
  bool at(const RowPosition& row, std::int64_t key);
  // The keys from k_begin on, a multiple of 64, 64 a word, into `words`; 0 for those beyond kv_len.
  void row(const RowPosition& row, std::int64_t k_begin, std::span<std::uint64_t> words);
  // What can be said of a region without asking for each pair; never wrong.
  Truth over(const Region& region);

 private:
  // One node of the mask; operands come before what uses them.
  struct Part {
    std::variant<ExpressionEvaluator, const DenseData*, const BlockData*, const CsrData*, Operation>
        form;
    std::vector<std::size_t> operands;
    std::vector<std::uint64_t> words;  // of the row that is asked for
  };

  void add_part(const Mask& mask, const CaptureValues& captures);
  void fill(Part& part, const RowPosition& row, std::int64_t k_begin,
            std::span<std::uint64_t> words);
  void combine(const Part& part, std::int64_t k_begin, std::span<std::uint64_t> words) const;

  Mask mask_;  // owns the data
  Extent extent_;
  std::vector<Part> parts_;
  std::vector<Truth> truths_;
};

// Truth values of all pairs. Throws GraphError above 2^33 pairs. For tests and small masks.
BitTensor evaluate_all(const Mask& mask, const Extent& extent, const CaptureValues& captures = {});

}  // namespace stof::mask
