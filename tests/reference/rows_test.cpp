#include <limits>

#include "error_of.hpp"
#include "graph/append.hpp"
#include "testing.hpp"

using namespace stof::testing;
using stof::DType;
using stof::Graph;
using stof::Tensor;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

const Sizes kShapes[] = {{1}, {1, 1}, {5, 1}, {2, 3, 13}, {37, 97}, {3, 0}, {0, 4}, {2, 20011}};

// Long double sums, so that the definition has digits to spare.
Values expected_layer_norm(const Values& x, std::size_t columns, const Values& gamma,
                           const Values& beta, double epsilon) {
  Values y;
  for (std::size_t row = 0; columns > 0 && row < x.size() / columns; ++row) {
    const double* of_row = x.data() + row * columns;
    long double mean = 0;
    for (std::size_t i = 0; i < columns; ++i) {
      mean += static_cast<long double>(of_row[i]) / columns;
    }
    long double variance = 0;
    for (std::size_t i = 0; i < columns; ++i) {
      variance += (of_row[i] - mean) * (of_row[i] - mean) / columns;
    }
    for (std::size_t i = 0; i < columns; ++i) {
      y.push_back(static_cast<double>((of_row[i] - mean) / std::sqrt(variance + epsilon)) *
                      gamma[i] +
                  (beta.empty() ? 0.0 : beta[i]));
    }
  }
  return y;
}

Values expected_softmax(const Values& x, std::size_t columns) {
  Values y;
  for (std::size_t row = 0; columns > 0 && row < x.size() / columns; ++row) {
    double sum = 0;
    for (std::size_t i = 0; i < columns; ++i) {
      sum += std::exp(x[row * columns + i]);
    }
    for (std::size_t i = 0; i < columns; ++i) {
      y.push_back(sum == 0 ? 0.0 : std::exp(x[row * columns + i]) / sum);
    }
  }
  return y;
}

}  // namespace

TEST_CASE("layer_norm follows its definition, with a large mean too") {
  for (const Sizes& shape : kShapes) {
    for (const double mean : {0.0, 4096.0}) {
      HostTensors tensors;
      tensors["x"] = random_tensor(shape, 1, DType::Float32, mean - 2, mean + 2);
      tensors["gamma"] = random_tensor({shape.back()}, 2);
      tensors["beta"] = random_tensor({shape.back()}, 3);
      Graph graph;
      const Tensor x = input_like(graph, "x", tensors["x"]);
      const Tensor gamma = input_like(graph, "gamma", tensors["gamma"]);
      const Tensor beta = input_like(graph, "beta", tensors["beta"]);
      graph.output("y", graph.layer_norm(x, gamma, beta, 1e-3));
      graph.output("plain", graph.layer_norm(x, gamma, {}, 1e-3));
      const auto outputs = run_exactly(graph, tensors);
      const auto columns = static_cast<std::size_t>(shape.back());
      const Values values = values_of(tensors["x"]);
      const Values gains = values_of(tensors["gamma"]);
      check_close(outputs.at("y").values,
                  expected_layer_norm(values, columns, gains, values_of(tensors["beta"]), 1e-3),
                  1e-10);
      check_close(outputs.at("plain").values, expected_layer_norm(values, columns, gains, {}, 1e-3),
                  1e-10);
    }
  }
}

TEST_CASE("row_moments and apply_moments are a norm in two steps") {
  for (const bool is_centred : {true, false}) {
    Graph graph("moments");
    const Tensor x = graph.input("x", {3, 5, 17}, DType::Float32);
    const Tensor gain = graph.input("gain", {17}, DType::Float32);
    const Tensor shift = graph.input("shift", {17}, DType::Float32);
    graph.output("norm", is_centred ? graph.layer_norm(x, gain, shift, 1e-3)
                                    : graph.rms_norm(x, gain, 1e-3));
    stof::graph::Ir ir = graph.ir();
    const auto moments =
        stof::graph::append(ir, {.kind = stof::graph::OpKind::RowMoments,
                                 .inputs = {0},
                                 .outputs = {-1, -1},
                                 .attributes = {{"epsilon", 1e-3}, {"centred", is_centred}}});
    std::vector<int> inputs = {0, moments[0], 1};
    if (is_centred) {
      inputs.insert(inputs.end(), {moments[1], 2});
    }
    stof::graph::append_output(
        ir, "two",
        stof::graph::append_one(
            ir, {.kind = stof::graph::OpKind::ApplyMoments, .inputs = inputs, .outputs = {}}));
    stof::graph::append_output(ir, "mean", moments[1]);
    HostTensors tensors;
    tensors["x"] = random_tensor({3, 5, 17}, 1, DType::Float32, 99, 101);
    tensors["gain"] = random_tensor({17}, 2);
    tensors["shift"] = random_tensor({17}, 3);
    const auto results = run_graph(Graph(ir), tensors, {.precision = stof::Precision::Float64});
    check_close(results.at("two").values, results.at("norm").values);
    CHECK((results.at("mean").values[0] == 0) == !is_centred);
  }
}

