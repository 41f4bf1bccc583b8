// What an application ships: the first run compiles its kernels, every later one finds them.
//
//   example [CACHE]    the folder of the cache, "cache" by default
//
// On a machine without a GPU this builds for an H200, as a build machine does that prepares the
// cache of an application for the machines of its users.
#include <chrono>
#include <cstdio>
#include <string>

#include <stof/stof.hpp>

namespace {

stof::Graph mlp() {
  stof::Graph graph("mlp");
  const auto f16 = stof::DType::Float16;
  const auto x = graph.input("x", {graph.dim("tokens", 1, 4096), 768}, f16);
  const auto inner = graph.gelu(
      graph.linear(x, graph.weight("w_in", {3072, 768}, f16), graph.weight("b_in", {3072}, f16)));
  const auto y = graph.linear(inner, graph.weight("w_out", {768, 3072}, f16));
  graph.output("y", graph.layer_norm(graph.add(x, y), graph.weight("gamma", {768}, f16),
                                     graph.weight("beta", {768}, f16)));
  return graph;
}

bool has_gpu() {
  return stof::Engine({.backend = stof::Backend::Auto}).backend() == stof::Backend::Gpu;
}

// Builds as a new process would, and tells what that took.
void build(const char* run, stof::EngineOptions options) {
  int compiled = 0, found = 0;
  options.on_event = [&](const stof::Event& event) {
    compiled += event.stage == "compiled" ? 1 : 0;
    found += event.stage == "cache" ? 1 : 0;
  };
  const auto start = std::chrono::steady_clock::now();
  const stof::Plan plan = stof::Engine(options).build(mlp());
  const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
  std::printf("%s: %d kernels compiled, %d from the cache, %.1f ms\n", run, compiled, found,
              time.count());
}

}  // namespace

int main(int argc, char** argv) try {
  stof::EngineOptions options = {.backend = stof::Backend::Gpu,
                                 .cache_dir = argc > 1 ? argv[1] : "cache"};
  if (!has_gpu()) {
    options.target = "sm_90a";
    options.device_profile = "h200";
  }
  build("first run", options);
  build("second run", options);

  // What is shipped needs no compiler: what it lacks is an error, not a wait.
  options.jit = stof::JitMode::Off;
  build("without a compiler", options);
} catch (const std::exception& error) {
  std::fprintf(stderr, "example: %s\n", error.what());
  return 1;
}
