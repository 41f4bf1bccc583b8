#include "stof/engine.hpp"

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include <doctest/doctest.h>

#include "error_of.hpp"
#include "io/safetensors_writer.hpp"
#include "stof/stof.hpp"

namespace {

using stof::DType;
using stof::test::error_of;

// y = x w^T + b, with a symbolic number of rows.
struct Linear {
  stof::Graph graph{"linear"};

  Linear() {
    const stof::Dim rows = graph.dim("rows", 1, 100);
    const auto x = graph.input("x", {rows, 3}, DType::Float32);
    const auto w = graph.weight("w", {2, 3}, DType::Float16);
    const auto b = graph.weight("b", {2}, DType::Float16);
    graph.output("y",
                 graph.cast(graph.linear(graph.cast(x, DType::Float16), w, b), DType::Float32));
  }
};

stof::HostTensor floats(std::vector<std::int64_t> shape, const std::vector<double>& values) {
  stof::HostTensor tensor(DType::Float32, std::move(shape));
  for (std::size_t i = 0; i < values.size(); ++i) {
    tensor.set(static_cast<std::int64_t>(i), values[i]);
  }
  return tensor;
}

struct LinearWeights {
  stof::HostTensor w = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  stof::HostTensor b = floats({2}, {0.5, -0.5});

  std::vector<stof::NamedTensor> named() {
    return {{"b", b.view()}, {"unused", b.view()}, {"w", w.view()}};
  }
};

stof::Engine reference_engine(stof::Precision precision = stof::Precision::Model) {
  return stof::Engine({.backend = stof::Backend::Reference, .precision = precision});
}

}  // namespace

TEST_CASE("build, load, bind, launch") {
  const stof::Engine engine = reference_engine(stof::Precision::Float64);
  const stof::Plan plan = engine.build(Linear().graph);
  LinearWeights host;
  const stof::Weights weights = engine.load_weights(plan, host.named());

  stof::Buffer x = engine.allocate(plan.input("x"), {{"rows", 2}});
  stof::Buffer y = engine.allocate(plan.output("y"), {{"rows", 2}});
  x.upload(std::vector<float>{1, 0, 0, 1, 1, 1});
  stof::Execution run = plan.bind(weights, {{"x", x}, {"y", y}}, {.dims = {{"rows", 2}}});
  run.launch();
  CHECK(y.download_floats() == std::vector<float>{1.5F, 3.5F, 6.5F, 14.5F});

  SUBCASE("another input takes the place of the bound one") {
    stof::HostTensor other = floats({2, 3}, {0, 0, 0, 0, 0, 2});
    run.set("x", other.view());
    run.launch();
    CHECK(y.download_floats() == std::vector<float>{0.5F, -0.5F, 6.5F, 11.5F});
  }
  SUBCASE("an output may be strided: here each row lies in one of four columns") {
    std::vector<float> wide(8, -1.0F);
    run.set("y",
            {.data = wide.data(), .dtype = DType::Float32, .shape = {2, 2}, .strides = {4, 1}});
    run.launch();
    CHECK(wide == std::vector<float>{1.5F, 3.5F, -1, -1, 6.5F, 14.5F, -1, -1});
  }
}

TEST_CASE("weights come out of a safetensors file, and are rounded to the dtype of the graph") {
  const auto path = std::filesystem::temp_directory_path() / "stof_engine_test.safetensors";
  LinearWeights host;
  host.b.set(0, 1.0 / 3.0);
  stof::io::write_safetensors(path, host.named());
  const stof::Engine engine = reference_engine(stof::Precision::Float64);
  const stof::Plan plan = engine.build(Linear().graph);
  const stof::Weights weights = engine.load_weights(plan, path);
  std::filesystem::remove(path);

  stof::HostTensor x = floats({1, 3}, {0, 0, 0});
  stof::HostTensor y = floats({1, 2}, {0, 0});
  plan.bind(weights, {{"x", x.view()}, {"y", y.view()}}, {.dims = {{"rows", 1}}}).launch();
  CHECK(y.at(0) == 0.333251953125);  // the float16 next to a third
}

TEST_CASE("random weights are the same for the same graph") {
  const stof::Engine engine = reference_engine();
  const auto result = [&] {
    const stof::Plan plan = engine.build(Linear().graph);
    stof::HostTensor x = floats({1, 3}, {1, 2, 3});
    stof::Buffer y = engine.allocate(plan.output("y"), {{"rows", 1}});
    plan.bind(engine.random_weights(plan), {{"x", x.view()}, {"y", y}}, {.dims = {{"rows", 1}}})
        .launch();
    return y.download_floats();
  };
  CHECK(result() == result());
  CHECK(result()[0] != 0.0F);
  CHECK(result()[0] != result()[1]);
}

