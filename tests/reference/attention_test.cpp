#include "attention_testing.hpp"
#include "base/float16.hpp"
#include "stof/mask.hpp"

using namespace stof::testing;
using stof::AttentionOptions;
using stof::DType;
using stof::Graph;
using stof::HostTensor;
using stof::Mask;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool see_all(const Position&) {
  return true;
}

const stof::Expr kQPos = stof::query_position();
const stof::Expr kKPos = stof::key_position();

}  // namespace

TEST_CASE("attention without a mask, on hostile sizes and groups of heads") {
  for (const AttentionSizes& sizes :
       {AttentionSizes{},
        AttentionSizes{.batch = 1,
        .heads = 1,
        .kv_heads = 1,
        .q_len = 1,
        .kv_len = 1,
        .head_dim = 1,
        .value_dim = 1},
        AttentionSizes{.heads = 6, .kv_heads = 1, .q_len = 3, .kv_len = 257},
        AttentionSizes{.heads = 3, .kv_heads = 3, .q_len = 129, .kv_len = 2},
        AttentionSizes{.q_len = 0}, AttentionSizes{.batch = 0}}) {
    check_mask(Mask(), see_all, sizes);
  }
}

TEST_CASE("without keys the output is 0 and the log-sum-exp -inf") {
  HostTensors tensors = attention_inputs({.q_len = 3, .kv_len = 0});
  const Graph graph = attention_graph(tensors, [](Graph&) { return AttentionOptions(); });
  const auto outputs = run_exactly(graph, tensors);
  CHECK(outputs.at("y").values == Values(2 * 4 * 3 * 3, 0.0));
  CHECK(outputs.at("lse").values == Values(2 * 4 * 3, -kInfinity));
}

TEST_CASE("ready-made masks") {
  check_mask(stof::causal(), [](const Position& at) { return at.key <= at.query; });
  check_mask(stof::causal_bottom_right(),
             [](const Position& at) { return at.key - 64 <= at.query; });
  check_mask(stof::sliding_window(9, 4),
             [](const Position& at) { return at.query - at.key <= 9 && at.key - at.query <= 4; });
  check_mask(stof::dilated(3, 2, 5), [](const Position& at) {
    const std::int64_t back = at.query - at.key;
    return back <= 15 && back >= -10 && back % 5 == 0;
  });
  check_mask(stof::longformer(4, 2), [](const Position& at) {
    return std::abs(at.query - at.key) <= 4 || at.query < 2 || at.key < 2;
  });
  check_mask(stof::prefix(70),
             [](const Position& at) { return at.key <= at.query || at.key < 70; });
  const auto document = [](std::int64_t token) { return token < 40 ? 0 : token < 41 ? 1 : 2; };
  check_mask(stof::documents({0, 40, 41, 131}),
             [&](const Position& at) { return document(at.query) == document(at.key); });
  check_mask(stof::window_2d(8, 1), [](const Position& at) {
    return std::abs(at.query / 8 - at.key / 8) <= 1 && std::abs(at.query % 8 - at.key % 8) <= 1;
  });
}

TEST_CASE("a row that sees no key gives 0 and -inf") {
  HostTensors tensors = attention_inputs({});
  const Graph graph = attention_graph(
      tensors, [](Graph&) { return AttentionOptions{.mask = Mask(kQPos % 3 != 1)}; });
  for (const Graph& form : {graph, normalised(graph)}) {
    const auto outputs = run_graph(form, tensors, {});
    for (std::size_t row = 0; row < 2 * 4 * 67; ++row) {
      const bool is_empty = row % 67 % 3 == 1;
      CHECK((outputs.at("lse").values[row] == -kInfinity) == is_empty);
      for (std::size_t i = 0; i < 3; ++i) {
        CHECK((outputs.at("y").values[row * 3 + i] == 0) == is_empty);
      }
    }
  }
}

TEST_CASE("masks may differ between batch elements and heads") {
  const stof::Expr b = stof::batch_index();
  const stof::Expr h = stof::head_index();
  check_mask(Mask(kKPos <= kQPos + 10 * h),
             [](const Position& at) { return at.key <= at.query + 10 * at.head; });
  check_mask(Mask(kKPos * (b + 1) % 3 != h % 2),
             [](const Position& at) { return at.key * (at.batch + 1) % 3 != at.head % 2; });
  check_mask(stof::key_padding(std::vector<std::int64_t>{131, 17}),
             [](const Position& at) { return at.key < (at.batch == 0 ? 131 : 17); });
}

