// stof tune: the fastest fusion and settings of graphs, by a stopwatch; and records of them.
#include <csignal>
#include <memory>
#include <optional>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "base/files.hpp"
#include "cache/cache.hpp"
#include "command.hpp"
#include "engine/explain.hpp"
#include "graph/bind_dims.hpp"
#include "tune/records.hpp"

namespace stof::command {

namespace {

constexpr const char* kTuneExamples = R"(Examples:
  stof tune graph.json
  stof tune encoder.json decoder.json --budget 30 --dim seq=512
  stof tune graph.json --json | jq '.[0].tuned.time_us'
  stof tune --export tuned.jsonl --fastest 4
  stof tune --import tuned.jsonl

What is found is kept in the cache: whoever builds the same graph for such a GPU with the same cache
gets it, and nothing is timed twice. Ctrl-C keeps the best so far; another one gives up.)";

constexpr std::size_t kMostRecordBytes = std::size_t{1} << 30;

struct TuneOptions {
  std::vector<std::string> graphs;
  std::string data;
  DimOptions dims;
  EngineChoice engine;
  double budget_seconds = 0;
  bool is_quick = false;
  bool is_json = false;
  std::string export_path;
  int fastest = 0;  // of each problem; 0: all
  std::string import_path;
};

// What a signal may touch.
volatile std::sig_atomic_t interrupts = 0;

void interrupt(int signal) {
  interrupts = 1;
  std::signal(signal, SIG_DFL);
}

// Tells how far tuning is: a bar on a terminal, else a line now and then.
class Progress {
 public:
  explicit Progress(bool is_verbose)
      : is_bar_(isatty(STDERR_FILENO) == 1 && !is_verbose), is_verbose_(is_verbose) {}

  void show(const Event& event) {
    if (is_verbose_) {
      print_progress(event);
    }
    if (event.stage != "tune" || is_verbose_) {
      return;
    }
    const bool is_end = event.done >= 1;
    if (is_bar_) {
      constexpr int kWidth = 30;
      const int filled = static_cast<int>(event.done * kWidth);
      fmt::print(stderr, "\r\x1b[K[{:#<{}}{:.<{}}] {:.60}: {:.80}{}", "", filled, "",
                 kWidth - filled, event.name, event.detail, is_end ? "\n" : "");
    } else if (is_end || event.milliseconds >= next_line_ms_) {
      fmt::print(stderr, "{}: {}\n", event.name, event.detail);
      next_line_ms_ = is_end ? 0 : event.milliseconds + kBetweenLinesMs;
    }
  }

 private:
  static constexpr double kBetweenLinesMs = 2000;

