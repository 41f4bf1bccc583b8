// stof model and stof bench: models of full size as graphs, and how fast they run.
#include <algorithm>
#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "command.hpp"
#include "cuda/stream.hpp"
#include "engine/segment_check.hpp"
#include "mask/parse.hpp"
#include "models/zoo.hpp"

namespace stof::command {

namespace {

constexpr const char* kBenchExamples = R"(Examples:
  stof bench model bert-base --batch 8 --seq 512 --mask 'sliding_window(22, 22)'
  stof bench model llama-7b --layers 4 --seq 2048 --dtype bfloat16 --json
  stof bench model vit-base --batch 16 --seq 197

Weights and inputs are random; `--weights` takes real weights, by their names in Hugging Face. Times
are of single runs, one after the other, by events on a GPU.)";

constexpr const char* kModelExamples = R"(Examples:
  stof model bert-base --batch 8 --seq 512 --output bert.json
  stof model gpt2 --mask 'sliding_window(64, 0)' --layers 2 > gpt2.json
  stof model llama-7b --layers 4 --seq 2048 --output llama.json && stof tune llama.json

Weights and inputs have the names of Hugging Face. A mask such as documents(0, 300) has data, which
goes to a file of its own.)";

// A model by its name and size.
struct ModelChoice {
  std::string name;
  std::int64_t batch = 1;
  std::optional<std::int64_t> sequence;
  std::int64_t layers = 0;
  std::string mask_text;
  std::string dtype = "float16";

  void add_to(CLI::App& app) {
    app.add_option("MODEL", name, fmt::format("One of {}", fmt::join(models::kNames, ", ")))
        ->required();
    app.add_option("--batch", batch, "Sequences")->capture_default_str();
    app.add_option("--seq", sequence,
                   "Tokens of each, with as many positions; else 128, and 197 of ViT");
    app.add_option("--layers", layers, "Of the model; 0: all")->capture_default_str();
    app.add_option("--mask", mask_text, "Of every attention, as `stof mask` takes it")
        ->type_name("MASK");
    app.add_option("--dtype", dtype, "Of weights and values")->capture_default_str();
  }

  Mask mask() const { return mask_text.empty() ? Mask() : mask::parse_mask(mask_text); }

  models::Size size() const {
    constexpr std::int64_t kTokens = 128, kTokensOfImage = 197;  // of 224 x 224
    return {.batch = batch,
            .sequence = sequence.value_or(name == "vit-base" ? kTokensOfImage : kTokens),
            .layers = layers};
  }

  Graph graph() const {
    const std::optional<DType> type = dtype_from_name(dtype);
    if (!type || !is_floating(*type)) {
      throw GraphError(fmt::format("--dtype '{}' is no float type", dtype));
    }
    return models::by_name(name, size(), *type, mask());
  }
};

struct ModelOptions {
  ModelChoice model;
  std::string output;
  std::string data;
};

void write_model(const ModelOptions& options) {
  const Graph graph = options.model.graph();
  if (!options.output.empty()) {
    graph.save(options.output, options.data);
    return;
  }
  const Graph::Saved saved = graph.to_json();
  if (!saved.data.empty()) {
    throw GraphError("model: the mask has data, and --output and --data say where both go");
  }
  print(saved.json);
}

struct BenchOptions {
  EngineChoice engine;
  ModelChoice model;
  std::string weights;
  std::optional<int> runs;

  int runs_on(Backend backend) const { return runs.value_or(backend == Backend::Gpu ? 20 : 1); }
  bool is_json = false;
};

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// Milliseconds of each run, the first ones left out.
std::vector<double> time_runs(Execution& execution, Backend backend, int runs) {
  constexpr int kWarmUps = 3;
  std::vector<double> times;
  if (backend == Backend::Reference) {
    for (int i = 0; i < runs; ++i) {
      const Clock::time_point start = Clock::now();
      execution.launch();
      times.push_back(milliseconds_since(start));
    }
    return times;
  }
  const cuda::Stream stream;
  const cuda::Event start, end;
  for (int i = -kWarmUps; i < runs; ++i) {
    start.record(stream.get());
    execution.launch(stream.get());
    end.record(stream.get());
    execution.synchronize(stream.get());
    if (i >= 0) {
      times.push_back(end.microseconds_since(start) * 1e-3);
    }
  }
  return times;
}

