#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "expr/interpreter.hpp"
#include "mask/extent.hpp"
#include "reference/call.hpp"

namespace stof::reference {

// A score modifier that is ready to run over rows of scores. Copies are independent; one a thread.
class ScoreFunction {
 public:
  // The attribute "score" of the operator, with the captures of the call.
  ScoreFunction(const Call& call, const mask::Extent& extent);

  // Changes the scores of one query with keys from `first_key` on.
  void apply(std::int64_t batch, std::int64_t head, std::int64_t query, std::int64_t first_key,
             std::span<double> scores);

 private:
  void set(std::optional<int> scalar, std::int64_t word);

  expr::Interpreter interpreter_;
  std::vector<std::int64_t> scalars_;
  std::optional<int> batch_;
  std::optional<int> head_;
  std::optional<int> query_;
  std::optional<int> key_;
  std::optional<int> score_;
};

}  // namespace stof::reference
