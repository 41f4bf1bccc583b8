#include "reference/run.hpp"

#include <cstring>

#include "attention_testing.hpp"

using namespace stof::testing;
using stof::Dim;
using stof::DType;
using stof::Graph;
using stof::GraphError;
using stof::HostTensor;
using stof::Precision;
using stof::Tensor;
using stof::TensorView;
using stof::reference::Tensors;

namespace {

// y = x + w over [seq, 3].
Graph small_graph() {
  Graph graph("small");
  const Dim seq = graph.dim("seq", 1, 8);
  const Tensor x = graph.input("x", {seq, 3}, DType::Float32);
  graph.output("y", graph.add(x, graph.weight("w", {3}, DType::Float32)));
  return graph;
}

HostTensors small_tensors(std::int64_t seq = 2) {
  HostTensors tensors;
  tensors["x"] = random_tensor({seq, 3}, 1);
  tensors["w"] = random_tensor({3}, 2);
  return tensors;
}

void fails_with(const Graph& graph, HostTensors& tensors, const char* message) {
  CHECK_THROWS_WITH_AS(run_graph(graph, tensors, {}), message, GraphError);
}

// A bit of everything that runs on several threads.
Graph large_graph(HostTensors& tensors) {
  tensors["x"] = random_tensor({2, 150, 48}, 1);
  tensors["w"] = random_tensor({144, 48}, 2);
  tensors["gain"] = random_tensor({48}, 3);
  Graph graph;
  const Tensor x = input_like(graph, "x", tensors["x"]);
  const Tensor gain = graph.weight("gain", {48}, DType::Float32);
  const Tensor w = graph.weight("w", {144, 48}, DType::Float32);
  const auto heads = graph.split_qkv(graph.linear(graph.rms_norm(x, gain), w), {.heads = 3});
  const Tensor context = graph.attention(graph.rotary(heads.q), heads.k, heads.v,
                                         {.mask = stof::causal(), .score = stof::score() * 0.5});
  graph.output("y", graph.gelu(graph.add(graph.merge_heads(context), x)));
  return graph;
}

}  // namespace

TEST_CASE("what does not fit the graph is an error that names it") {
  const Graph graph = small_graph();
  HostTensors tensors = small_tensors();
  tensors.erase("x");
  fails_with(graph, tensors, "reference: input \"x\" is missing");

  tensors = small_tensors();
  tensors.erase("w");
  fails_with(graph, tensors, "reference: weight \"w\" is missing");

  tensors = small_tensors();
  tensors["z"] = tensors["x"];
  fails_with(graph, tensors, "reference: graph \"small\" has no input or weight \"z\"");

  tensors = small_tensors();
  tensors["x"] = tensors["x"].cast(DType::Float16);
  fails_with(graph, tensors, "reference: input \"x\" is float16, the graph says float32");

  tensors = small_tensors();
  tensors["x"] = random_tensor({6}, 1);
  fails_with(graph, tensors, "reference: input \"x\" has shape [6], the graph says [seq, 3]");

  tensors = small_tensors();
  tensors["w"] = random_tensor({4}, 1);
  fails_with(graph, tensors, "reference: weight \"w\" has shape [4], the graph says [3]");

  tensors = small_tensors(9);
  fails_with(graph, tensors, "dim: seq = 9 is outside [1, 8]");
}

TEST_CASE("results are no inputs") {
  Graph graph = small_graph();
  HostTensors tensors = small_tensors();
  const std::string name = graph.ir().values.back()->name;
  tensors[name] = tensors["x"];
  const std::string message = "reference: graph \"small\" has no input or weight \"" + name + "\"";
  fails_with(graph, tensors, message.c_str());
}

TEST_CASE("memory that cannot be read is an error") {
  const Graph graph = small_graph();
  HostTensors tensors = small_tensors();
  Tensors views = {{"x", tensors["x"].view()}, {"w", tensors["w"].view()}};
  views["x"].location = stof::Location::Device;
  CHECK_THROWS_WITH_AS(stof::reference::run(graph, views),
                       "reference: input \"x\" lies on a device", GraphError);
  views["x"] = TensorView{.data = nullptr, .shape = {2, 3}};
  CHECK_THROWS_WITH_AS(stof::reference::run(graph, views), "reference: input \"x\" has no data",
                       GraphError);
  views["x"] = tensors["x"].view();
  views["x"].strides = {3};
  CHECK_THROWS_AS(stof::reference::run(graph, views), GraphError);
}

TEST_CASE("inputs give symbols one value") {
  Graph graph;
  const Dim seq = graph.dim("seq", 1, 8);
  const Tensor a = graph.input("a", {seq}, DType::Float32);
  const Tensor b = graph.input("b", {2 * seq}, DType::Float32);
  const Tensor c = graph.input("c", {seq}, DType::Float32);
  graph.output("y", graph.concat({a, b, c}, 0));
  HostTensors tensors;
  tensors["a"] = random_tensor({3}, 1);
  tensors["b"] = random_tensor({6}, 2);
  tensors["c"] = random_tensor({3}, 3);
  CHECK(run_graph(graph, tensors, {}).at("y").shape == Sizes{12});

  tensors["c"] = random_tensor({4}, 3);
  fails_with(graph, tensors,
             "reference: input \"c\" has shape [4], the graph says [seq] and seq is 3");
  tensors["c"] = random_tensor({3}, 3);
  tensors["b"] = random_tensor({5}, 2);
  fails_with(graph, tensors, "reference: input \"b\" has shape [5], the graph says [2 * seq]");
}

