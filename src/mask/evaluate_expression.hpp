#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "expr/interpreter.hpp"
#include "expr/interval.hpp"
#include "mask/extent.hpp"
#include "stof/expr.hpp"
#include "stof/tensor.hpp"

namespace stof::mask {

// What captures read, by name: host tensors of the dtype and rank of the capture.
using CaptureValues = std::map<std::string, TensorView, std::less<>>;

struct RowPosition {
  std::int64_t batch = 0;
  std::int64_t head = 0;
  std::int64_t query = 0;
};

// Pairs of queries [q_begin, q_end) and keys [k_begin, k_end), none of them empty.
struct Region {
  std::int64_t batch = 0;
  std::int64_t head = 0;
  std::int64_t q_begin = 0;
  std::int64_t q_end = 0;
  std::int64_t k_begin = 0;
  std::int64_t k_end = 0;
};

enum class Truth : std::uint8_t { Never, Always, Unknown };

// A predicate for one attention. Not for use by two threads at once; copies are independent.
class ExpressionEvaluator {
 public:
  ExpressionEvaluator(const Expr& predicate, const Extent& extent, const CaptureValues& captures);

  // As those of Evaluator.
  void row(const RowPosition& row, std::int64_t k_begin, std::span<std::uint64_t> words);
  Truth over(const Region& region);

 private:
  // Where the scalars are among those of the program; nothing for those that it does not read.
  struct Slots {
    std::optional<int> batch;
    std::optional<int> head;
    std::optional<int> query;
    std::optional<int> key;
  };

  expr::Interpreter interpreter_;
  std::int64_t kv_len_;
  Slots slots_;
  std::vector<std::int64_t> scalars_;   // words at the point that is asked for
  std::vector<expr::Interval> ranges_;  // in the region that is asked for
};

}  // namespace stof::mask