TEST_CASE("what does not fit is named") {
  const stof::Engine engine = reference_engine();
  const stof::Plan plan = engine.build(Linear().graph);
  LinearWeights host;
  const stof::Weights weights = engine.load_weights(plan, host.named());
  stof::HostTensor x = floats({2, 3}, {});
  stof::HostTensor y = floats({2, 2}, {});
  const stof::BindOptions two{.dims = {{"rows", 2}}};

  CHECK(error_of([&] { engine.build(stof::Graph("empty")); }) ==
        "build: graph 'empty' has no output");
  CHECK(error_of([&] { plan.input("z"); }) == "plan: no input is called 'z', there is 'x'");
  CHECK(error_of([&] {
          plan.bind(weights, {{"x", x.view()}}, two);
        }) == "bind: output 'y' is not bound");
  CHECK(error_of([&] {
          plan.bind(weights, {{"q", x.view()}}, two);
        }) == "bind: 'q' is neither an input ('x') nor an output ('y')");
  CHECK(error_of([&] {
          plan.bind(weights, {{"x", y.view()}, {"y", y.view()}}, two);
        }) == "bind: input 'x' is float32[2, 2], the plan takes float32[2, 3]");
  CHECK(error_of([&] {
          plan.bind(weights, {{"x", x.view()}, {"y", y.view()}}, {});
        }) == "bind: dim 'rows' has no value, BindOptions::dims must give one in [1, 100]");
  CHECK(
      error_of([&] {
        plan.bind(weights, {{"x", x.view()}, {"y", y.view()}}, {.dims = {{"rows", 2}, {"row", 2}}});
      }) == "bind: no dim is called 'row', there is rows");
  CHECK(error_of([&] { engine.allocate(plan.input("x")); }) ==
        "dim: rows has no value, dims must give one in [1, 100]");
  stof::TensorView device = x.view();
  device.location = stof::Location::Device;
  CHECK(error_of([&] {
          plan.bind(weights, {{"x", device}, {"y", y.view()}}, two);
        }) == "bind: input 'x' lies on a device, the reference backend reads the host");

  CHECK(error_of([&] {
          engine.load_weights(plan, std::vector<stof::NamedTensor>{{"b", host.b.view()}});
        }) == "weights: 'w' is missing in the given list, which has 1 tensors");
  CHECK(error_of([&] { engine.load_weights(plan, std::vector<stof::NamedTensor>{}); }) ==
        "weights: 'w', 'b' are missing in the given list, which has 0 tensors");
  stof::Graph chain("chain");
  stof::Tensor sum = chain.input("x", {1}, DType::Float32);
  for (int i = 0; i < 10; ++i) {
    sum = chain.add(sum, chain.weight("w" + std::to_string(i), {1}, DType::Float32));
  }
  chain.output("y", sum);
  CHECK(error_of([&] { engine.load_weights(engine.build(chain), host.named()); }) ==
        "weights: 'w0', 'w1', 'w2', 'w3', 'w4', 'w5', 'w6', 'w7', … (10 in all) are missing in the "
        "given list, which has 3 tensors");
  const std::vector<stof::NamedTensor> swapped = {{"w", host.b.view()}, {"b", host.w.view()}};
  CHECK(error_of([&] { engine.load_weights(plan, swapped); }) ==
        "weights: 'w' of the given list is float32[2], the graph takes float16[2, 3]");
  CHECK(error_of([&] {
          stof::Buffer(DType::Float16, {3}).upload(std::vector<float>{1, 2});
        }) == "upload: 2 floats do not fill a buffer of float16[3]");

  CHECK(error_of([&] { stof::Buffer(DType::Int32, {1}).upload(std::vector<float>{1}); }) ==
        "upload: floats do not go into a buffer of int32[1], give a TensorView of that dtype");
  CHECK(error_of([&] {
          stof::Buffer(DType::Int32, {2, 2}).upload(std::vector<std::int32_t>{1, 2, 3});
        }) == "upload: 3 integers of 32 bits do not fill a buffer of int32[2, 2]");
  CHECK(error_of([&] { stof::Buffer(DType::Int64, {1}).upload(std::vector<std::int32_t>{1}); }) ==
        "upload: integers of 32 bits do not go into a buffer of int64[1], give a TensorView of "
        "that dtype");
  stof::Buffer integers(DType::Int32, {2, 2});
  integers.upload(std::vector<std::int32_t>{1, -2, 3, 1 << 30});
  CHECK(integers.download_floats() == std::vector<float>{1, -2, 3, 1 << 30});
  stof::TensorView nothing = host.w.view();
  nothing.data = nullptr;
  const std::vector<stof::NamedTensor> null = {{"w", nothing}, {"b", host.b.view()}};
  CHECK(error_of([&] { engine.load_weights(plan, null); }) ==
        "weights: 'w' of the given list is a null pointer");
  stof::Execution run = plan.bind(weights, {{"x", x.view()}, {"y", y.view()}}, two);
  CHECK(error_of([&] { run.set("w", x.view()); }) ==
        "set: 'w' is neither an input ('x') nor an output ('y')");
  stof::Graph echo("echo");
  echo.output("x", echo.relu(echo.input("x", {1}, DType::Float32)));
  CHECK(error_of([&] { engine.build(echo); }) == "build: 'x' is both an input and an output");
}
