// Tunes one layer of each model of the zoo, and BERT-base as a whole, on this GPU: what it takes,
// and what it gains. Usage: bench.search SECONDS FOLDER [CELL…], which writes search.json and
// search.md, of all cells that it prints without arguments; those that no time is left for are
// named there.
#include "tune/search.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cache/cache.hpp"
#include "compile/nvrtc_compiler.hpp"
#include "cuda/device.hpp"
#include "cuda/read_device_profile.hpp"
#include "engine/explain.hpp"
#include "engine/gpu_layouts.hpp"
#include "engine/trial_runner.hpp"
#include "engine/tuning_space.hpp"
#include "fusion/joined_products.hpp"
#include "fusion/lower.hpp"
#include "graph/normalise.hpp"
#include "jit/template_jit.hpp"
#include "models/zoo.hpp"
#include "stof/stof.hpp"

namespace {

using nlohmann::json;
namespace fusion = stof::fusion;
namespace tune = stof::tune;

constexpr int kDevice = 0;
constexpr double kCoarseSeconds = 10;  // as Tuning::Quick and Tuning::Full have them
constexpr double kFullSeconds = 60;

// A graph to tune.
struct Cell {
  std::string_view model;
  std::int64_t batch = 1;
  std::int64_t sequence = 128;
  std::int64_t layers = 1;  // 0: all
  int repeats = 1;          // of the whole search, each with no record

  std::string name() const {
    return fmt::format("{}:{}:{}:{}", model, batch, sequence,
                       layers == 0 ? "all" : std::to_string(layers));
  }
};

// What tells the most first.
std::vector<Cell> cells() {
  std::vector<Cell> cells = {
      {.model = "bert-base", .batch = 1, .sequence = 128, .layers = 0},
      {.model = "bert-base", .batch = 16, .sequence = 2048, .layers = 0},
      {.model = "bert-base", .batch = 1, .sequence = 128, .layers = 1, .repeats = 5},
  };
  for (const auto& [batch, sequence] :
       {std::pair(8, 512), std::pair(1, 128), std::pair(16, 2048)}) {
    for (const std::string_view model : models::kNames) {
      if (model != "bert-base" || batch == 8) {
        cells.push_back({.model = model, .batch = batch, .sequence = sequence});
      }
    }
  }
  return cells;
}

stof::Graph graph_of(const Cell& cell) {
  // ViT has no mask and squares of patches only.
  const bool is_vit = cell.model == "vit-base";
  const auto side = static_cast<std::int64_t>(std::sqrt(static_cast<double>(cell.sequence)));
  const auto window = side;
  const bool is_causal = cell.model == "gpt2" || cell.model == "llama-7b";
  const stof::Mask mask =
      is_vit ? stof::Mask() : stof::sliding_window(window, is_causal ? 0 : window);
  return models::by_name(cell.model,
                         {.batch = cell.batch,
                          .sequence = is_vit ? side * side + 1 : cell.sequence,
                          .layers = cell.layers},
                         stof::DType::Float16, mask);
}

double seconds() {
  return tune::steady_seconds();
}

// Seconds of a search by what they went to.
struct Spent {
  double plan_s = 0;     // the space of the search
  double compile_s = 0;  // rendering and compiling, all threads together
  double time_s = 0;     // checking and timing
  double whole_s = 0;
};

// What one search found.
struct Found {
  std::string how;
  fusion::Decisions decisions;
  Spent spent;
  int compiled = 0;
  std::int64_t timed = 0;
  std::int64_t recalled = 0;
  std::int64_t failed = 0;
  std::string ended;
  std::map<std::string, tune::Setting> winners;  // by problem
};

fusion::Decisions decisions_of(const tune::SearchResult& result) {
  fusion::Decisions decisions{.scheme = result.scheme, .settings = {}, .lists_all = false};
  for (const tune::Decision& decision : result.decisions) {
    if (decision.time_us) {
      decisions.settings.emplace(
          decision.part.problem,
          fusion::Setting{.kernel = decision.setting.kernel, .config = decision.setting.config});
    }
  }
  return decisions;
}

// Kernels are compiled anew for each lab, and known afterwards.
class Lab {
 public:
  Lab()
      : profile_(stof::cuda::read_device_profile(kDevice)),
        cache_({.directory = {}, .lock_folder = {}, .packs = {}, .on_warning = {}}),
        renderer_(std::make_shared<const stof::render::TemplateStore>(
            stof::render::TemplateStore::open({}))),
        templates_(fusion::read_templates(renderer_.store().texts())),
        jit_(cache_, compiler_,
             {.may_compile = true,
              .on_event =
                  [this](const stof::jit::Event& event) {
                    compiled_ +=
                        std::holds_alternative<stof::jit::CompileEndEvent>(event.what) ? 1 : 0;
                  }}),
        template_jit_(cache_, compiler_, renderer_, jit_) {}

