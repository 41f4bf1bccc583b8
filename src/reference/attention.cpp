// Attention over blocks of query rows: two matrix products with a softmax between them, over the
// keys that some row of the block sees.
#include "reference/attention.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>

#include "base/parallel.hpp"
#include "graph/op_info.hpp"
#include "reference/score_function.hpp"
#include "reference/visible_keys.hpp"

namespace stof::reference {

namespace {

constexpr std::int64_t kQueryBlock = 64;
struct Problem {
  const Call& call;
  mask::Extent extent;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t value_dim = 0;
  double scale = 1;
  VisibleKeys visible;
  std::optional<ScoreFunction> score;
  std::vector<bool> has_finite_values;  // of v, for each batch element and head

  const Array& q() const { return call.input(0); }
  const Array& k() const { return call.input(1); }
  const Array& v() const { return call.input(2); }
  Precision precision() const { return call.options.precision; }
};

// Query rows of one head, and the keys that some of them may see.
struct Block {
  std::int64_t batch = 0;
  std::int64_t head = 0;
  std::int64_t query = 0;
  std::int64_t rows = 0;
  std::int64_t first_key = 0;
  std::int64_t keys = 0;
};

// Where a head of q, k or v begins.
MatrixView head_of(const Array& array, std::int64_t batch, std::int64_t head) {
  const std::int64_t columns = array.extent(3);
  const std::int64_t size = array.extent(2) * columns;
  return {array.elements + (batch * array.extent(1) + head) * size, columns, 1};
}

std::int64_t kv_head(const Problem& problem, std::int64_t head) {
  return head / (problem.extent.heads / problem.kv_heads);
}

std::vector<bool> finite_heads(const Array& v, const Options& options) {
  const std::int64_t size = v.extent(2) * v.extent(3);
  std::vector<bool> is_finite(static_cast<std::size_t>(v.extent(0) * v.extent(1)));
  const Array wide = widened(v, options);
  for (std::size_t head = 0; head < is_finite.size(); ++head) {
    const auto values = wide.values().subspan(head * static_cast<std::size_t>(size),
                                              static_cast<std::size_t>(size));
    is_finite[head] =
        std::ranges::all_of(values, [](double value) { return std::isfinite(value); });
  }
  return is_finite;
}

// Keys that no row of the block sees before and behind those that some row sees are left out.
void narrow_keys(const Problem& problem, Block& block) {
  block.first_key = 0;
  block.keys = problem.extent.kv_len;
  if (problem.visible == nullptr) {
    return;
  }
  std::int64_t first = problem.extent.kv_len;
  std::int64_t end = 0;
  for (std::int64_t i = 0; i < block.rows; ++i) {
    const auto row = problem.visible->row(block.batch, block.head, block.query + i);
    for (std::size_t word = 0; word < row.size(); ++word) {
      if (row[word] != 0) {
        const std::int64_t key = static_cast<std::int64_t>(word) * mask::kWordBits;
        first = std::min(first, key + std::countr_zero(row[word]));
        end = std::max(end, key + mask::kWordBits - std::countl_zero(row[word]));
      }
    }
  }
  block.first_key = std::min(first, end);
  block.keys = end - block.first_key;
}

// From q·k to what the softmax sees.
void finish_scores(const Problem& problem, const Block& block, std::int64_t row,
                   std::optional<ScoreFunction>& score, std::span<double> scores) {
  const bool is_model = problem.precision() == Precision::Model;
  const auto to_float = [&](double value) {
    return rounded(value, DType::Float32, problem.precision());
  };
  for (double& value : scores) {
    value = is_model ? to_float(to_float(value) * to_float(problem.scale)) : value * problem.scale;
  }
  if (score) {
    score->apply(block.batch, block.head, block.query + row, block.first_key, scores);
    if (is_model) {
      std::ranges::transform(scores, scores.begin(), to_float);
    }
  }
  if (problem.visible != nullptr) {
    hide_keys(problem.visible->row(block.batch, block.head, block.query + row), block.first_key,
              scores);
  }
}

struct RowSum {
  double max = -kInfinity;
  double sum = 0;