  bool is_bar_;
  bool is_verbose_;
  double next_line_ms_ = 0;
};

std::string time_cell(const nlohmann::json& time_us) {
  return time_us.is_number() ? fmt::format("{:.2f}", time_us.get<double>()) : "-";
}

std::string gain_cell(const nlohmann::json& before_us, const nlohmann::json& time_us) {
  return before_us.is_number() && time_us.is_number()
             ? fmt::format("{:.1f} %", 100 * (1 - time_us.get<double>() / before_us.get<double>()))
             : "-";
}

void print_table(const std::string& name, const nlohmann::json& tuned) {
  constexpr const char* kRow = "{:>5}  {:>12}  {:>10}  {:>10}  {:>7}  {}";
  print(fmt::format("{}: {} trials timed, {} known before, {} not usable, {:.1f} s; {}", name,
                    tuned["timed"].get<std::int64_t>(), tuned["recalled"].get<std::int64_t>(),
                    tuned["failed"].get<std::int64_t>(), tuned["seconds"].get<double>(),
                    tuned["ended"].get<std::string>()));
  print(fmt::format(kRow, "times", "predicted us", "before us", "after us", "gain", "segment"));
  for (const nlohmann::json& segment : tuned["segments"]) {
    print(fmt::format(
        kRow, segment["count"].get<int>(), time_cell(segment["predicted_us"]),
        time_cell(segment["before_us"]), time_cell(segment["time_us"]),
        gain_cell(segment["before_us"], segment["time_us"]),
        fmt::format("{} by {} {}", segment["computes"].get<std::string>(),
                    segment["kernel"].get<std::string>(), segment["parameters"].dump())));
  }
  print(fmt::format(kRow, "all", "", time_cell(tuned["before_us"]), time_cell(tuned["time_us"]),
                    gain_cell(tuned["before_us"], tuned["time_us"]), ""));
  print(fmt::format(kRow, "plan", "", time_cell(tuned["plan_before_us"]),
                    time_cell(tuned["plan_us"]),
                    gain_cell(tuned["plan_before_us"], tuned["plan_us"]), "as it runs"));
}

// A graph from a file, with values for its symbolic dims where they are given.
Graph read_graph(const TuneOptions& options, const std::string& path) {
  Graph graph = GraphOptions{.graph = path, .data = options.data}.read();
  const DimValues dims = options.dims.values();
  return dims.empty() ? graph : Graph(graph::bind_dims(graph.ir(), dims));
}

void tune_graphs(const TuneOptions& options) {
  std::vector<Graph> graphs;
  for (const std::string& path : options.graphs) {
    graphs.push_back(read_graph(options, path));  // a wrong one is found before any takes minutes
  }
  options.engine.require_gpu("tuning");
  std::stop_source stop;
  Progress progress(options.engine.is_verbose);
  EngineOptions engine_options = options.engine.options();
  engine_options.backend = Backend::Gpu;
  engine_options.tuning = options.is_quick ? Tuning::Quick : Tuning::Full;
  engine_options.tuning_seconds = options.budget_seconds;
  engine_options.tuning_stop = stop.get_token();
  engine_options.on_event = [&](const Event& event) {
    if (interrupts != 0) {
      stop.request_stop();
    }
    progress.show(event);
  };
  const Engine engine(engine_options);
  std::signal(SIGINT, interrupt);
  nlohmann::json list = nlohmann::json::array();
  for (std::size_t i = 0; i < graphs.size(); ++i) {
    const Plan plan = engine.build(graphs[i]);
    nlohmann::json tuned = nlohmann::json::parse(engine::explain_json(plan, {}))["tuned"];
    if (!options.is_json) {
      print_table(options.graphs[i], tuned);
    }
    list.push_back({{"file", options.graphs[i]}, {"tuned", std::move(tuned)}});
  }
  if (options.is_json) {
    print_json(list);
  }
}

void import_records(const TuneOptions& options, cache::TuningStore& store) {
  std::vector<cache::TuningRecord> records;
  try {
    records = tune::from_jsonl(base::read_file(options.import_path, kMostRecordBytes));
  } catch (const GraphError& error) {
    throw GraphError(fmt::format("{}: {}", options.import_path, error.what()));
  }
  print(fmt::format("{}: {} of {} records are new here", options.import_path,
                    tune::merge(store, records), records.size()));
}

void export_records(const TuneOptions& options, cache::TuningStore& store) {
  const auto records =
      options.fastest > 0 ? tune::fastest(store.all(), options.fastest) : store.all();
  base::write_file_atomically(options.export_path, tune::to_jsonl(records));
  print(fmt::format("{}: {} records", options.export_path, records.size()));
}

void tune(const TuneOptions& options) {
  if (options.graphs.empty() && options.export_path.empty() && options.import_path.empty()) {
    throw CLI::ValidationError("tune: nothing to do: there is no GRAPH, --import or --export");
  }
  std::optional<cache::Cache> cache;
  if (!options.export_path.empty() || !options.import_path.empty()) {
    cache::CacheOptions cache_options;
    cache_options.directory = options.engine.cache.path();
    cache.emplace(std::move(cache_options));
  }
  if (!options.import_path.empty()) {
    options.engine.cache.require_writable();
    import_records(options, cache->tuning());
  }
  if (!options.graphs.empty()) {
    tune_graphs(options);
  }
  if (!options.export_path.empty()) {
    export_records(options, cache->tuning());
  }
}

}  // namespace

void add_tune(CLI::App& stof) {
  auto options = std::make_shared<TuneOptions>();
  CLI::App* app = stof.add_subcommand(
      "tune", "Find the fastest fusion and settings of graphs, timing them on this GPU");
  app->add_option("GRAPH", options->graphs, "Graphs: what Graph::save wrote");
  app->add_option("--data", options->data,
                  "The data of their masks and tables, where they have any")
      ->type_name("FILE.safetensors");
  options->dims.add_to(*app);
  app->add_option("--budget", options->budget_seconds,
                  "Seconds for each graph; 60 by default, 10 with --quick")
      ->check([](const std::string& text) -> std::string {
        double seconds = 0;
        constexpr double kMost = 1e6;
        return CLI::detail::lexical_cast(text, seconds) && seconds > 0 && seconds <= kMost
                   ? ""
                   : fmt::format("'{}' is no number above 0 and up to {}", text, kMost);
      });
  app->add_flag("--quick", options->is_quick, "Only how operators are fused");
  app->add_option("--import", options->import_path, "Take in records of another machine first")
      ->type_name("FILE.jsonl");
  app->add_option("--export", options->export_path, "Write all records of the cache in the end")
      ->type_name("FILE.jsonl");
  app->add_option("--fastest", options->fastest,
                  "Of each kernel's problem only so many, without those of whole graphs")
      ->check(CLI::Range(1, 1'000'000))
      ->type_name("COUNT");
  app->add_flag("--json", options->is_json, "For programs");
  app->add_option("--device", options->engine.device, "Which GPU, as the CUDA runtime counts them")
      ->capture_default_str();
  options->engine.add_kernels_to(*app);
  app->footer(kTuneExamples);
  app->callback([options] { tune(*options); });
}

}  // namespace stof::command
