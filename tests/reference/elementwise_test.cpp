#include <functional>
#include <limits>
#include <numbers>

#include "testing.hpp"

using namespace stof::testing;
using stof::DType;
using stof::Graph;
using stof::HostTensor;
using stof::Tensor;

namespace {

using Binary = Tensor (Graph::*)(const Tensor&, const Tensor&);
using Unary = std::function<Tensor(Graph&, const Tensor&)>;

// The element of a row-major tensor that NumPy's broadcasting puts at the coordinates of `shape`.
double broadcast_at(const HostTensor& tensor, const Sizes& shape, std::int64_t position) {
  std::int64_t index = 0;
  std::int64_t stride = 1;
  for (std::size_t back = 1; back <= shape.size(); ++back) {
    const std::int64_t extent = shape[shape.size() - back];
    const std::int64_t coordinate = position % extent;
    position /= extent;
    if (back <= tensor.shape().size()) {
      const std::int64_t own = tensor.shape()[tensor.shape().size() - back];
      index += own == 1 ? 0 : coordinate * stride;
      stride *= own;
    }
  }
  return tensor.at(index);
}

struct Pair {
  Sizes a;
  Sizes b;
  Sizes result;
};

const Pair kPairs[] = {
    {{7}, {7}, {7}},
    {{}, {}, {}},
    {{3, 1, 5}, {4, 1}, {3, 4, 5}},
    {{1}, {2, 3, 13}, {2, 3, 13}},
    {{2, 1, 1, 3}, {1, 5, 7, 1}, {2, 5, 7, 3}},
    {{0, 3}, {1, 3}, {0, 3}},
    {{33, 1031}, {1031}, {33, 1031}},
};

void check_binary(Binary function, double (*expected)(double, double)) {
  for (const Pair& pair : kPairs) {
    HostTensors tensors;
    tensors["a"] = random_tensor(pair.a, 1);
    tensors["b"] = random_tensor(pair.b, 2);
    Graph graph;
    const Tensor a = input_like(graph, "a", tensors["a"]);
    const Tensor b = input_like(graph, "b", tensors["b"]);
    graph.output("y", (graph.*function)(a, b));
    Values wanted;
    for (std::int64_t i = 0; i < count_of(pair.result); ++i) {
      wanted.push_back(expected(broadcast_at(tensors["a"], pair.result, i),
                                broadcast_at(tensors["b"], pair.result, i)));
    }
    CHECK(result_of(graph, tensors) == wanted);
  }
}

Values mapped(const Unary& function, const Values& x, stof::Precision precision,
              DType dtype = DType::Float32) {
  HostTensors tensors;
  tensors["x"] = tensor_of(dtype, {static_cast<std::int64_t>(x.size())}, x);
  Graph graph;
  graph.output("y", function(graph, input_like(graph, "x", tensors["x"])));
  return run_graph(graph, tensors, {.precision = precision}).at("y").values;
}

void check_unary(const Unary& function, double (*expected)(double), const Values& x) {
  Values wanted;
  for (const double value : x) {
    wanted.push_back(expected(value));
  }
  check_close(mapped(function, x, stof::Precision::Float64), wanted, 1e-15);
}

// Exact in float32.
const Values kNumbers = {-100, -8, -1.5, -0.5, -0.0078125, 0, 0.0078125, 0.75, 1, 2.5, 9, 100};
const Values kPositive = {0.0078125, 0.75, 1, 2.5, 9, 100};

constexpr double kInfinity = std::numeric_limits<double>::infinity();
const double kNan = std::numeric_limits<double>::quiet_NaN();

}  // namespace

TEST_CASE("binary operators broadcast as NumPy does") {
  check_binary(&Graph::add, [](double a, double b) { return a + b; });
  check_binary(&Graph::subtract, [](double a, double b) { return a - b; });
  check_binary(&Graph::multiply, [](double a, double b) { return a * b; });
  check_binary(&Graph::divide, [](double a, double b) { return a / b; });
  check_binary(&Graph::maximum, [](double a, double b) { return a < b ? b : a; });
  check_binary(&Graph::minimum, [](double a, double b) { return a < b ? a : b; });
}

TEST_CASE("maximum and minimum pass a NaN on, from either side") {
  HostTensors tensors;
  tensors["a"] = tensor_of(DType::Float32, {3}, {kNan, 1, kNan});
  tensors["b"] = tensor_of(DType::Float32, {3}, {1, kNan, kNan});
  for (const Binary function : {&Graph::maximum, &Graph::minimum}) {
    Graph graph;
    const Tensor a = input_like(graph, "a", tensors["a"]);
    graph.output("y", (graph.*function)(a, input_like(graph, "b", tensors["b"])));
    CHECK(std::ranges::all_of(result_of(graph, tensors), [](double y) { return std::isnan(y); }));
  }
}