TEST_CASE("moments are float32, of the rows that they are for") {
  Graph graph("moments");
  const Tensor x = graph.input("x", {3, 5, 16}, DType::Float16);
  graph.input("other", {3, 4, 1}, DType::Float32);
  graph.input("gain", {16}, DType::Float16);
  stof::graph::Ir ir = graph.ir();
  const auto error_of = [&](std::vector<int> inputs) {
    return stof::test::error_of([&] {
      stof::graph::append_one(
          ir, {.kind = stof::graph::OpKind::ApplyMoments, .inputs = std::move(inputs)});
    });
  };
  const auto moments =
      stof::graph::append(ir, {.kind = stof::graph::OpKind::RowMoments,
                               .inputs = {0},
                               .outputs = {-1},
                               .attributes = {{"epsilon", 0.0}, {"centred", true}}});
  CHECK(error_of({0, 1, 2}).find("factor [3, 4, 1] is for rows of x [3, 5, 16]") !=
        std::string::npos);
  CHECK(error_of({0, 0, 2}).find("float32") != std::string::npos);
  CHECK(error_of({0, moments[0], 2, -1, 2}).find("shift [16] comes with a mean alone") !=
        std::string::npos);
}

TEST_CASE("rms_norm follows its definition") {
  for (const Sizes& shape : kShapes) {
    HostTensors tensors;
    tensors["x"] = random_tensor(shape, 1);
    tensors["gain"] = random_tensor({shape.back()}, 2);
    Graph graph;
    const Tensor x = input_like(graph, "x", tensors["x"]);
    graph.output("y", graph.rms_norm(x, input_like(graph, "gain", tensors["gain"]), 1e-3));
    const Values values = values_of(tensors["x"]);
    const Values gain = values_of(tensors["gain"]);
    const std::size_t columns = gain.size();
    Values expected;
    for (std::size_t row = 0; columns > 0 && row < values.size() / columns; ++row) {
      long double squares = 0;
      for (std::size_t i = 0; i < columns; ++i) {
        squares += static_cast<long double>(values[row * columns + i]) * values[row * columns + i];
      }
      for (std::size_t i = 0; i < columns; ++i) {
        expected.push_back(
            static_cast<double>(values[row * columns + i] / std::sqrt(squares / columns + 1e-3)) *
            gain[i]);
      }
    }
    check_close(result_of(graph, tensors), expected);
  }
}

TEST_CASE("softmax follows its definition, and is 0 in a row of -inf") {
  for (const Sizes& shape : kShapes) {
    HostTensors tensors;
    tensors["x"] = random_tensor(shape, 1, DType::Float32, -9, 9);
    Graph graph;
    graph.output("y", graph.softmax(input_like(graph, "x", tensors["x"])));
    check_close(result_of(graph, tensors),
                expected_softmax(values_of(tensors["x"]), static_cast<std::size_t>(shape.back())));
  }
  HostTensors tensors;
  tensors["x"] =
      tensor_of(DType::Float32, {3, 2}, {-kInfinity, -kInfinity, -kInfinity, 5, 10000, 10000});
  Graph graph;
  graph.output("y", graph.softmax(input_like(graph, "x", tensors["x"])));
  CHECK(result_of(graph, tensors) == Values{0, 0, 0, 1, 0.5, 0.5});
}

TEST_CASE("reductions take every axis, from the end too, and keep it where asked") {
  const Sizes shape = {3, 5, 7};
  HostTensors tensors;
  tensors["x"] = random_tensor(shape, 1);
  for (int axis = -3; axis < 3; ++axis) {
    Graph graph;
    const Tensor x = input_like(graph, "x", tensors["x"]);
    graph.output("sum", graph.reduce_sum(x, axis));
    graph.output("mean", graph.reduce_mean(x, axis, true));
    graph.output("max", graph.reduce_max(x, axis));
    const auto outputs = run_exactly(graph, tensors);

    const auto at = static_cast<std::size_t>(axis < 0 ? axis + 3 : axis);
    Sizes kept = shape;
    kept[at] = 1;
    CHECK(outputs.at("mean").shape == kept);
    Sizes dropped = shape;
    dropped.erase(dropped.begin() + static_cast<std::ptrdiff_t>(at));
    CHECK(outputs.at("sum").shape == dropped);

    const auto size = static_cast<std::size_t>(count_of(dropped));
    Values sums(size);
    Values largest(size, -kInfinity);
    for (std::int64_t i = 0; i < count_of(shape); ++i) {
      const std::int64_t coordinates[] = {i / 35, i / 7 % 5, i % 7};
      std::int64_t index = 0;
      for (std::size_t k = 0; k < 3; ++k) {
        index = k == at ? index : index * shape[k] + coordinates[k];
      }
      const double value = tensors["x"].at(i);
      sums[static_cast<std::size_t>(index)] += value;
      largest[static_cast<std::size_t>(index)] =
          std::max(largest[static_cast<std::size_t>(index)], value);
    }
    check_close(outputs.at("sum").values, sums);
    CHECK(outputs.at("max").values == largest);
    for (double& sum : sums) {
      sum /= static_cast<double>(shape[at]);
    }
    check_close(outputs.at("mean").values, sums);
  }
}

TEST_CASE("the largest of nothing is -inf, and of a NaN is a NaN") {
  HostTensors tensors;
  tensors["x"] = tensor_of(DType::Float32, {2, 0}, {});
  tensors["z"] = tensor_of(DType::Float32, {1, 3}, {1, std::nan(""), 2});
  Graph graph;
  graph.output("y", graph.reduce_max(input_like(graph, "x", tensors["x"]), 1));
  graph.output("z_max", graph.reduce_max(input_like(graph, "z", tensors["z"]), 1));
  const auto outputs = run_exactly(graph, tensors);
  CHECK(outputs.at("y").values == Values{-kInfinity, -kInfinity});
  CHECK(std::isnan(outputs.at("z_max").values[0]));
}