TEST_CASE("masks from data, alone and together with expressions") {
  HostTensor dense(DType::Bool, {2, 4, 67, 131});
  for (std::int64_t i = 0; i < dense.element_count(); ++i) {
    dense.set(i, i * 2654435761 % 97 < 40 ? 1 : 0);
  }
  const auto in_dense = [&](const Position& at) {
    return dense.at(((at.batch * 4 + at.head) * 67 + at.query) * 131 + at.key) != 0;
  };
  check_mask(Mask::dense(dense.view()), in_dense);
  check_mask(!Mask::dense(dense.view()) && stof::causal(),
             [&](const Position& at) { return !in_dense(at) && at.key <= at.query; });

  HostTensor blocks(DType::UInt8, {3, 5});
  for (std::int64_t i = 0; i < blocks.element_count(); ++i) {
    blocks.set(i, i % 4 == 1 ? 1 : 0);
  }
  const auto in_blocks = [&](const Position& at) {
    return blocks.at(at.query / 32 * 5 + at.key / 32) != 0;
  };
  check_mask(Mask::blocks(blocks.view(), 32, 67, 131), in_blocks);

  std::vector<std::int32_t> row_ptr = {0};
  std::vector<std::int32_t> columns;
  for (std::int32_t row = 0; row < 67; ++row) {
    for (std::int32_t key = row % 5; key < 131 && row % 7 != 3; key += 1 + row) {
      columns.push_back(key);
    }
    row_ptr.push_back(static_cast<std::int32_t>(columns.size()));
  }
  const auto in_csr = [](const Position& at) {
    return at.query % 7 != 3 && at.key >= at.query % 5 &&
           (at.key - at.query % 5) % (1 + at.query) == 0;
  };
  check_mask(Mask::csr(row_ptr, columns, 131), in_csr);
  check_mask(Mask::csr(row_ptr, columns, 131) || Mask::blocks(blocks.view(), 32, 67, 131),
             [&](const Position& at) { return in_csr(at) || in_blocks(at); });
}

TEST_CASE("a mask may read tensors of the graph") {
  HostTensors tensors = attention_inputs({});
  tensors["keep"] = HostTensor(DType::UInt8, {2, 131});
  for (std::int64_t i = 0; i < 2 * 131; ++i) {
    tensors["keep"].set(i, i % 11 == 4 ? 0 : 1);
  }
  check_attention(
      tensors,
      [&](Graph& graph) {
        const auto keep = graph.capture(input_like(graph, "keep", tensors["keep"]));
        return AttentionOptions{.mask = stof::key_padding(keep) && stof::causal()};
      },
      [&](const Position& at) {
        return tensors["keep"].at(at.batch * 131 + at.key) != 0 && at.key <= at.query;
      });
}

TEST_CASE("a score modifier changes the scaled score, before the mask") {
  HostTensors tensors = attention_inputs({});
  tensors["bias"] = random_tensor({4, 9}, 7);
  const stof::Table slope("slope", std::vector<double>{0.5, 0.25, 0.125, 0.0625});
  const auto alibi = [&](Graph&) {
    return AttentionOptions{
        .mask = stof::causal(),
        .score = stof::score() + slope[stof::head_index()] * stof::to_float(kKPos - kQPos)};
  };
  check_attention(
      tensors = attention_inputs({}), alibi, [](const Position& at) { return at.key <= at.query; },
      [](double score, const Position& at) {
        return score + std::ldexp(1.0, -1 - static_cast<int>(at.head)) *
                           static_cast<double>(at.key - at.query);
      });
  const auto soft_cap = [](Graph&) {
    return AttentionOptions{.score = 2.0 * stof::tanh(stof::score() / 2.0), .scale = 0.7};
  };
  check_attention(
      tensors, soft_cap, see_all,
      [](double score, const Position&) { return 2 * std::tanh(score / 2); }, 0.7);

  tensors["bias"] = random_tensor({4, 9}, 7);
  const auto relative_bias = [&](Graph& graph) {
    const auto bias = graph.capture(input_like(graph, "bias", tensors["bias"]));
    return AttentionOptions{.score = stof::score() + bias(stof::head_index(), kKPos - kQPos + 4)};
  };
  check_attention(tensors, relative_bias, see_all, [&](double score, const Position& at) {
    const std::int64_t bucket = std::clamp<std::int64_t>(at.key - at.query + 4, 0, 8);
    return score + tensors["bias"].at(at.head * 9 + bucket);
  });
}

