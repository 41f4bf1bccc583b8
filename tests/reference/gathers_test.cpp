#include <complex>
#include <numeric>

#include "testing.hpp"

using namespace stof::testing;
using stof::DType;
using stof::Graph;
using stof::GraphError;
using stof::HostTensor;
using stof::RotaryOptions;
using stof::RotaryStyle;
using stof::Tensor;

namespace {

// Every element is its own position.
HostTensor counted(const Sizes& shape) {
  Values values(static_cast<std::size_t>(count_of(shape)));
  std::iota(values.begin(), values.end(), 0.0);
  return tensor_of(DType::Float32, shape, values);
}

}  // namespace

TEST_CASE("reshape keeps the order of the elements") {
  HostTensors tensors;
  tensors["x"] = counted({2, 3, 5});
  Graph graph;
  graph.output("y", graph.reshape(input_like(graph, "x", tensors["x"]), {5, -1}));
  const auto output = run_exactly(graph, tensors).at("y");
  CHECK(output.shape == Sizes{5, 6});
  CHECK(output.values == values_of(tensors["x"]));
}

TEST_CASE("transpose puts axis permutation[i] at i") {
  HostTensors tensors;
  tensors["x"] = counted({2, 3, 5, 7});
  Graph graph;
  graph.output("y", graph.transpose(input_like(graph, "x", tensors["x"]), {2, 0, 3, 1}));
  const auto output = run_exactly(graph, tensors).at("y");
  REQUIRE(output.shape == Sizes{5, 2, 7, 3});
  Values expected;
  for (int a = 0; a < 5; ++a) {
    for (int b = 0; b < 2; ++b) {
      for (int c = 0; c < 7; ++c) {
        for (int d = 0; d < 3; ++d) {
          expected.push_back(((b * 3 + d) * 5 + a) * 7 + c);
        }
      }
    }
  }
  CHECK(output.values == expected);
}

TEST_CASE("slice takes entries of an axis, the last one and none too") {
  HostTensors tensors;
  tensors["x"] = counted({2, 4, 3});
  Graph graph;
  const Tensor x = input_like(graph, "x", tensors["x"]);
  graph.output("middle", graph.slice(x, 1, 1, 2));
  graph.output("last", graph.slice(x, -1, 2, 1));
  graph.output("none", graph.slice(x, 0, 2, 0));
  const auto outputs = run_exactly(graph, tensors);
  CHECK(outputs.at("middle").values == Values{3, 4, 5, 6, 7, 8, 15, 16, 17, 18, 19, 20});
  CHECK(outputs.at("last").values == Values{2, 5, 8, 11, 14, 17, 20, 23});
  CHECK(outputs.at("none").values.empty());
}

TEST_CASE("concat joins along any axis") {
  HostTensors tensors;
  tensors["a"] = tensor_of(DType::Float32, {2, 1, 2}, {1, 2, 3, 4});
  tensors["b"] = tensor_of(DType::Float32, {2, 2, 2}, {5, 6, 7, 8, 9, 10, 11, 12});
  Graph graph;
  const Tensor a = input_like(graph, "a", tensors["a"]);
  const Tensor b = input_like(graph, "b", tensors["b"]);
  graph.output("middle", graph.concat({a, b}, 1));
  graph.output("last", graph.concat({a, a}, -1));
  graph.output("first", graph.concat({b, b, b}, 0));
  const auto outputs = run_exactly(graph, tensors);
  CHECK(outputs.at("middle").values == Values{1, 2, 5, 6, 7, 8, 3, 4, 9, 10, 11, 12});
  CHECK(outputs.at("last").values == Values{1, 2, 1, 2, 3, 4, 3, 4});
  CHECK(outputs.at("first").shape == Sizes{6, 2, 2});
}

TEST_CASE("broadcast repeats as NumPy does") {
  HostTensors tensors;
  tensors["x"] = tensor_of(DType::Float32, {2, 1}, {1, 2});
  Graph graph;
  graph.output("y", graph.broadcast(input_like(graph, "x", tensors["x"]), {2, 2, 3}));
  CHECK(result_of(graph, tensors) == Values{1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2});
}

TEST_CASE("embedding reads rows of a table of any dtype, by ids of either width") {
  for (const DType dtype : {DType::Float32, DType::Float16, DType::BFloat16}) {
    for (const DType id_dtype : {DType::Int32, DType::Int64}) {
      HostTensors tensors;
      tensors["table"] = counted({5, 3}).cast(dtype);
      tensors["ids"] = tensor_of(id_dtype, {2, 2}, {4, 0, 1, 4});
      Graph graph;
      const Tensor table = graph.weight("table", {5, 3}, dtype);
      graph.output("y", graph.embedding(table, input_like(graph, "ids", tensors["ids"])));
      CHECK(result_of(graph, tensors) == Values{12, 13, 14, 0, 1, 2, 3, 4, 5, 12, 13, 14});
    }
  }
}