  const stof::base::DeviceProfile& profile() const { return profile_; }

  // As the engine does it, but for weights.
  void open(const stof::Graph& graph) {
    build_layout_ = fusion::remembering([](const auto& mask, const auto& extent) {
      return stof::engine::build_layout(kDevice, mask, extent);
    });
    ir_ = fusion::join_products_if_faster(stof::graph::normalise_but_attention(graph.ir()),
                                          templates_, profile_, build_layout_)
              .ir;
  }

  using Search = std::function<tune::SearchResult(tune::Space&, tune::Trials&)>;

  // A search with the records that there are, or none.
  Found search(const std::string& how, double most_seconds, bool forgets, const Search& run) {
    if (forgets) {
      store_ = std::make_unique<stof::cache::TuningStore>(std::nullopt, false, stof::cache::Warn(),
                                                          stof::cache::Warn());
    }
    const double start = seconds();
    const int compiled_before = compiled_;
    Found found;
    found.how = how;
    stof::engine::TuningSpace space(ir_, templates_, profile_, build_layout_);
    tune::Records records(*store_);
    stof::engine::TrialRunner runner(tools(), space, records);
    tune::Space schemes = space.space();
    found.spent.plan_s = seconds() - start;
    tune::Trials trials(
        [&](std::span<const tune::Trial> batch) { return measure(space, runner, batch, found); },
        [&](const tune::Trial& trial) { return runner.recall(trial); },
        {.max_seconds = most_seconds});
    const tune::SearchResult result = run(schemes, trials);
    found.decisions = decisions_of(result);
    for (const tune::Decision& decision : result.decisions) {
      found.winners.emplace(decision.part.problem, decision.setting);
    }
    found.ended = tune::name(result.end);
    found.timed = trials.timed();
    found.recalled = trials.recalled();
    found.failed = trials.failed();
    found.compiled = compiled_ - compiled_before;
    found.spent.whole_s = seconds() - start;
    return found;
  }

  // The time of each plan, as they run; nothing where they are too large.
  std::vector<double> time_plans(const std::vector<Found>& found) {
    std::vector<fusion::Lowered> plans;
    plans.reserve(found.size());
    for (const Found& one : found) {
      plans.push_back(fusion::lower(ir_, templates_, profile_, build_layout_, one.decisions));
    }
    stof::engine::TuningSpace space(ir_, templates_, profile_, build_layout_);
    stof::cache::TuningStore store(std::nullopt, false, {}, {});
    tune::Records records(store);
    return stof::engine::TrialRunner(tools(), space, records).time_plans(ir_, plans);
  }

 private:
  stof::engine::TrialTools tools() const {
    return {.device = kDevice,
            .profile = &profile_,
            .jit = &template_jit_,
            .compiler = "",
            .stop = {},
            .tell = [](const std::string&, const std::string&) {}};
  }

