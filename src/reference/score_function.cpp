#include "reference/score_function.hpp"

#include <algorithm>
#include <array>

#include "expr/semantics.hpp"
#include "graph/op_info.hpp"

namespace stof::reference {

namespace {

std::int64_t word_of(ScalarType type, double value) {
  return type == ScalarType::Float ? expr::word_of(value) : static_cast<std::int64_t>(value);
}

// Row-major position of an element; indices out of range move to the nearest end.
std::int64_t position_of(const Array& array, std::span<const std::int64_t> indices) {
  std::int64_t position = 0;
  for (std::size_t axis = 0; axis < indices.size(); ++axis) {
    const std::int64_t extent = array.shape[axis];
    position = position * extent + std::clamp<std::int64_t>(indices[axis], 0, extent - 1);
  }
  return position;
}

expr::CaptureReader capture_reader(const expr::Program& program, const Call& call) {
  std::vector<Array> arrays;
  std::vector<ScalarType> types;
  for (const Capture& capture : program.captures) {
    arrays.push_back(widened(call.captures.at(capture.name()), call.options));
    types.push_back(capture.type());
  }
  return [arrays = std::move(arrays), types = std::move(types)](
             int capture, std::span<const std::int64_t> indices) -> std::int64_t {
    const auto at = static_cast<std::size_t>(capture);
    const std::span<const double> values = arrays[at].values();
    if (values.empty()) {
      return 0;
    }
    const std::int64_t position = position_of(arrays[at], indices);
    return word_of(types[at], values[static_cast<std::size_t>(position)]);
  };
}

expr::Interpreter interpreter_of(const Call& call) {
  expr::Program program = expr::compile(graph::attribute<Expr>(call.op, "score"));
  expr::CaptureReader reader = capture_reader(program, call);
  return expr::Interpreter(std::move(program), std::move(reader));
}

}  // namespace

ScoreFunction::ScoreFunction(const Call& call, const mask::Extent& extent)
    : interpreter_(interpreter_of(call)), scalars_(interpreter_.program().scalars.size()) {
  const expr::Program& program = interpreter_.program();
  set(program.scalar("q_len"), extent.q_len);
  set(program.scalar("kv_len"), extent.kv_len);
  batch_ = program.scalar("batch");
  head_ = program.scalar("head");
  query_ = program.scalar("q_pos");
  key_ = program.scalar("k_pos");
  score_ = program.scalar("score");
}

void ScoreFunction::set(std::optional<int> scalar, std::int64_t word) {
  if (scalar) {
    scalars_[static_cast<std::size_t>(*scalar)] = word;
  }
}

void ScoreFunction::apply(std::int64_t batch, std::int64_t head, std::int64_t query,
                          std::int64_t first_key, std::span<double> scores) {
  set(batch_, batch);
  set(head_, head);
  set(query_, query);
  constexpr std::size_t kLanes = expr::Interpreter::kLanes;
  std::array<std::int64_t, kLanes> words{};
  for (std::size_t begin = 0; begin < scores.size(); begin += kLanes) {
    const auto some = scores.subspan(begin, std::min(kLanes, scores.size() - begin));
    std::ranges::transform(some, words.begin(), [](double value) { return expr::word_of(value); });
    set(key_, first_key + static_cast<std::int64_t>(begin));
    const auto results = interpreter_.run(scalars_, key_, static_cast<int>(some.size()),
                                          {.scalar = score_, .words = words});
    std::ranges::transform(results, some.begin(), expr::float_of);
  }
}

}  // namespace stof::reference
