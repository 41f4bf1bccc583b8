#include "validate/expected.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/float16.hpp"
#include "stof/graph.hpp"

namespace stof::validate {
namespace {

// Rows of x times columns of w, the sum rounded by a function after each `step` terms.
HostTensor product(const HostTensors& tensors, std::int64_t m, std::int64_t n, std::int64_t k,
                   int step, const std::function<double(double)>& round) {
  HostTensor y(DType::Float16, {m, n});
  for (std::int64_t row = 0; row < m; ++row) {
    for (std::int64_t column = 0; column < n; ++column) {
      double sum = 0;
      for (std::int64_t i = 0; i < k; ++i) {
        sum += tensors.at("x").at(row * k + i) * tensors.at("w").at(i * n + column);
        sum = (i + 1) % step == 0 ? round(sum) : sum;
      }
      y.set(row * n + column, sum);
    }
  }
  return y;
}

double to_float16(double value) {
  return static_cast<double>(base::Float16::from(value).to_float());
}

double to_float32(double value) {
  return static_cast<double>(static_cast<float>(value));
}

TEST_CASE("a sum of 4096 terms in float32 is right, in float16 it is not") {
  constexpr std::int64_t kM = 4, kN = 32, kK = 4096;
  Graph graph("product");
  graph.output("y", graph.matmul(graph.input("x", {kM, kK}, DType::Float16),
                                 graph.input("w", {kK, kN}, DType::Float16)));
  HostTensors tensors = hostile_tensors(graph.ir(), InputKind::Normal);
  const ExpectedOutput expected = expected_outputs(graph.ir(), tensors, DType::Float32).front();
  CHECK_FALSE(wrong_numbers(expected, product(tensors, kM, kN, kK, 1, to_float32)));
  // Each term is rounded, and each sum of 16, as tensor cores do.
  CHECK(wrong_numbers(expected, product(tensors, kM, kN, kK, 1, to_float16)));
  CHECK(wrong_numbers(expected, product(tensors, kM, kN, kK, 16, to_float16)));
  // The last 16 terms are missing.
  CHECK(wrong_numbers(expected, product(tensors, kM, kN, kK - 16, 1, to_float32)));
}

TEST_CASE("what overflows or is no number is forgiven where the unfused graph has it so") {
  Graph graph("squares");
  auto x = graph.input("x", {2, 40}, DType::Float16);
  graph.output("y", graph.multiply(x, x));
  HostTensors tensors = {{"x", HostTensor(DType::Float16, {2, 40})}};
  for (std::int64_t i = 0; i < 80; ++i) {
    tensors.at("x").set(i, i == 3 ? 300 : 1);
  }
  const ExpectedOutput expected = expected_outputs(graph.ir(), tensors, DType::Float32).front();
  HostTensor y(DType::Float16, {2, 40});
  for (std::int64_t i = 0; i < 80; ++i) {
    y.set(i, i == 3 ? std::numeric_limits<double>::infinity() : 1);
  }
  CHECK_FALSE(wrong_numbers(expected, y));
  y.set(3, 1);
  CHECK(wrong_numbers(expected, y)->find("output y: element 3 of 80 is 1, should be 90000") == 0);
  y.set(3, std::numeric_limits<double>::infinity());
  y.set(79, std::numeric_limits<double>::quiet_NaN());
  CHECK(wrong_numbers(expected, y)->find("element 79 of 80 is nan, should be 1") !=
        std::string::npos);
}

TEST_CASE("no number is forgiven where the unfused graph has none, however large the result") {
  Graph graph("squares");
  auto x = graph.input("x", {2, 40}, DType::Float16);
  auto square = graph.multiply(x, x);
  graph.output("y", graph.subtract(square, graph.scale(square, 0.1)));
  HostTensors tensors = {{"x", HostTensor(DType::Float16, {2, 40})}};
  HostTensor y(DType::Float16, {2, 40});
  for (std::int64_t i = 0; i < 80; ++i) {
    tensors.at("x").set(i, i == 3 ? 300 : 1);  // 81000, by way of inf - inf
    y.set(i, i == 3 ? std::numeric_limits<double>::quiet_NaN() : 0.9);
  }
  const ExpectedOutput expected = expected_outputs(graph.ir(), tensors, DType::Float32).front();
  CHECK_FALSE(wrong_numbers(expected, y));
  y.set(4, std::numeric_limits<double>::quiet_NaN());
  CHECK(wrong_numbers(expected, y));
}

TEST_CASE("a large mean allows what it costs good kernels, and no more") {
  Graph graph("norm");
  auto x = graph.input("x", {4, 1000}, DType::Float32);
  graph.output("y", graph.layer_norm(x, graph.input("gamma", {1000}, DType::Float32),
                                     graph.input("beta", {1000}, DType::Float32), 1e-5));
  HostTensors tensors = hostile_tensors(graph.ir(), InputKind::LargeMean);
  const ExpectedOutput expected = expected_outputs(graph.ir(), tensors, DType::Float32).front();
  const auto norm = [&](bool is_one_pass) {
    HostTensor y(DType::Float32, {4, 1000});
    for (std::int64_t row = 0; row < 4; ++row) {
      float sum = 0, squares = 0;
      const auto at = [&](std::int64_t i) {
        return static_cast<float>(tensors.at("x").at(row * 1000 + i));
      };
      for (std::int64_t i = 0; i < 1000; ++i) {
        sum += at(i);
        squares += at(i) * at(i);
      }
      const float mean = sum / 1000;
      float variance = squares / 1000 - mean * mean;
      if (!is_one_pass) {
        variance = 0;
        for (std::int64_t i = 0; i < 1000; ++i) {
          variance += (at(i) - mean) * (at(i) - mean) / 1000;
        }
      }
      for (std::int64_t i = 0; i < 1000; ++i) {
        const float factor = 1 / std::sqrt(variance + 1e-5F);
        y.set(row * 1000 + i,
              static_cast<double>((at(i) - mean) * factor) * tensors.at("gamma").at(i) +
                  tensors.at("beta").at(i));
      }
    }
    return y;
  };
  CHECK_FALSE(wrong_numbers(expected, norm(false)));
  CHECK(wrong_numbers(expected, norm(true)));
}

struct Extents {
  std::int64_t batch, heads, kv_heads, q_len, kv_len, head_dim, value_dim;
};

Graph attention(const Extents& of) {
  Graph graph("attention");
  const auto result = graph.attention_with_lse(
      graph.input("q", {of.batch, of.heads, of.q_len, of.head_dim}, DType::Float16),
      graph.input("k", {of.batch, of.kv_heads, of.kv_len, of.head_dim}, DType::Float16),
      graph.input("v", {of.batch, of.kv_heads, of.kv_len, of.value_dim}, DType::Float16));
  graph.output("o", result.output);
  graph.output("lse", result.lse);
  return graph;
}

// As a kernel does it that has `threads` for a row, each for every so many keys of the first
// `seen`: in float32 and to base 2, each sum a term after the other.
std::map<std::string, HostTensor> attended(const HostTensors& tensors, const Extents& of,
                                           std::int64_t threads, std::int64_t seen) {
  std::map<std::string, HostTensor> outputs = {
      {"o", HostTensor(DType::Float16, {of.batch, of.heads, of.q_len, of.value_dim})},
      {"lse", HostTensor(DType::Float32, {of.batch, of.heads, of.q_len})}};
  const auto floats = [&](const char* name) {
    std::vector<float> values;
    for (std::int64_t i = 0; i < tensors.at(name).element_count(); ++i) {
      values.push_back(static_cast<float>(tensors.at(name).at(i)));
    }
    return values;
  };
  const std::vector<float> q = floats("q"), k = floats("k"), v = floats("v");
  const auto scale =
      static_cast<float>(1.4426950408889634 / std::sqrt(static_cast<double>(of.head_dim)));
  std::vector<float> scores(static_cast<std::size_t>(seen));
  for (std::int64_t row = 0; row < of.batch * of.heads * of.q_len; ++row) {
    const std::int64_t head = row / of.q_len;
    const std::int64_t kv =
        head / of.heads * of.kv_heads + head % of.heads * of.kv_heads / of.heads;
    float maximum = -std::numeric_limits<float>::infinity();
    for (std::int64_t key = 0; key < seen; ++key) {
      float score = 0;
      for (std::int64_t i = 0; i < of.head_dim; ++i) {
        score =
            std::fma(q[row * of.head_dim + i], k[(kv * of.kv_len + key) * of.head_dim + i], score);
      }
      scores[key] = score * scale;
      maximum = std::max(maximum, scores[key]);
    }
    float sum = 0;
    for (std::int64_t thread = 0; thread < threads; ++thread) {
      float own = 0;
      for (std::int64_t key = thread; key < seen; key += threads) {
        scores[key] = std::exp2(scores[key] - maximum);
        own += scores[key];
      }
      sum += own;
    }
    outputs.at("lse").set(row, static_cast<double>((maximum + std::log2(sum)) * 0.69314718F));
    for (std::int64_t i = 0; i < of.value_dim; ++i) {
      float value = 0;
      for (std::int64_t key = 0; key < seen; ++key) {
        value = std::fma(scores[key], v[(kv * of.kv_len + key) * of.value_dim + i], value);
      }
      outputs.at("o").set(row * of.value_dim + i, static_cast<double>(value / sum));
    }
  }
  return outputs;
}

struct Attended {
  Attended(const Extents& extents, InputKind kind)
      : of(extents),
        ir(attention(of).ir()),
        tensors(hostile_tensors(ir, kind)),
        outputs(expected_outputs(ir, tensors, DType::Float32)) {}