  std::vector<tune::Outcome> measure(const stof::engine::TuningSpace& space,
                                     stof::engine::TrialRunner& runner,
                                     std::span<const tune::Trial> batch, Found& found) {
    const double start = seconds();
    std::vector<stof::kernel::KernelSpec> specs;
    for (const tune::Trial& trial : batch) {
      try {
        const fusion::Lowered lowered = space.lower(trial);
        specs.insert(specs.end(), lowered.specs.begin(), lowered.specs.end());
      } catch (const stof::GraphError&) {
        continue;  // the runner finds out as well
      }
    }
    template_jit_.try_each(specs, stof::base::parse_gpu_target(profile_.target));
    const double compiled = seconds();
    std::vector<tune::Outcome> outcomes = runner.measure(batch);
    found.spent.compile_s += compiled - start;
    found.spent.time_s += seconds() - compiled;
    return outcomes;
  }

  stof::base::DeviceProfile profile_;
  stof::cache::Cache cache_;
  stof::render::Renderer renderer_;
  fusion::TemplateLibrary templates_;
  stof::compile::NvrtcCompiler compiler_;
  std::atomic<int> compiled_ = 0;
  stof::jit::Jit jit_;
  stof::jit::TemplateJit template_jit_;
  fusion::BuildLayout build_layout_;
  stof::graph::Ir ir_;
  std::unique_ptr<stof::cache::TuningStore> store_;
};

tune::SearchResult whole(tune::Space& space, tune::Trials& trials) {
  return tune::search(space, trials);
}

tune::SearchResult coarse(tune::Space& space, tune::Trials& trials) {
  tune::SearchOptions options;
  options.is_fine = false;
  return tune::search(space, trials, options);
}

std::vector<tune::Part> parts_of_first(const tune::Space& space) {
  return tune::parts_of(space, space.proposals.front()).value_or(std::vector<tune::Part>());
}

tune::SearchResult with_scheme_of_first(const tune::Space& space, tune::SearchResult result) {
  result.scheme = space.proposals.front();
  return result;
}

tune::SearchResult fine(tune::Space& space, tune::Trials& trials) {
  return with_scheme_of_first(space,
                              tune::fine_search(parts_of_first(space), space.settings, trials));
}

// What the fine stage decides on what was timed already.
tune::SearchResult best_of_timed(const tune::Space& space, tune::Trials& trials) {
  tune::SearchOptions options;
  options.first_share = 0;
  return with_scheme_of_first(
      space, tune::fine_search(parts_of_first(space), space.settings, trials, options));
}

// As many trials as a search has had, drawn at random of all of each part.
Lab::Search random_search(std::int64_t count) {
  return [count](tune::Space& space, tune::Trials& trials) {
    std::mt19937_64 random(11);
    std::vector<tune::Trial> drawn;
    const std::vector<tune::Part> parts = parts_of_first(space);
    for (std::int64_t i = 0; i < count && !parts.empty(); ++i) {
      const tune::Part& part = parts[static_cast<std::size_t>(i) % parts.size()];
      const auto settings = space.settings(part.problem);
      drawn.push_back({.problem = part.problem, .setting = settings[random() % settings.size()]});
    }
    trials.time(drawn);
    return best_of_timed(space, trials);
  };
}

// Everything of the parts that have at most this many settings; for each of them its best time as a
// share of that of the winner of another search.
Lab::Search exhaustive_search(std::size_t most_settings, const Found& other,
                              std::vector<double>& shares) {
  return [most_settings, &other, &shares](tune::Space& space, tune::Trials& trials) {
    for (const tune::Part& part : parts_of_first(space)) {
      const auto settings = space.settings(part.problem);
      if (settings.size() > most_settings) {
        continue;
      }
      std::vector<tune::Trial> all;
      all.reserve(settings.size());
      for (const tune::Setting& setting : settings) {
        all.push_back({.problem = part.problem, .setting = setting});
      }
      trials.time(all);
      const auto best = trials.best(part.problem, settings);
      const auto winner = other.winners.find(part.problem);
      const tune::Outcome* const outcome =
          winner == other.winners.end()
              ? nullptr
              : trials.find({.problem = part.problem, .setting = winner->second});
      if (best && outcome != nullptr && outcome->time_us) {
        shares.push_back(best->time_us / *outcome->time_us);
      }
    }
    return best_of_timed(space, trials);
  };
}

double hundredths(double value) {
  return std::round(value * 100) / 100;
}

json to_json(const Found& found, double plan_us) {
  return {{"plan_us", hundredths(plan_us)},
          {"compiled", found.compiled},
          {"timed", found.timed},
          {"recalled", found.recalled},
          {"failed", found.failed},
          {"ended", found.ended},
          {"seconds",
           {{"plan", hundredths(found.spent.plan_s)},
            {"render_and_compile", hundredths(found.spent.compile_s)},
            {"check_and_time", hundredths(found.spent.time_s)},
            {"whole", hundredths(found.spent.whole_s)}}}};
}

// A build by a new engine, as a user has it.
json build(const stof::Graph& graph, const std::filesystem::path& cache) {
  stof::EngineOptions options;
  options.cache_dir = cache;
  options.tuning = stof::Tuning::Full;
  std::atomic<int> compiled = 0;
  options.on_event = [&](const stof::Event& event) {
    compiled += event.stage == "compiled" ? 1 : 0;
  };
  const double start = seconds();
  const stof::Engine engine(options);
  const stof::Plan plan = engine.build(graph);
  const double took = seconds() - start;
  const json tuned = json::parse(stof::engine::explain_json(plan, {})).at("tuned");
  return {{"seconds", {{"whole", hundredths(took)}}},
          {"compiled", compiled.load()},
          {"timed", tuned.at("timed")},
          {"recalled", tuned.at("recalled")},
          {"failed", tuned.at("failed")},
          {"ended", tuned.at("ended")},
          {"none_us", tuned.at("plan_before_us")},
          {"plan_us", tuned.at("plan_us")}};
}

// All layers of a model, with nothing known and then with what that found.
json measure_model(const Cell& cell) {
  const std::filesystem::path cache =
      std::filesystem::temp_directory_path() / fmt::format("stof-bench-search-{}", cell.sequence);
  std::filesystem::remove_all(cache);
  const stof::Graph graph = graph_of(cell);
  json cold = build(graph, cache);
  json again = build(graph, cache);
  std::filesystem::remove_all(cache);
  return {{"case", cell.name()},
          {"ways",
           {{"none", {{"plan_us", cold.at("none_us")}}},
            {"full", std::move(cold)},
            {"again", std::move(again)}}}};
}

// One layer, searched in each way.
json measure_layer(const Cell& cell) {
  constexpr std::size_t kSmall = 48;  // settings
  Lab lab;
  lab.open(graph_of(cell));
  const auto nothing = [](tune::Space&, tune::Trials&) { return tune::SearchResult(); };
  std::vector<Found> found;
  found.push_back(lab.search("none", kFullSeconds, true, nothing));
  found.push_back(lab.search("full", kFullSeconds, true, whole));
  found.push_back(lab.search("again", kFullSeconds, false, whole));
  const std::int64_t timed = found[1].timed;
  std::vector<double> shares;
  found.push_back(lab.search("coarse", kCoarseSeconds, true, coarse));
  found.push_back(lab.search("fine", kFullSeconds, true, fine));
  found.push_back(lab.search("random", kFullSeconds, true, random_search(timed)));
  const Found by_fine = found[4];
  found.push_back(
      lab.search("exhaustive", kFullSeconds, true, exhaustive_search(kSmall, by_fine, shares)));
  for (int i = 1; i < cell.repeats; ++i) {
    found.push_back(lab.search(fmt::format("full {}", i + 1), kFullSeconds, true, whole));
  }
  const std::vector<double> times_us = lab.time_plans(found);
  json row = {{"case", cell.name()},
              {"ways", json::object()},
              {"parts", found[1].winners.size()},
              {"fine_of_exhaustive", shares}};
  for (std::size_t i = 0; i < found.size(); ++i) {
    row["ways"][found[i].how] = to_json(found[i], times_us.empty() ? 0 : times_us[i]);
  }
  return row;
}

json measure(const Cell& cell) {
  return cell.layers == 0 ? measure_model(cell) : measure_layer(cell);
}

double plan_us_of(const json& way) {
  const json& time_us = way.at("plan_us");  // null where the tensors are too large
  return time_us.is_number() ? time_us.get<double>() : 0;
}

std::string table_of(const json& result) {
  std::string text = fmt::format(
      "# Search, {}\n\nMicroseconds of the plan by what was searched, all plans of a layer timed "
      "against each other; seconds, kernels and trials of both stages with nothing known.\n\n"
      "| model, batch, sequence, layers | none | coarse | fine | both | random | exhaustive, small "
      "parts | none over best | seconds | kernels | trials | a second time: kernels, trials |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
      result.at("device").get<std::string>());
  for (const json& row : result.at("rows")) {
    text += fmt::format("| {} |", row.at("case").get<std::string>());
    if (row.contains("failure")) {
      text += fmt::format(" {} |\n", row.at("failure").get<std::string>());
      continue;
    }
    const json& ways = row.at("ways");
    const double none_us = plan_us_of(ways.at("none"));
    double best_us = none_us;
    for (const auto& [name, way] : ways.items()) {
      best_us = std::min(best_us, plan_us_of(way));
    }
    for (const char* way : {"none", "coarse", "fine", "full", "random", "exhaustive"}) {
      text +=
          ways.contains(way) ? fmt::format(" {:.1f} |", plan_us_of(ways[way])) : std::string(" |");
    }
    const json& full = ways.at("full");
    const json& again = ways.at("again");
    text += fmt::format(" {:+.1f} % | {:.1f} | {} | {} | {}, {} |\n",
                        best_us > 0 ? 100 * (none_us / best_us - 1) : 0.0,
                        full.at("seconds").at("whole").get<double>(),
                        full.at("compiled").get<int>(), full.at("timed").get<int>(),
                        again.at("compiled").get<int>(), again.at("timed").get<int>());
  }
  return text;
}

void write(const std::filesystem::path& file, const std::string& text) {
  std::ofstream stream(file);
  stream << text;
  if (!stream.flush()) {
    throw std::runtime_error(fmt::format("cannot write {}", file.string()));
  }
}

void measure_all(double most_seconds, const std::filesystem::path& folder,
                 const std::vector<std::string>& names) {
  const double start = seconds();
  json result = {{"device", stof::cuda::read_device_profile(kDevice).name},
                 {"driver", stof::cuda::version_text(stof::cuda::driver_version())},
                 {"rows", json::array()},
                 {"left_out", json::array()}};
  for (const Cell& cell : cells()) {
    if (!names.empty() && std::ranges::find(names, cell.name()) == names.end()) {
      continue;
    }
    if (seconds() - start > most_seconds) {
      result["left_out"].push_back(cell.name());
      continue;
    }
    try {
      result["rows"].push_back(measure(cell));
    } catch (const stof::Error& error) {
      result["rows"].push_back({{"case", cell.name()}, {"failure", error.what()}});
    }
    result["seconds"] = std::round(seconds() - start);
    fmt::print("{:6.1f} s: {}\n", seconds() - start, result["rows"].back().dump());
    std::fflush(stdout);
    write(folder / "search.json", result.dump(1) + "\n");
    write(folder / "search.md", table_of(result));
  }
  write(folder / "search.json", result.dump(1) + "\n");
}

}  // namespace

// NOLINTNEXTLINE(bugprone-exception-escape): of memory alone, or a stdout that is closed
int main(int argc, char** argv) {
  if (argc < 3) {
    for (const Cell& cell : cells()) {
      fmt::print("{}\n", cell.name());
    }
    return 0;
  }
  try {
    measure_all(std::stod(argv[1]), argv[2], {argv + 3, argv + argc});
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench.search: {}\n", error.what());
    return 1;
  }
  return 0;
}