TEST_CASE("a score of -inf hides a key as a mask does") {
  HostTensors tensors = attention_inputs({});
  check_attention(
      tensors,
      [](Graph&) {
        return AttentionOptions{.score = stof::select(kKPos < 5, stof::score(), -1.0 / 0.0)};
      },
      [](const Position& at) { return at.key < 5; });
}

TEST_CASE("what no query sees may be no number") {
  HostTensors tensors = attention_inputs({});
  Values expected;
  for (const bool is_poisoned : {false, true}) {
    for (std::int64_t i = 0; is_poisoned && i < tensors["k"].element_count(); ++i) {
      if (i / 5 % 131 >= 60) {
        tensors["k"].set(i, NAN);
      }
    }
    for (std::int64_t i = 0; is_poisoned && i < tensors["v"].element_count(); ++i) {
      if (i / 3 % 131 >= 60) {
        tensors["v"].set(i, i % 2 == 0 ? NAN : kInfinity);
      }
    }
    const Graph graph = attention_graph(tensors, [](Graph&) {
      return AttentionOptions{.mask = Mask(kKPos < 60 && (kKPos <= kQPos || kKPos == 130))};
    });
    const Values y = result_of(graph, tensors);
    expected = is_poisoned ? expected : y;
    check_close(y, expected);
  }
}

TEST_CASE("in the model's precision attention rounds where a flash kernel does") {
  using stof::base::Float16;
  const AttentionSizes sizes{.batch = 1, .heads = 1, .kv_heads = 1, .q_len = 5, .kv_len = 40};
  HostTensors tensors = attention_inputs(sizes, DType::Float16);
  const Graph graph =
      attention_graph(tensors, [](Graph&) { return AttentionOptions{.mask = stof::causal()}; });
  const auto outputs = run_graph(graph, tensors, {.precision = stof::Precision::Model});

  const auto scale = static_cast<float>(1 / std::sqrt(5.0));
  for (std::int64_t row = 0; row < 5; ++row) {
    std::vector<float> scores;
    for (std::int64_t key = 0; key <= row; ++key) {
      double dot = 0;
      for (std::int64_t d = 0; d < 5; ++d) {
        dot += tensors["q"].at(row * 5 + d) * tensors["k"].at(key * 5 + d);
      }
      scores.push_back(static_cast<float>(dot) * scale);
    }
    const auto max = static_cast<double>(*std::ranges::max_element(scores));
    double sum = 0;
    Values weighted(3);
    for (std::int64_t key = 0; key <= row; ++key) {
      const double p = std::exp(static_cast<double>(scores[static_cast<std::size_t>(key)]) - max);
      sum += p;
      for (std::int64_t d = 0; d < 3; ++d) {
        weighted[static_cast<std::size_t>(d)] +=
            static_cast<double>(Float16::from(p).to_float()) * tensors["v"].at(key * 3 + d);
      }
    }
    for (std::int64_t d = 0; d < 3; ++d) {
      const double expected = weighted[static_cast<std::size_t>(d)] / sum;
      CHECK(outputs.at("y").values[static_cast<std::size_t>(row * 3 + d)] ==
            static_cast<double>(Float16::from(expected).to_float()));
    }
    CHECK(outputs.at("lse").values[static_cast<std::size_t>(row)] ==
          static_cast<double>(static_cast<float>(max + std::log(sum))));
  }
}

TEST_CASE("one operator and its five agree in every precision and dtype") {
  using stof::Precision;
  struct Case {
    DType dtype;
    Precision precision;
    double tolerance;
  };
  for (const auto& [dtype, precision, tolerance] :
       {Case{DType::Float32, Precision::Float32, 1e-6},
        Case{DType::Float16, Precision::Float32, 1e-6},
        Case{DType::Float16, Precision::Model, 2e-3},
        Case{DType::BFloat16, Precision::Model, 2e-2}}) {
    HostTensors tensors = attention_inputs({}, dtype);
    const Graph graph = attention_graph(
        tensors, [](Graph&) { return AttentionOptions{.mask = stof::sliding_window(20, 20)}; });
    const stof::reference::Options options{.precision = precision};
    const auto composite = run_graph(graph, tensors, options);
    const auto primitive = run_graph(normalised(graph), tensors, options);
    check_close(composite.at("y").values, primitive.at("y").values, tolerance);
    check_close(composite.at("lse").values, primitive.at("lse").values, 1e-6);
    CHECK(composite.at("y").dtype == dtype);
    CHECK(composite.at("lse").dtype == DType::Float32);
  }
}