TEST_CASE("unary operators follow their definitions") {
  check_unary([](Graph& g, const Tensor& x) { return g.scale(x, -0.3); },
              [](double x) { return x * -0.3; }, kNumbers);
  check_unary([](Graph& g, const Tensor& x) { return g.shift(x, 0.1); },
              [](double x) { return x + 0.1; }, kNumbers);
  check_unary([](Graph& g, const Tensor& x) { return g.relu(x); },
              [](double x) { return x < 0 ? 0.0 : x; }, kNumbers);
  check_unary([](Graph& g, const Tensor& x) { return g.gelu(x); },
              [](double x) { return x * std::erfc(-x / std::sqrt(2.0)) / 2; }, kNumbers);
  check_unary([](Graph& g, const Tensor& x) { return g.gelu_tanh(x); },
              [](double x) {
                const double inner = std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x);
                return x / (1 + std::exp(-2 * inner));
              },
              kNumbers);
  check_unary([](Graph& g, const Tensor& x) { return g.silu(x); },
              [](double x) { return x * (1 + std::tanh(x / 2)) / 2; }, kNumbers);
  check_unary([](Graph& g, const Tensor& x) { return g.tanh(x); },
              [](double x) { return 1 - 2 / (std::exp(2 * x) + 1); }, kNumbers);
  check_unary([](Graph& g, const Tensor& x) { return g.sigmoid(x); },
              [](double x) { return (1 + std::tanh(x / 2)) / 2; }, kNumbers);
  check_unary([](Graph& g, const Tensor& x) { return g.exp(x); },
              [](double x) { return std::pow(std::numbers::e, x); }, {-3, -0.5, 0, 1, 2.5});
  check_unary([](Graph& g, const Tensor& x) { return g.sqrt(x); },
              [](double x) { return std::pow(x, 0.5); }, kPositive);
  check_unary([](Graph& g, const Tensor& x) { return g.reciprocal(x); },
              [](double x) { return 1 / x; }, kPositive);
}

TEST_CASE("the tails of gelu keep their digits") {
  // From the power series of erf and from exp, in decimal arithmetic of 120 digits.
  const Unary gelu = [](Graph& graph, const Tensor& x) { return graph.gelu(x); };
  const Unary gelu_tanh = [](Graph& graph, const Tensor& x) { return graph.gelu_tanh(x); };
  const Values exact = mapped(gelu, {-7, -8}, stof::Precision::Float64);
  CHECK(exact[0] == doctest::Approx(-8.958687807200846e-12).epsilon(1e-12).scale(0));
  CHECK(exact[1] == doctest::Approx(-4.976768459417427e-15).epsilon(1e-12).scale(0));
  const Values logistic = mapped(gelu_tanh, {-7, -8}, stof::Precision::Float64);
  CHECK(logistic[0] == doctest::Approx(-2.315442262072549e-15).epsilon(1e-12).scale(0));
  CHECK(logistic[1] == doctest::Approx(-3.1077829375011112e-21).epsilon(1e-12).scale(0));
}

TEST_CASE("relu passes a NaN on") {
  const auto relu = [](Graph& g, const Tensor& x) { return g.relu(x); };
  CHECK(std::isnan(mapped(relu, {kNan}, stof::Precision::Float32)[0]));
}

TEST_CASE("a cast to an integer cuts towards zero and stays in range") {
  const Values x = {-2.75, -0.5, 0.5, 2.75, 1e20, -1e20, kInfinity, -kInfinity, kNan, 300};
  const auto cast_to = [&](DType dtype) {
    HostTensors tensors;
    tensors["x"] = tensor_of(DType::Float32, {10}, x);
    Graph graph;
    graph.output("y", graph.cast(input_like(graph, "x", tensors["x"]), dtype));
    return values_of(run_graph(graph, tensors, {}).at("y").tensor());
  };
  const double min32 = std::numeric_limits<std::int32_t>::min();
  const double max32 = std::numeric_limits<std::int32_t>::max();
  CHECK(cast_to(DType::Int32) == Values{-2, 0, 0, 2, max32, min32, max32, min32, 0, 300});
  CHECK(cast_to(DType::UInt8) == Values{0, 0, 0, 2, 255, 0, 255, 0, 0, 255});
  CHECK(cast_to(DType::Bool) == Values{1, 1, 1, 1, 1, 1, 1, 1, 1, 1});
  const Values as_int64 = cast_to(DType::Int64);
  CHECK(as_int64[4] == 0x1p63);  // the largest int64, as a double
  CHECK(as_int64[5] == -0x1p63);
}

TEST_CASE("precisions round the result of an operator, and nothing before it") {
  using stof::Precision;
  const double third = 1.0 / 3;
  const auto scale = [&](Graph& g, const Tensor& x) { return g.scale(x, third); };
  CHECK(mapped(scale, {1}, Precision::Float64, DType::Float16)[0] == third);
  CHECK(mapped(scale, {1}, Precision::Float32, DType::Float16)[0] == static_cast<float>(third));
  CHECK(mapped(scale, {1}, Precision::Model, DType::Float32)[0] == static_cast<float>(third));
  // 1/3 = 1.0101…b * 2^-2: eleven significant bits end in 0|101…, eight in 0|1010….
  CHECK(mapped(scale, {1}, Precision::Model, DType::Float16)[0] == 0x1.554p-2);
  CHECK(mapped(scale, {1}, Precision::Model, DType::BFloat16)[0] == 0x1.56p-2);
  // Half way between two float16: to the even one, as one rounding from the exact sum.
  const auto shift = [](Graph& g, const Tensor& x) { return g.shift(x, 0x1p-11); };
  CHECK(mapped(shift, {1}, Precision::Model, DType::Float16)[0] == 1);
  CHECK(mapped(shift, {0x1.004p0}, Precision::Model, DType::Float16)[0] == 0x1.008p0);
  const auto square = [](Graph& g, const Tensor& x) { return g.multiply(x, x); };
  CHECK(mapped(square, {300}, Precision::Model, DType::Float16)[0] == kInfinity);
  CHECK(mapped(square, {300}, Precision::Float32, DType::Float16)[0] == 90000);
}
