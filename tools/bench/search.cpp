// Tunes graphs on this GPU: what it takes, and what it gains. Usage: bench.search [CASE...], of
// those that it prints without any; a JSON line for each.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cuda/stream.hpp"
#include "engine/explain.hpp"
#include "engine/segment_check.hpp"
#include "models/bert.hpp"
#include "models/gpt2.hpp"
#include "models/llama.hpp"
#include "stof/stof.hpp"
#include "tune/race.hpp"

namespace {

using nlohmann::json;

stof::Graph bert(std::int64_t layers, std::int64_t batch, std::int64_t length,
                 std::int64_t window) {
  return models::bert(
      {.num_hidden_layers = layers, .max_position_embeddings = 2048},
      {.batch = batch, .sequence = length, .mask = stof::sliding_window(window, window)});
}

const std::map<std::string, std::function<stof::Graph()>>& cases() {
  static const std::map<std::string, std::function<stof::Graph()>> cases = {
      {"bert_base_1x128", [] { return bert(12, 1, 128, 11); }},
      {"bert_layer_1x128", [] { return bert(1, 1, 128, 11); }},
      {"bert_layer_8x512", [] { return bert(1, 8, 512, 22); }},
      {"bert_layer_16x2048", [] { return bert(1, 16, 2048, 45); }},
      {"bert_base_16x2048", [] { return bert(12, 16, 2048, 45); }},
      {"gpt2_layer_8x512",
       [] { return models::gpt2({.n_layer = 1}, {.batch = 8, .sequence = 512}); }},
      {"llama_layer_1x128", [] { return models::llama({.num_hidden_layers = 1}, {}); }},
  };
  return cases;
}

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The median time of a launch, in microseconds.
double plan_us(const stof::Engine& engine, const stof::Plan& plan, const stof::Graph& graph) {
  stof::engine::HostTensors tensors = stof::engine::random_tensors(graph.ir());
  std::vector<stof::Buffer> buffers;
  stof::Bindings bindings;
  for (const stof::TensorInfo& info : plan.inputs()) {
    buffers.push_back(engine.allocate(info));
    buffers.back().upload(tensors.at(info.name).view());
    bindings.emplace(info.name, buffers.back());
  }
  for (const stof::TensorInfo& info : plan.outputs()) {
    buffers.push_back(engine.allocate(info));
    bindings.emplace(info.name, buffers.back());
  }
  stof::Execution run = plan.bind(engine.random_weights(plan), bindings);
  const stof::cuda::Stream stream;
  const stof::cuda::Event start;
  const stof::cuda::Event stop;
  constexpr int kSamples = 30;
  constexpr int kLaunches = 20;
  std::vector<double> times_us;
  for (int sample = -3; sample < kSamples; ++sample) {
    start.record(stream.get());
    for (int i = 0; i < kLaunches; ++i) {
      run.launch(stream.get());
    }
    stop.record(stream.get());
    stop.synchronize();
    if (sample >= 0) {
      times_us.push_back(stop.microseconds_since(start) / kLaunches);
    }
  }
  return stof::tune::median(times_us);
}

json build(const stof::Graph& graph, const std::filesystem::path& cache, stof::Tuning tuning,
           bool has_details) {
  stof::EngineOptions options;
  options.cache_dir = cache;
  options.tuning = tuning;
  int compiled = 0;
  double compile_ms = 0;
  std::map<std::string, int> notes;
  options.on_event = [&](const stof::Event& event) {
    if (event.stage == "compiled") {
      ++compiled;
      compile_ms += event.milliseconds;
    } else if (event.stage == "tune" && event.detail.find("trials") == std::string::npos) {
      ++notes[event.name + ": " + event.detail];
    }
  };
  const double start = seconds();
  const stof::Engine engine(options);
  const stof::Plan plan = engine.build(graph);
  const double took = seconds() - start;
  json result = {{"build_s", took},
                 {"compiled", compiled},
                 {"compile_cpu_s", compile_ms / 1e3},
                 {"plan_us", plan_us(engine, plan, graph)}};
  const json explained = json::parse(stof::engine::explain_json(plan, {}));
  result["launches"] = explained["launches"].size();
  result["scheme"] = explained["scheme"];
  result["tuned"] = explained["tuned"];
  if (has_details) {
    result["notes"] = notes;
  } else if (result["tuned"].is_object()) {
    result["tuned"].erase("segments");
  }
  return result;
}

json measure(const std::filesystem::path& folder, const std::string& name,
             const stof::Graph& graph) {
  json row = {{"case", name}};
  row["none"] = build(graph, folder / "none", stof::Tuning::None, false);
  row["quick"] = build(graph, folder / "quick", stof::Tuning::Quick, false);
  row["full"] = build(graph, folder / "full", stof::Tuning::Full, true);
  row["again"] = build(graph, folder / "full", stof::Tuning::Full, false);
  return row;
}

}  // namespace

// NOLINTNEXTLINE(bugprone-exception-escape): of memory alone, or a stdout that is closed
int main(int argc, char** argv) {
  if (argc < 3) {
    for (const auto& [name, make] : cases()) {
      fmt::print("{}\n", name);
    }
    return 0;
  }
  try {
    for (int i = 2; i < argc; ++i) {
      const std::string name = argv[i];
      fmt::print("{}\n",
                 measure(std::filesystem::path(argv[1]) / name, name, cases().at(name)()).dump());
      std::fflush(stdout);
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench.search: {}\n", error.what());
    return 1;
  }
  return 0;
}
