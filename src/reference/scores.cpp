#include "reference/scores.hpp"

#include <span>
#include <utility>
#include <vector>

#include "reference/score_function.hpp"
#include "reference/visible_keys.hpp"

namespace stof::reference {

namespace {

mask::Extent extent_of(const Array& scores) {
  return {.batch = scores.extent(0),
          .heads = scores.extent(1),
          .q_len = scores.extent(2),
          .kv_len = scores.extent(3)};
}

// Calls body(batch, head, query, row of scores) for each row of [batch, heads, q_len, kv_len].
template <typename Body>
void for_score_rows(std::vector<double>& scores, const mask::Extent& extent, const Options& options,
                    Body body) {
  const std::int64_t rows = extent.batch * extent.heads * extent.q_len;
  for_ranges(rows, extent.kv_len, options, [&](std::int64_t begin, std::int64_t end) {
    Body own = body;
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t head = row / extent.q_len;
      own(head / extent.heads, head % extent.heads, row % extent.q_len,
          std::span(scores).subspan(static_cast<std::size_t>(row * extent.kv_len),
                                    static_cast<std::size_t>(extent.kv_len)));
    }
  });
}

}  // namespace

Array modify_scores(const Call& call) {
  const Array x = call.wide_input(0);
  const mask::Extent extent = extent_of(x);
  std::vector<double> scores(x.values().begin(), x.values().end());
  for_score_rows(scores, extent, call.options,
                 [score = ScoreFunction(call, extent)](
                     std::int64_t batch, std::int64_t head, std::int64_t query,
                     std::span<double> row) mutable { score.apply(batch, head, query, 0, row); });
  return call.result(std::move(scores));
}

Array mask_scores(const Call& call) {
  Array x = call.wide_input(0);
  const mask::Extent extent = extent_of(x);
  constexpr std::size_t kFirstMaskInput = 1;
  const VisibleKeys visible = visible_keys(call, extent, kFirstMaskInput);
  if (visible == nullptr) {
    return x;
  }
  std::vector<double> scores(x.values().begin(), x.values().end());
  for_score_rows(
      scores, extent, call.options,
      [&visible](std::int64_t batch, std::int64_t head, std::int64_t query, std::span<double> row) {
        hide_keys(visible->row(batch, head, query), 0, row);
      });
  return call.result(std::move(scores));
}

}  // namespace stof::reference
