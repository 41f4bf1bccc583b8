#include "validate/expected.hpp"

#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <string>

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