  // What is wrong where the last keys are missing: with o, with the log-sum-exp.
  std::vector<bool> wrong(std::int64_t threads, std::int64_t missing) const {
    const auto actual = attended(tensors, of, threads, of.kv_len - missing);
    std::vector<bool> result;
    for (const ExpectedOutput& output : outputs) {
      result.push_back(wrong_numbers(output, actual.at(output.name)).has_value());
    }
    return result;
  }

  Extents of;
  graph::Ir ir;
  HostTensors tensors;
  std::vector<ExpectedOutput> outputs;
};

const std::vector<bool> kRight = {false, false};
const std::vector<bool> kWrong = {true, true};

TEST_CASE("sums of exponentials that are nearly equal, which no input moves") {
  const Attended one({1, 1, 1, 1, 4096, 56, 56}, InputKind::Small);
  for (const std::int64_t threads : {1, 4, 128}) {
    CHECK(one.wrong(threads, 0) == kRight);
    CHECK(one.wrong(threads, 1) == kWrong);
  }
}

TEST_CASE("scores of a large mean: of what float32 has lost no more is forgiven than that") {
  for (const std::int64_t head_dim : {64, 512, 2048}) {
    const Attended large({1, 8, 4, 8, 61, head_dim, 61}, InputKind::LargeMean);
    CHECK(large.wrong(128, 0) == kRight);
  }
  const Attended common({2, 4, 2, 8, 61, 128, 61}, InputKind::LargeMean);
  CHECK(common.wrong(128, 0) == kRight);
  CHECK(common.wrong(128, 8) == kWrong);
  const Attended normal({1, 4, 2, 8, 61, 2048, 61}, InputKind::Normal);
  CHECK(normal.wrong(128, 0) == kRight);
  CHECK(normal.wrong(128, 1) == kWrong);
}

TEST_CASE("hostile_tensors: integers are what operators take, and kinds are what they say") {
  Graph graph("ids");
  auto ids = graph.input("ids", {300}, DType::Int32);
  graph.output("y", graph.embedding(graph.input("table", {17, 8}, DType::Float16), ids));
  bool has_last = false;
  const HostTensors tensors = hostile_tensors(graph.ir(), InputKind::Normal);
  for (std::int64_t i = 0; i < 300; ++i) {
    CHECK(tensors.at("ids").at(i) >= 0);
    CHECK(tensors.at("ids").at(i) < 17);
    has_last = has_last || tensors.at("ids").at(i) == 16;
  }
  CHECK(has_last);
  CHECK(hostile_tensors(graph.ir(), InputKind::Zeros).at("table").at(5) == 0);
  CHECK(std::abs(hostile_tensors(graph.ir(), InputKind::LargeMean).at("table").at(5) - 200) < 2);
  CHECK(std::abs(hostile_tensors(graph.ir(), InputKind::Small).at("table").at(5)) < 0.02);
}

}  // namespace
}  // namespace stof::validate