TEST_CASE("a symbol that no input shows is given by the caller") {
  Graph graph;
  const Dim seq = graph.dim("seq", 1, 8);
  const Tensor x = graph.input("x", {8, 2}, DType::Float32);
  graph.output("y", graph.slice(x, 0, 0, seq));
  HostTensors tensors;
  tensors["x"] = random_tensor({8, 2}, 1);
  CHECK(run_graph(graph, tensors, {.dims = {{"seq", 5}}}).at("y").shape == Sizes{5, 2});
  CHECK_THROWS_WITH_AS(run_graph(graph, tensors, {}),
                       "bind: dim seq has no value, dims must give one in [1, 8]", GraphError);
}

TEST_CASE("a slice that a symbol moves out of its axis is an error") {
  Graph graph;
  const Dim start = graph.dim("start", 0, 4);
  const Tensor x = graph.input("x", {6}, DType::Float32);
  Tensor y;
  try {
    y = graph.slice(x, 0, start, 3);
  } catch (const GraphError&) {
    return;  // refused where it is made
  }
  graph.output("y", y);
  HostTensors tensors;
  tensors["x"] = random_tensor({6}, 1);
  CHECK(run_graph(graph, tensors, {.dims = {{"start", 3}}}).at("y").shape == Sizes{3});
  CHECK_THROWS_AS(run_graph(graph, tensors, {.dims = {{"start", 4}}}), GraphError);
}

TEST_CASE("strided and unaligned inputs are read as what they show") {
  const Graph graph = small_graph();
  HostTensors tensors = small_tensors();
  const Values expected = result_of(graph, tensors);

  HostTensor transposed(DType::Float32, {3, 2});
  for (std::int64_t i = 0; i < 6; ++i) {
    transposed.set(i % 3 * 2 + i / 3, tensors["x"].at(i));
  }
  Tensors views = {{"x", transposed.view()}, {"w", tensors["w"].view()}};
  views["x"].shape = {2, 3};
  views["x"].strides = {1, 2};
  CHECK(stof::reference::run(graph, views, {.precision = Precision::Float64}).at("y").values ==
        expected);

  std::vector<std::byte> bytes(1 + tensors["x"].bytes().size());
  std::memcpy(bytes.data() + 1, tensors["x"].bytes().data(), tensors["x"].bytes().size());
  views["x"] = {.data = bytes.data() + 1, .dtype = DType::Float32, .shape = {2, 3}};
  CHECK(stof::reference::run(graph, views, {.precision = Precision::Float64}).at("y").values ==
        expected);
}

TEST_CASE("an integer that no double holds is refused") {
  HostTensors tensors;
  tensors["ids"] = HostTensor(DType::Int64, {2});
  const std::int64_t large = (std::int64_t{1} << 53) + 1;
  std::memcpy(tensors["ids"].bytes().data() + 8, &large, sizeof(large));
  Graph graph;
  graph.output("y", graph.cast(input_like(graph, "ids", tensors["ids"]), DType::Float32));
  fails_with(graph, tensors,
             "reference: input \"ids\" holds 9007199254740993 at position 1, over 2^53");
}

TEST_CASE("an output may be an input, a view of one, or the same value twice") {
  HostTensors tensors = small_tensors();
  Graph graph;
  const Tensor x = input_like(graph, "x", tensors["x"]);
  const Tensor y = graph.relu(x);
  graph.output("x_again", x);
  graph.output("flat", graph.reshape(x, {6}));
  graph.output("y", y);
  graph.output("y_again", y);
  tensors.erase("w");
  const auto outputs = run_graph(graph, tensors, {});
  CHECK(outputs.at("x_again").values == values_of(tensors["x"]));
  CHECK(outputs.at("flat").shape == Sizes{6});
  CHECK(outputs.at("y").values == outputs.at("y_again").values);
}

TEST_CASE("an output becomes a tensor of its dtype") {
  HostTensors tensors;
  tensors["x"] = random_tensor({3, 2}, 1, DType::BFloat16);
  Graph graph;
  graph.output("y", graph.scale(input_like(graph, "x", tensors["x"]), 1.0 / 3));
  const HostTensor y = run_graph(graph, tensors, {}).at("y").tensor();
  CHECK(y.dtype() == DType::BFloat16);
  CHECK(y.shape() == Sizes{3, 2});
  const auto in_model = run_graph(graph, tensors, {.precision = Precision::Model}).at("y").values;
  check_close(values_of(y), in_model, 1e-2);
}

TEST_CASE("a result that no memory holds is an error") {
  HostTensors tensors;
  tensors["x"] = random_tensor({1}, 1);
  Graph graph;
  const std::int64_t large = std::int64_t{1} << 20;
  const Tensor y = graph.broadcast(input_like(graph, "x", tensors["x"]), {large, large});
  graph.output("y", y);
  const std::string message =
      "reference: \"" + y.name() + "\" [1048576, 1048576] has more than 2^32 elements";
  fails_with(graph, tensors, message.c_str());
}

TEST_CASE("results do not depend on the number of threads") {
  HostTensors tensors;
  const Graph graph = large_graph(tensors);
  for (const Precision precision : {Precision::Float32, Precision::Float64, Precision::Model}) {
    const auto one = run_graph(graph, tensors, {.precision = precision, .thread_count = 1});
    const auto many = run_graph(graph, tensors, {.precision = precision, .thread_count = 7});
    CHECK(one.at("y").values == many.at("y").values);
  }
}

TEST_CASE("float32 stays close to float64") {
  HostTensors tensors;
  const Graph graph = large_graph(tensors);
  const Values exact = result_of(graph, tensors);
  const Values fast = run_graph(graph, tensors, {}).at("y").values;
  CHECK(fast != exact);
  check_close(fast, exact, 1e-4);  // the scores are large: exponentials multiply their errors
  CHECK(std::ranges::all_of(
      fast, [](double y) { return y == static_cast<double>(static_cast<float>(y)); }));
}
