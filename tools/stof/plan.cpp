// stof plan and stof compile: what runs, and the kernels of it in the cache.
#include <memory>
#include <mutex>
#include <utility>

#include "base/files.hpp"
#include "cache/cache.hpp"
#include "command.hpp"
#include "engine/explain.hpp"
#include "engine/plan_picture.hpp"

namespace stof::command {

namespace {

constexpr const char* kPlanExamples = R"(Examples:
  stof plan graph.json
  stof plan graph.json --target sm_90a --device-profile h200 --dim seq=512
  stof plan graph.json --target sm_80 --json | jq '.launches[].template'
  stof plan graph.json --target sm_90a --svg plan.svg

With no --dim, symbolic dims are at their largest.)";

constexpr const char* kCompileExamples = R"(Examples:
  stof compile graph.json --target sm_90a --cache-dir app/cache
  stof compile graph.json --target sm_80 --target sm_90a --dim seq=128

What is compiled for a target runs on every GPU of it: ship the folder with an application, which
names it among EngineOptions::packs.)";

struct PlanOptions {
  GraphOptions graph;
  EngineChoice engine;
  DimOptions dims;
  std::string svg;
  bool is_json = false;
};

void plan(const PlanOptions& options) {
  const Graph graph = options.graph.read();
  const DimValues dims = options.dims.values(graph);  // a wrong one is found before a build
  const Plan plan = Engine(options.engine.options()).build(graph);
  if (!options.svg.empty()) {
    base::write_file_atomically(options.svg, engine::plan_svg(plan, dims));
  }
  print(options.is_json ? engine::explain_json(plan, dims) : plan.explain(dims));
}

struct CompileOptions {
  GraphOptions graph;
  EngineChoice engine;
  DimOptions dims;
  std::vector<std::string> targets;
};

// What building took, by the events that the engine reports.
struct Tally {
  int compiled = 0;
  int found = 0;
  double milliseconds = 0;

  void add(const Event& event) {
    if (event.stage == "compiled") {
      ++compiled;
      milliseconds += event.milliseconds;
    } else if (event.stage == "cache") {
      ++found;
    }
  }
};

void build(const EngineOptions& engine, const Graph& graph, const DimValues& dims) {
  const Plan plan = Engine(engine).build(graph);
  if (!dims.empty()) {
    plan.workspace_bytes(dims);  // makes the kernels for these dims
  }
}

// A cache that cannot be written is no error of an engine, which keeps its kernels in memory.
void check_directory(const std::filesystem::path& directory) {
  cache::CacheOptions options;
  options.directory = directory;
  options.on_warning = [](const std::string& text) {
    throw GraphError(text + "; nothing that is compiled would be kept");
  };
  const cache::Cache cache(std::move(options));
}

// The same once more: the disk may be full.
void check_cache(EngineOptions engine, const Graph& graph, const DimValues& dims) {
  engine.jit = JitMode::Off;
  engine.on_event = {};
  try {
    build(engine, graph, dims);
  } catch (const CacheError& error) {
    throw GraphError(
        fmt::format("cache: {} does not keep what was compiled; STOF_LOG=stderr says why: {}",
                    engine.cache_dir->string(), error.what()));
  }
}

void compile(const CompileOptions& options) {
  check_directory(options.engine.cache.path());
  const Graph graph = options.graph.read();
  const DimValues dims = options.dims.values(graph);
  for (const std::string& target : options.targets) {
    EngineChoice choice = options.engine;
    choice.target = target;
    EngineOptions engine_options = choice.options();
    engine_options.cache_dir = options.engine.cache.path();
    Tally tally;
    engine_options.on_event = [&, tell = engine_options.on_event](const Event& event) {
      tally.add(event);
      if (tell) {
        tell(event);
      }
    };
    build(engine_options, graph, dims);
    check_cache(engine_options, graph, dims);
    print(fmt::format("{}: {} kernels compiled in {:.0f} ms, {} found in the cache", target,
                      tally.compiled, tally.milliseconds, tally.found));
  }
  print(fmt::format("cache: {}", options.engine.cache.path().string()));
}

}  // namespace

void add_plan(CLI::App& stof) {
  auto options = std::make_shared<PlanOptions>();
  CLI::App* app = stof.add_subcommand("plan", "Show how a graph runs");
  options->graph.add_to(*app);
  options->dims.add_to(*app);
  app->add_flag("--json", options->is_json, "For programs");
  app->add_option("--svg", options->svg, "Draw it: launches, with predicted and measured times")
      ->type_name("FILE.svg");
  options->engine.add_backend_to(*app);
  options->engine.add_target_to(*app);
  options->engine.add_kernels_to(*app);
  app->footer(kPlanExamples);
  app->callback([options] { plan(*options); });
}

void add_compile(CLI::App& stof) {
  auto options = std::make_shared<CompileOptions>();
  CLI::App* app =
      stof.add_subcommand("compile", "Fill the cache for GPUs that this machine need not have");
  options->graph.add_to(*app);
  app->add_option("--target", options->targets, "What to compile for; once for each")
      ->type_name("sm_90a")
      ->allow_extra_args(false)
      ->required();
  app->add_option("--device-profile", options->engine.device_profile,
                  "Which GPU the target is taken to be; `stof devices --profiles` lists them")
      ->type_name("h200");
  options->dims.add_to(*app);
  options->engine.add_kernels_to(*app);
  app->footer(kCompileExamples);
  app->callback([options] { compile(*options); });
}

}  // namespace stof::command
