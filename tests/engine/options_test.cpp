#include "stof/options.hpp"

#include <array>
#include <cstddef>
#include <stop_token>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "stof/stof.hpp"
#include "temporary_folder.hpp"

// A host test sees no GPU, even where there is one.
namespace {

using stof::Backend;
using stof::DType;
using stof::Engine;
using stof::EngineOptions;
using stof::test::TemporaryFolder;

// What the call throws as an Error of that kind, or "no error".
template <typename Error, typename Call>
std::string message(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

stof::Graph relu() {
  stof::Graph graph("relu");
  graph.output("y", graph.relu(graph.input("x", {4}, DType::Float32)));
  return graph;
}

std::string option_error(const EngineOptions& options) {
  return message<stof::GraphError>([&] { const Engine engine(options); });
}

}  // namespace

// No options at all are no copy of another engine.
static_assert(requires { Engine({}); });
static_assert(requires { Engine(); });

TEST_CASE("the default is a GPU, and the error says why there is none") {
  const std::string text = message<stof::CudaError>([] { const Engine engine; });
  CAPTURE(text);
  CHECK(text.starts_with("engine: GPU 0 cannot be used: cuda: "));
  CHECK(contains(text, "Backend::Reference"));
}

TEST_CASE("Auto takes the CPU where there is no GPU, and says so") {
  std::vector<stof::Event> events;
  const Engine engine({.backend = Backend::Auto,
                       .on_event = [&](const stof::Event& event) { events.push_back(event); }});
  CHECK(engine.backend() == Backend::Reference);
  REQUIRE(events.size() == 1);
  CHECK(events[0].stage == "fallback");
  CHECK(events[0].detail.starts_with("cuda: "));

  const stof::Plan plan = engine.build(relu());
  const stof::Weights weights = engine.load_weights(plan, std::vector<stof::NamedTensor>());
  stof::Buffer x = engine.allocate(plan.input("x"));
  const stof::Buffer y = engine.allocate(plan.output("y"));
  x.upload(std::vector<float>{-1, 2, -3, 4});
  plan.bind(weights, {{"x", x}, {"y", y}}).launch();
  CHECK(y.download_floats() == std::vector<float>{0, 2, 0, 4});
  CHECK(plan.workspace_bytes() == 0);
}

TEST_CASE("targets and profiles that do not fit are named") {
  CHECK(option_error({.target = "sm_90a", .device_profile = "a100"}) ==
        "engine: target sm_90a does not run on NVIDIA A100-SXM4-80GB");
  CHECK(contains(option_error({.target = "sm_90a", .device_profile = "h2000"}), "h2000"));
  CHECK(contains(option_error({.target = "sm_70"}), "sm_70"));
  CHECK(option_error({.device_profile = "h200"}) ==
        "engine: device_profile 'h200' goes with a target, a device has its own");
  CHECK(option_error({.backend = Backend::Reference, .device_profile = "h200"}) ==
        "engine: device_profile 'h200' goes with a target, a device has its own");
  CHECK(option_error({.backend = Backend::Reference, .target = "sm_90a"}) ==
        "engine: target sm_90a is for Backend::Gpu");
}

TEST_CASE("numbers below the least are named, whatever the backend") {
  for (const Backend backend : {Backend::Reference, Backend::Auto, Backend::Gpu}) {
    CHECK(option_error({.backend = backend, .device = -1}) ==
          "engine: device is -1, the least is 0");
    CHECK(option_error({.backend = backend, .tuning_seconds = -3}) ==
          "engine: tuning_seconds is -3, the least is 0");
  }
}

TEST_CASE("a build for a target needs no GPU, and is not run") {
  const TemporaryFolder folder;
  const Engine engine({.target = "sm_90a", .cache_dir = folder.path()});
  CHECK(engine.backend() == Backend::Gpu);
  const stof::TensorInfo x{.name = "x", .shape = {4}, .dtype = DType::Float32};
  CHECK(message<stof::GraphError>([&] { engine.allocate(x); }) ==
        "allocate: the engine builds for target sm_90a and has no GPU; an engine without a target "
        "has one");
}

TEST_CASE("a stop ends a build") {
  std::stop_source source;
  const Engine engine(
      {.target = "sm_90a", .cache_dir = std::filesystem::path(), .stop_token = source.get_token()});
  source.request_stop();
  CHECK(message<stof::CancelledError>([&] { engine.build(relu()); }) == "build: cancelled");
}

TEST_CASE("what lies on the host is not for a GPU, nor the other way") {
  const Engine engine({.backend = Backend::Reference});
  const stof::Plan plan = engine.build(relu());
  const stof::Weights weights = engine.load_weights(plan, std::vector<stof::NamedTensor>());
  const stof::Buffer x = engine.allocate(plan.input("x"));
  const stof::Buffer y = engine.allocate(plan.output("y"));
  stof::TensorView device = x.view();
  device.location = stof::Location::Device;
  CHECK(message<stof::GraphError>([&] {
          plan.bind(weights, {{"x", device}, {"y", y}});
        }) == "bind: input 'x' lies on a device, the reference backend reads the host");
  alignas(256) std::array<std::byte, 256> memory = {};
  CHECK(message<stof::GraphError>([&] {
          plan.bind(weights, {{"x", x}, {"y", y}}, {.dims = {}, .workspace = &memory[8]});
        }).ends_with("not at a multiple of 256"));
}

TEST_CASE("tuning wants a GPU, and kernels that may be compiled") {
  CHECK(option_error({.backend = Backend::Reference, .tuning = stof::Tuning::Quick}) ==
        "engine: tuning times kernels on a GPU, which Backend::Reference has not");
  CHECK(option_error({.target = "sm_90a", .tuning = stof::Tuning::Full}) ==
        "engine: tuning times kernels on a GPU, and target sm_90a builds without one");
  CHECK(option_error({.target = "sm_90a"}) == "no error");
}
