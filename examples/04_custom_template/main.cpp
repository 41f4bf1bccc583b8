// A fusion of one's own: templates/norm/unit_rows.jinja fuses the four operators that make the rows
// of a matrix unit vectors. The engine finds it in a folder; nothing else is needed.
//
//   example [TEMPLATES]    the folder of templates, by default the one beside this file
//
// On a machine without a GPU this plans for an H200, and compares predicted times.
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <random>
#include <vector>

#include <stof/stof.hpp>

namespace {

constexpr std::int64_t kRows = 32768, kHidden = 1024;

stof::Graph unit_rows() {
  stof::Graph graph("unit_rows");
  const auto x = graph.input("x", {kRows, kHidden}, stof::DType::Float16);
  const auto sum = graph.reduce_sum(graph.multiply(x, x), -1, /*keep_axis=*/true);
  graph.output("y", graph.divide(x, graph.sqrt(sum)));
  return graph;
}

std::vector<float> random_values() {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> values(kRows * kHidden);
  for (float& value : values) {
    value = normal(random);
  }
  return values;
}

// How far the length of a row of y is from 1, at most.
float worst_length(const std::vector<float>& y) {
  float worst = 0;
  for (std::int64_t row = 0; row < kRows; ++row) {
    double sum = 0;
    for (std::int64_t column = 0; column < kHidden; ++column) {
      const double value = y[static_cast<std::size_t>(row * kHidden + column)];
      sum += value * value;
    }
    worst = std::max(worst, static_cast<float>(std::abs(std::sqrt(sum) - 1)));
  }
  return worst;
}

void run(const char* name, const stof::Engine& engine, const stof::Plan& plan) {
  const stof::Weights weights = engine.load_weights(plan, std::span<const stof::NamedTensor>());
  stof::Buffer x = engine.allocate(plan.input("x")), y = engine.allocate(plan.output("y"));
  x.upload(random_values());
  stof::Execution execution = plan.bind(weights, {{"x", x}, {"y", y}});
  constexpr int kRuns = 200;
  for (int i = 0; i < kRuns; ++i) {  // and warms up
    execution.launch();
  }
  execution.synchronize();
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kRuns; ++i) {
    execution.launch();
  }
  execution.synchronize();
  const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - start;
  std::printf("%s: %.1f us a run, lengths are 1 to within %.1e\n", name, time.count() / kRuns,
              worst_length(y.download_floats()));
}

void build(const char* name, const stof::EngineOptions& options) {
  const stof::Engine engine(options);
  const stof::Plan plan = engine.build(unit_rows());
  std::printf("%s\n%s", name, plan.explain().c_str());
  if (options.target.empty()) {
    run(name, engine, plan);
  }
}

}  // namespace

int main(int argc, char** argv) try {
  stof::EngineOptions options = {.backend = stof::Backend::Gpu};
  if (stof::Engine({.backend = stof::Backend::Auto}).backend() == stof::Backend::Reference) {
    options.target = "sm_90a";
    options.device_profile = "h200";
  }
  build("as it comes", options);
  options.template_dirs = {argc > 1 ? argv[1] : TEMPLATES};
  build("with a template of one's own", options);
} catch (const std::exception& error) {
  std::fprintf(stderr, "example: %s\n", error.what());
  return 1;
}