  double log() const { return sum == 0 ? -kInfinity : max + std::log(sum); }
};

// Scores become exponentials, relative to the largest and not divided by their sum; in the model's
// precision they are rounded to the dtype of v where they meet it, and not in the sum.
RowSum exponentiate(const Problem& problem, std::span<double> scores) {
  RowSum row;
  for (const double value : scores) {
    row.max = value > row.max || std::isnan(value) ? value : row.max;
  }
  if (row.max == -kInfinity) {
    std::ranges::fill(scores, 0.0);
    return row;
  }
  const bool is_model = problem.precision() == Precision::Model;
  const double roundoff = problem.call.options.roundoff_of_sums;
  const double apart =
      1 / (1 + static_cast<double>(problem.head_dim) * roundoff / 8 * std::abs(row.max));
  for (double& value : scores) {
    value = std::exp((value - row.max) * apart);
    row.sum += value;
    value = is_model ? rounded(value, problem.v().dtype, Precision::Model) : value;
  }
  row.sum *= 1 + static_cast<double>(scores.size()) * roundoff / 32;
  return row;
}

// As multiply, but a probability of 0 hides even a value that is no number.
void multiply_seen(std::span<const double> probabilities, const Array& v, std::int64_t offset,
                   std::int64_t columns, double* to) {
  std::fill_n(to, columns, 0.0);
  std::visit(
      [&](const auto* values) {
        for (std::size_t key = 0; key < probabilities.size(); ++key) {
          const auto* row = values + offset + static_cast<std::int64_t>(key) * columns;
          for (std::int64_t i = 0; i < columns && probabilities[key] != 0; ++i) {
            to[i] += probabilities[key] * to_double(row[i]);
          }
        }
      },
      v.elements);
}

// What a block makes on its way.
struct Softmax {
  std::vector<double> weights;  // [rows, keys], exponentials
  std::vector<RowSum> sums;     // [rows]
};

Softmax softmax_of(const Problem& problem, const Block& block) {
  const MatrixView q = head_of(problem.q(), block.batch, block.head).from(block.query, 0);
  const MatrixView k =
      head_of(problem.k(), block.batch, kv_head(problem, block.head)).from(block.first_key, 0);
  Softmax softmax{.weights = std::vector<double>(static_cast<std::size_t>(block.rows * block.keys)),
                  .sums = std::vector<RowSum>(static_cast<std::size_t>(block.rows))};
  multiply(q, {k.elements, k.column_stride, k.row_stride},
           {.m = block.rows, .n = block.keys, .k = problem.head_dim}, softmax.weights.data(),
           block.keys);
  std::optional<ScoreFunction> score = problem.score;
  const auto keys = static_cast<std::size_t>(block.keys);
  for (std::size_t row = 0; row < softmax.sums.size(); ++row) {
    const auto of_row = std::span(softmax.weights).subspan(row * keys, keys);
    finish_scores(problem, block, static_cast<std::int64_t>(row), score, of_row);
    softmax.sums[row] = exponentiate(problem, of_row);
  }
  return softmax;
}

// to [rows, value_dim] = weights times v, not yet divided.
void weigh_values(const Problem& problem, const Block& block, const Softmax& softmax, double* to) {
  const std::int64_t columns = problem.value_dim;
  const std::int64_t kv = kv_head(problem, block.head);
  const std::int64_t head = block.batch * problem.kv_heads + kv;
  if (problem.has_finite_values[static_cast<std::size_t>(head)]) {
    const MatrixView v = head_of(problem.v(), block.batch, kv).from(block.first_key, 0);
    multiply({softmax.weights.data(), block.keys, 1}, v,
             {.m = block.rows, .n = columns, .k = block.keys}, to, columns);
    return;
  }
  const std::int64_t offset = (head * problem.extent.kv_len + block.first_key) * columns;
  const auto keys = static_cast<std::size_t>(block.keys);
  for (std::size_t row = 0; row < softmax.sums.size(); ++row) {
    multiply_seen(std::span(softmax.weights).subspan(row * keys, keys), problem.v(), offset,
                  columns, to + static_cast<std::int64_t>(row) * columns);
  }
}

// to [rows, value_dim]; lse [rows].
void attend(const Problem& problem, Block block, double* to, double* lse) {
  narrow_keys(problem, block);
  if (block.keys == 0) {
    return;  // zeros and -inf, as they are
  }
  const Softmax softmax = softmax_of(problem, block);
  weigh_values(problem, block, softmax, to);
  for (std::size_t row = 0; row < softmax.sums.size(); ++row) {
    lse[row] = softmax.sums[row].log();
    for (std::int64_t i = 0; i < problem.value_dim; ++i, ++to) {
      *to = softmax.sums[row].sum == 0 ? 0.0 : *to / softmax.sums[row].sum;
    }
  }
}

Problem problem_of(const Call& call) {
  const Array& q = call.input(0);
  const Array& k = call.input(1);
  Problem problem{.call = call,
                  .extent = {.batch = q.extent(0),
                             .heads = q.extent(1),
                             .q_len = q.extent(2),
                             .kv_len = k.extent(2)},
                  .kv_heads = k.extent(1),
                  .head_dim = q.extent(3),
                  .value_dim = call.input(2).extent(3),
                  .scale = graph::attribute<double>(call.op, "scale"),
                  .visible = nullptr,
                  .score = std::nullopt,
                  .has_finite_values = finite_heads(call.input(2), call.options)};
  constexpr std::size_t kFirstMaskInput = 3;
  problem.visible = visible_keys(call, problem.extent, kFirstMaskInput);
  if (graph::find_attribute<Expr>(call.op, "score") != nullptr) {
    problem.score.emplace(call, problem.extent);
  }
  return problem;
}

}  // namespace

std::vector<Array> attention(const Call& call) {
  const Problem problem = problem_of(call);
  const mask::Extent& extent = problem.extent;
  const std::int64_t rows = extent.batch * extent.heads * extent.q_len;
  std::vector<double> output(static_cast<std::size_t>(rows * problem.value_dim));
  std::vector<double> lse(static_cast<std::size_t>(rows), -kInfinity);
  const std::int64_t blocks = (extent.q_len + kQueryBlock - 1) / kQueryBlock;
  const auto attend_block = [&](std::int64_t task) {
    const std::int64_t head = task / blocks;
    const std::int64_t query = task % blocks * kQueryBlock;
    const Block block{.batch = head / extent.heads,
                      .head = head % extent.heads,
                      .query = query,
                      .rows = std::min(kQueryBlock, extent.q_len - query)};
    const std::int64_t row = head * extent.q_len + query;
    attend(problem, block, output.data() + row * problem.value_dim, lse.data() + row);
  };
  base::parallel_for(extent.batch * extent.heads * blocks, attend_block, call.options.thread_count);
  std::vector<Array> arrays = {call.result(std::move(output))};
  if (call.results.size() > 1) {
    arrays.push_back(call.result(std::move(lse), 1));
  }
  return arrays;
}

}  // namespace stof::reference
