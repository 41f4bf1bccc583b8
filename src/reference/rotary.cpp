#include "reference/rotary.hpp"

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

}  // namespace

Array rotary(const Call& call) {
  const Array x = call.wide_input(0);
  const auto style = graph::rotary_style_from_name(graph::attribute<std::string>(call.op, "style"));
  STOF_CHECK(style.has_value()) << "rotary style";
  const bool is_half = *style == RotaryStyle::Half;
  const std::int64_t seq = x.extent(2);
  const std::int64_t head_dim = x.extent(3);
  const auto rotary_dim = graph::attribute<std::int64_t>(call.op, "rotary_dim");
  const std::int64_t pairs = (rotary_dim == 0 ? head_dim : rotary_dim) / 2;
  const std::vector<double> positions = positions_of(call, seq);
  const std::vector<Turn> turns =
      turns_at(positions, graph::attribute<double>(call.op, "theta"), pairs);
  const bool is_per_batch = call.has_input(1) && call.input(1).rank() == 2;

  std::vector<double> values(x.values().begin(), x.values().end());
  const std::int64_t rows = x.extent(0) * x.extent(1) * seq;
  const auto turn_rows = [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t batch = is_per_batch ? row / (x.extent(1) * seq) : 0;
      const Turn* turn = turns.data() + (batch * seq + row % seq) * pairs;
      double* to = values.data() + row * head_dim;
      for (std::int64_t i = 0; i < pairs; ++i) {
        double& first = to[is_half ? i : 2 * i];
        double& second = to[is_half ? i + pairs : 2 * i + 1];
        const double turned = first * turn[i].cosine - second * turn[i].sine;
        second = second * turn[i].cosine + first * turn[i].sine;
        first = turned;
      }
    }
  };
  for_ranges(rows, head_dim, call.options, turn_rows);
  return call.result(std::move(values));
}

}  // namespace stof::reference