TEST_CASE("an id outside the table is an error that names it") {
  for (const int id : {5, -1}) {
    HostTensors tensors;
    tensors["table"] = counted({5, 3});
    tensors["ids"] = tensor_of(DType::Int32, {2, 2}, {4, 0, static_cast<double>(id), 4});
    Graph graph;
    const Tensor table = graph.weight("table", {5, 3}, DType::Float32);
    graph.output("y", graph.embedding(table, input_like(graph, "ids", tensors["ids"])));
    const std::string message =
        "embedding: id " + std::to_string(id) + " at position 2 is outside the table [5, 3]";
    CHECK_THROWS_WITH_AS(result_of(graph, tensors), message.c_str(), GraphError);
  }
}

TEST_CASE("patches are rows of channel, row, column") {
  HostTensors tensors;
  tensors["x"] = counted({2, 3, 4, 6});
  Graph graph;
  graph.output("y", graph.patches(input_like(graph, "x", tensors["x"]), 2));
  const auto output = run_exactly(graph, tensors).at("y");
  REQUIRE(output.shape == Sizes{2, 6, 12});
  Values expected;
  for (int batch = 0; batch < 2; ++batch) {
    for (int patch = 0; patch < 6; ++patch) {
      for (int i = 0; i < 12; ++i) {
        const int row = patch / 3 * 2 + i / 2 % 2;
        const int column = patch % 3 * 2 + i % 2;
        const int channel = i / 4;
        expected.push_back(((batch * 3 + channel) * 4 + row) * 6 + column);
      }
    }
  }
  CHECK(output.values == expected);
}

TEST_CASE("rotary turns pairs of channels as complex numbers") {
  const Sizes shape = {2, 3, 5, 8};
  struct Case {
    RotaryOptions options;
    Sizes positions;  // shape; empty for none
  };
  const Case cases[] = {{{}, {}},
                        {{.theta = 500, .position = 7}, {}},
                        {{.style = RotaryStyle::Interleaved}, {5}},
                        {{.style = RotaryStyle::Interleaved, .rotary_dim = 6}, {2, 5}},
                        {{.rotary_dim = 4}, {2, 5}}};
  for (const auto& [options, position_shape] : cases) {
    HostTensors tensors;
    tensors["x"] = random_tensor(shape, 1);
    Graph graph;
    const Tensor x = input_like(graph, "x", tensors["x"]);
    Tensor positions;
    if (!position_shape.empty()) {
      Values values(static_cast<std::size_t>(count_of(position_shape)));
      for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = static_cast<double>((i * 37) % 101);
      }
      tensors["positions"] = tensor_of(DType::Int32, position_shape, values);
      positions = input_like(graph, "positions", tensors["positions"]);
    }
    graph.output("y", graph.rotary(x, options, positions));

    Values expected = values_of(tensors["x"]);
    const int dim = options.rotary_dim == 0 ? 8 : options.rotary_dim;
    for (std::int64_t row = 0; row < 30; ++row) {
      const std::int64_t index = position_shape.size() == 2 ? row / 15 * 5 + row % 5 : row % 5;
      const double position = position_shape.empty()
                                  ? static_cast<double>(options.position + row % 5)
                                  : tensors["positions"].at(index);
      for (int i = 0; i < dim / 2; ++i) {
        const bool is_half = options.style == RotaryStyle::Half;
        double* of_row = expected.data() + row * 8;
        double& real = of_row[is_half ? i : 2 * i];
        double& imaginary = of_row[is_half ? i + dim / 2 : 2 * i + 1];
        const double angle = position / std::pow(options.theta, 2.0 * i / dim);
        const auto turned = std::complex(real, imaginary) * std::polar(1.0, angle);
        real = turned.real();
        imaginary = turned.imag();
      }
    }
    check_close(result_of(graph, tensors), expected);
  }
}

TEST_CASE("heads are split and merged back, with fewer heads of keys too") {
  HostTensors tensors;
  tensors["x"] = counted({2, 3, 16});  // 4 query heads and 2 of keys and of values, of 2 channels
  Graph graph;
  const auto heads =
      graph.split_qkv(input_like(graph, "x", tensors["x"]), {.heads = 4, .kv_heads = 2});
  graph.output("q", heads.q);
  graph.output("k", heads.k);
  graph.output("v", heads.v);
  graph.output("merged", graph.merge_heads(heads.q));
  const auto outputs = run_exactly(graph, tensors);
  const auto check_heads = [&](const std::string& name, int count, int first_channel) {
    Values expected;
    for (int i = 0; i < 2 * count * 3 * 2; ++i) {
      const int batch = i / (count * 6);
      const int head = i / 6 % count;
      expected.push_back((batch * 3 + i / 2 % 3) * 16 + first_channel + head * 2 + i % 2);
    }
    CHECK(outputs.at(name).values == expected);
  };
  check_heads("q", 4, 0);
  check_heads("k", 2, 8);
  check_heads("v", 2, 12);
  Values merged;
  for (int i = 0; i < 2 * 3 * 8; ++i) {
    const int row = i / 8;
    merged.push_back(row * 16 + i % 8);
  }
  CHECK(outputs.at("merged").values == merged);
}
