#include "reference/rotary.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "base/check.hpp"
#include "graph/op_info.hpp"

namespace stof::reference {

namespace {

struct Turn {
  double cosine = 1;
  double sine = 0;
};

// Position of each row: [batch or 1, seq].
std::vector<double> positions_of(const Call& call, std::int64_t seq) {
  if (call.has_input(1)) {
    const Array positions = call.wide_input(1);
    return {positions.values().begin(), positions.values().end()};
  }
  const auto first = static_cast<double>(graph::attribute<std::int64_t>(call.op, "position"));
  std::vector<double> positions(static_cast<std::size_t>(seq));
  for (std::size_t row = 0; row < positions.size(); ++row) {
    positions[row] = first + static_cast<double>(row);
  }
  return positions;
}

// [positions, pairs], worked out once for all heads.
std::vector<Turn> turns_at(const std::vector<double>& positions, double theta, std::int64_t pairs) {
  std::vector<double> frequencies(static_cast<std::size_t>(pairs));
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    frequencies[i] = std::pow(theta, -static_cast<double>(i) / static_cast<double>(pairs));
  }
  std::vector<Turn> turns;
  turns.reserve(positions.size() * frequencies.size());
  for (const double position : positions) {
    for (const double frequency : frequencies) {
      const double angle = position * frequency;
      turns.push_back({.cosine = std::cos(angle), .sine = std::sin(angle)});
    }
  }
  return turns;
}

// Heads as they lie in x: `pitch` elements from row to row, `heads` beside each other there.
struct Layout {
  std::int64_t head_dim = 0;
  std::int64_t seq = 0;
  std::int64_t rows_of_batch = 0;  // with the same positions
  std::int64_t pitch = 0;
  std::int64_t heads = 1;
};

Array turned(const Call& call, const Array& x, const Layout& layout) {
  const auto style = graph::rotary_style_from_name(graph::attribute<std::string>(call.op, "style"));
  STOF_CHECK(style.has_value()) << "rotary style";
  const bool is_half = *style == RotaryStyle::Half;
  const auto rotary_dim = graph::attribute<std::int64_t>(call.op, "rotary_dim");
  const std::int64_t pairs = (rotary_dim == 0 ? layout.head_dim : rotary_dim) / 2;
  const std::vector<double> positions = positions_of(call, layout.seq);
  const std::vector<Turn> turns =
      turns_at(positions, graph::attribute<double>(call.op, "theta"), pairs);
  const bool is_per_batch = call.has_input(1) && call.input(1).rank() == 2;

  std::vector<double> values(x.values().begin(), x.values().end());
  const auto turn_head = [&](double* to, const Turn* turn) {
    for (std::int64_t i = 0; i < pairs; ++i) {
      double& first = to[is_half ? i : 2 * i];
      double& second = to[is_half ? i + pairs : 2 * i + 1];
      const double turned_first = first * turn[i].cosine - second * turn[i].sine;
      second = second * turn[i].cosine + first * turn[i].sine;
      first = turned_first;
    }
  };
  const auto turn_rows = [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t batch = is_per_batch ? row / layout.rows_of_batch : 0;
      const Turn* turn = turns.data() + (batch * layout.seq + row % layout.seq) * pairs;
      for (std::int64_t head = 0; head < layout.heads; ++head) {
        turn_head(values.data() + row * layout.pitch + head * layout.head_dim, turn);
      }
    }
  };
  const std::int64_t rows = x.count() / std::max<std::int64_t>(layout.pitch, 1);
  for_ranges(rows, layout.pitch, call.options, turn_rows);
  return call.result(std::move(values));
}

}  // namespace

Array rotary(const Call& call) {
  const Array x = call.wide_input(0);
  const std::int64_t seq = x.extent(2);
  return turned(call, x,
                {.head_dim = x.extent(3),
                 .seq = seq,
                 .rows_of_batch = x.extent(1) * seq,
                 .pitch = x.extent(3)});
}

Array rotary_heads(const Call& call) {
  const Array x = call.wide_input(0);
  const std::int64_t seq = x.extent(x.rank() - 2);
  return turned(call, x,
                {.head_dim = graph::attribute<std::int64_t>(call.op, "head_dim"),
                 .seq = seq,
                 .rows_of_batch = seq,
                 .pitch = x.extent(x.rank() - 1),
                 .heads = graph::attribute<std::int64_t>(call.op, "heads")});
}

}  // namespace stof::reference
