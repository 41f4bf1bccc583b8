// stof plan and stof compile: what runs, and the kernels of it in the cache.
#include <cstdio>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/device_profile.hpp"
#include "base/files.hpp"
#include "base/gpu_target.hpp"
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

Plans of one graph differ from GPU to GPU. Without --device-profile they are made for each that is
known of the target, `stof devices --profiles` lists them. Ship the folder with an application,
which names it among EngineOptions::packs.)";

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

Plan build(const EngineOptions& engine, const Graph& graph, const DimValues& dims) {
  Plan plan = Engine(engine).build(graph);
  if (!dims.empty()) {
    plan.workspace_bytes(dims);  // makes the kernels for these dims
  }
  return plan;
}

// That all of it is in the cache: the disk may be full.
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

// The known GPUs of a target, by short name; else one of no name, which stands for those that its
// kernels run on.
std::vector<std::string> profiles_of(const std::string& target, const std::string& given) {
  std::vector<std::string> names;
  for (const auto& [name, profile] : base::shipped_profiles()) {
    if (given.empty() && profile.target == target) {
      names.push_back(name);
    }
  }
  return names.empty() ? std::vector{given} : names;
}

// What has to be known of templates of one's own that is no error of a build.
class TemplateNotes {
 public:
  void add(const Event& event) {
    if (event.stage == "quarantine") {
      quarantined_.insert(fmt::format("{} is in quarantine: {}", event.name, event.detail));
    }
  }

  void add(const Plan& plan, const DimValues& dims) {
    const auto json = nlohmann::json::parse(engine::explain_json(plan, dims));
    for (const auto& launch : json["launches"]) {
      for (const auto& one : json["foreign_templates"]) {
        if (launch["template"] == one["file"] && !one["validated"]) {
          unchecked_.insert(one["file"]);
        }
      }
    }
  }

  // Throws Failed where a template has no part in what was compiled.
  void tell() const {
    for (const std::string& file : unchecked_) {
      warn(fmt::format("{}: its numbers were not checked, `stof template check` does on a GPU",
                       file));
    }
    for (const std::string& text : quarantined_) {
      warn(text);
    }
    if (!quarantined_.empty()) {
      throw Failed{BadTemplate};
    }
  }

 private:
  static void warn(const std::string& text) {
    std::fputs(fmt::format("stof: {}\n", text).c_str(), stderr);
  }

  std::set<std::string> quarantined_;
  std::set<std::string> unchecked_;
};

void compile(const CompileOptions& options) {
  options.engine.cache.require_writable();
  const Graph graph = options.graph.read();
  const DimValues dims = options.dims.values(graph);
  TemplateNotes notes;
  for (const std::string& target : options.targets) {
    base::parse_gpu_target(target);  // all of them, before any is compiled for
  }
  for (const std::string& target : options.targets) {
    for (const std::string& profile : profiles_of(target, options.engine.device_profile)) {
      EngineChoice choice = options.engine;
      choice.target = target;
      choice.device_profile = profile;
      EngineOptions engine_options = choice.options();
      engine_options.cache_dir = options.engine.cache.path();
      Tally tally;
      engine_options.on_event = [&, tell = engine_options.on_event](const Event& event) {
        tally.add(event);
        notes.add(event);
        if (tell) {
          tell(event);
        }
      };
      notes.add(build(engine_options, graph, dims), dims);
      check_cache(engine_options, graph, dims);
      print(fmt::format("{}{}: {} kernels compiled in {:.0f} ms, {} found in the cache", target,
                        profile.empty() ? "" : fmt::format(" ({})", profile), tally.compiled,
                        tally.milliseconds, tally.found));
    }
  }
  print(fmt::format("cache: {}", options.engine.cache.path().string()));
  notes.tell();
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
