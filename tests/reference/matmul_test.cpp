#include "testing.hpp"

using namespace stof::testing;
using stof::DType;
using stof::Graph;
using stof::HostTensor;
using stof::Tensor;

namespace {

// [batch, rows, columns] of a tensor, through its layout; leading extents of 1 repeat.
double at(const HostTensor& tensor, std::int64_t batch, std::int64_t row, std::int64_t column,
          bool is_transposed) {
  const Sizes& shape = tensor.shape();
  const std::int64_t rows = shape[shape.size() - 2];
  const std::int64_t columns = shape[shape.size() - 1];
  const std::int64_t matrices = tensor.element_count() / (rows * columns);
  const std::int64_t offset = (matrices == 1 ? 0 : batch) * rows * columns;
  return tensor.at(offset + (is_transposed ? column * columns + row : row * columns + column));
}

Values expected_matmul(const HostTensor& a, const HostTensor& b, std::int64_t batch, std::int64_t m,
                       std::int64_t n, std::int64_t k, bool transpose_a, bool transpose_b) {
  Values c;
  for (std::int64_t i = 0; i < batch * m * n; ++i) {
    double sum = 0;
    for (std::int64_t d = 0; d < k; ++d) {
      sum +=
          at(a, i / (m * n), i / n % m, d, transpose_a) * at(b, i / (m * n), d, i % n, transpose_b);
    }
    c.push_back(sum);
  }
  return c;
}

}  // namespace

TEST_CASE("matmul multiplies batches, transposed or not") {
  struct Case {
    std::int64_t m, n, k;
  };
  for (const auto& [m, n, k] :
       {Case{1, 1, 1}, Case{7, 13, 5}, Case{300, 31, 17}, Case{3, 400, 2}}) {
    for (const bool transpose_a : {false, true}) {
      for (const bool transpose_b : {false, true}) {
        for (const Sizes& b_batch : {Sizes{}, Sizes{1}, Sizes{3}}) {
          HostTensors tensors;
          tensors["a"] =
              random_tensor(transpose_a ? Sizes{3, k, m} : Sizes{3, m, k}, 1, DType::Float32);
          Sizes b_shape = b_batch;
          b_shape.insert(b_shape.end(), {transpose_b ? n : k, transpose_b ? k : n});
          tensors["b"] = random_tensor(b_shape, 2);
          Graph graph;
          const Tensor a = input_like(graph, "a", tensors["a"]);
          const Tensor b = input_like(graph, "b", tensors["b"]);
          graph.output("y", graph.matmul(a, b, transpose_a, transpose_b));
          check_close(result_of(graph, tensors), expected_matmul(tensors["a"], tensors["b"], 3, m,
                                                                 n, k, transpose_a, transpose_b));
        }
      }
    }
  }
}

TEST_CASE("leading extents of a matmul broadcast against each other") {
  HostTensors tensors;
  tensors["a"] = random_tensor({2, 1, 3, 4}, 1);
  tensors["b"] = random_tensor({5, 4, 6}, 2);
  Graph graph;
  const Tensor a = input_like(graph, "a", tensors["a"]);
  graph.output("y", graph.matmul(a, input_like(graph, "b", tensors["b"])));
  const auto output = run_exactly(graph, tensors).at("y");
  CHECK(output.shape == Sizes{2, 5, 3, 6});
  Values expected;
  for (std::int64_t i = 0; i < 2 * 5 * 3 * 6; ++i) {
    double sum = 0;
    for (std::int64_t k = 0; k < 4; ++k) {
      sum += tensors["a"].at((i / 90 * 3 + i / 6 % 3) * 4 + k) *
             tensors["b"].at((i / 18 % 5 * 4 + k) * 6 + i % 6);
    }
    expected.push_back(sum);
  }
  check_close(output.values, expected);
}

TEST_CASE("linear reads weights of either layout and adds the bias to every row") {
  for (const Sizes& x_shape : {Sizes{1, 5}, Sizes{2, 3, 5}, Sizes{700, 5}}) {
    HostTensors tensors;
    tensors["x"] = random_tensor(x_shape, 1);
    tensors["out_in"] = random_tensor({7, 5}, 2);
    tensors["in_out"] = random_tensor({5, 7}, 3);
    tensors["bias"] = random_tensor({7}, 4);
    Graph graph;
    const Tensor x = input_like(graph, "x", tensors["x"]);
    const Tensor out_in = graph.weight("out_in", {7, 5}, DType::Float32);
    const Tensor in_out =
        graph.weight("in_out", {5, 7}, DType::Float32, {.layout = stof::WeightLayout::InOut});
    const Tensor bias = graph.weight("bias", {7}, DType::Float32);
    graph.output("out_in_y", graph.linear(x, out_in, bias));
    graph.output("in_out_y", graph.linear(x, in_out));
    const auto outputs = run_exactly(graph, tensors);

    const std::int64_t rows = count_of(x_shape) / 5;
    Values with_bias = expected_matmul(tensors["x"].cast(DType::Float32), tensors["out_in"], 1,
                                       rows, 7, 5, false, true);
    for (std::size_t i = 0; i < with_bias.size(); ++i) {
      with_bias[i] += tensors["bias"].at(static_cast<std::int64_t>(i % 7));
    }
    check_close(outputs.at("out_in_y").values, with_bias);
    check_close(outputs.at("in_out_y").values,
                expected_matmul(tensors["x"], tensors["in_out"], 1, rows, 7, 5, false, false));

    const auto primitive = run_exactly(normalised(graph), tensors);
    check_close(primitive.at("out_in_y").values, with_bias);
    check_close(primitive.at("in_out_y").values, outputs.at("in_out_y").values);
  }
}

TEST_CASE("a linear of float16 rounds once, behind its bias; its two primitives round twice") {
  HostTensors tensors;
  tensors["x"] = tensor_of(DType::Float16, {1, 2}, {1, 0x1p-11});
  tensors["w"] = tensor_of(DType::Float16, {1, 2}, {1, 1});
  tensors["bias"] = tensor_of(DType::Float16, {1}, {0x1p-11});
  Graph graph;
  const Tensor x = input_like(graph, "x", tensors["x"]);
  const Tensor w = graph.weight("w", {1, 2}, DType::Float16);
  graph.output("y", graph.linear(x, w, graph.weight("bias", {1}, DType::Float16)));
  const stof::reference::Options model{.precision = stof::Precision::Model};
  CHECK(run_graph(graph, tensors, model).at("y").values[0] == 1 + 0x1p-10);
  CHECK(run_graph(normalised(graph), tensors, model).at("y").values[0] == 1);
}