void bench_model(const BenchOptions& options) {
  const ModelChoice& model = options.model;
  const Engine engine(options.engine.options());
  const Graph graph = model.graph();

  const Clock::time_point start = Clock::now();
  const Plan plan = engine.build(graph);
  const double build_ms = milliseconds_since(start);
  const Weights weights = options.weights.empty() ? engine.random_weights(plan)
                                                  : engine.load_weights(plan, options.weights);
  engine::HostTensors tensors = engine::random_tensors(graph.ir());
  std::deque<Buffer> buffers;
  Bindings bindings;
  for (const auto* infos : {&plan.inputs(), &plan.outputs()}) {
    for (const TensorInfo& info : *infos) {
      bindings.emplace(info.name, buffers.emplace_back(engine.allocate(info)).view());
    }
  }
  for (std::size_t i = 0; i < plan.inputs().size(); ++i) {
    buffers[i].upload(tensors.at(plan.inputs()[i].name).view());
  }
  Execution execution = plan.bind(weights, bindings);
  const int runs = options.runs_on(engine.backend());
  if (engine.backend() == Backend::Reference && options.engine.backend == "auto") {
    fmt::print(stderr, "stof: there is no GPU: {} on the CPU, which may take minutes\n",
               base::counted(runs, "run", "runs"));
  }
  std::vector<double> times = time_runs(execution, engine.backend(), runs);
  std::sort(times.begin(), times.end());
  const double median_ms = times[times.size() / 2];
  if (options.is_json) {
    print(
        nlohmann::ordered_json({{"model", model.name},
                                {"batch", model.batch},
                                {"sequence", model.size().sequence},
                                {"dtype", model.dtype},
                                {"mask", model.mask().text()},
                                {"backend", engine.backend() == Backend::Gpu ? "gpu" : "reference"},
                                {"median_ms", median_ms},
                                {"least_ms", times.front()},
                                {"most_ms", times.back()},
                                {"runs", times.size()},
                                {"build_ms", build_ms},
                                {"workspace_bytes", plan.workspace_bytes()}})
            .dump(2));
    return;
  }
  print(fmt::format("{} ({}, {}), {}{}: {:.3f} ms a run (least {:.3f}, most {:.3f}, of {})",
                    model.name, model.batch, model.size().sequence, model.dtype,
                    engine.backend() == Backend::Gpu ? "" : ", on the CPU by the reference backend",
                    median_ms, times.front(), times.back(), times.size()));
  print(fmt::format("built in {:.2f} ms, workspace {} bytes", build_ms, plan.workspace_bytes()));
}

}  // namespace

void add_model(CLI::App& stof) {
  auto options = std::make_shared<ModelOptions>();
  CLI::App* app = stof.add_subcommand("model", "Write the graph of a model of full size");
  options->model.add_to(*app);
  app->add_option("--output", options->output, "Where to; stdout without it")
      ->type_name("FILE.json");
  app->add_option("--data", options->data, "Where the data of the mask goes, if it has any")
      ->type_name("FILE.safetensors");
  app->footer(kModelExamples);
  app->callback([options] { write_model(*options); });
}

void add_bench(CLI::App& stof) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* bench = stof.add_subcommand("bench", "Time what runs");
  bench->require_subcommand(1);
  bench->footer(kBenchExamples);
  CLI::App* app = bench->add_subcommand("model", "A model of full size, with random weights");
  options->model.add_to(*app);
  app->add_option("--weights", options->weights, "Real weights, by name")
      ->type_name("FILE.safetensors");
  app->add_option("--runs", options->runs, "How often it is timed; else 20 times, once on the CPU")
      ->check(CLI::Range(1, 100000));
  app->add_flag("--json", options->is_json, "For programs");
  options->engine.add_backend_to(*app);
  options->engine.add_kernels_to(*app);
  app->footer(kBenchExamples);
  app->callback([options] { bench_model(*options); });
}

}  // namespace stof::command
