// Tunes one layer of each model of the zoo, and BERT-base as a whole, on this GPU: what it takes,
// and what it gains. Usage: bench.search SECONDS FOLDER [CELL…], which writes search.json and
// search.md, and the records of the layers' trials as records.jsonl: of those cells in that order,
// else of all that it prints without arguments and that the folder has no result of. Cells that no
// time is left for are named there.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cuda/device.hpp"
#include "cuda/read_device_profile.hpp"
#include "engine/explain.hpp"
#include "search_cells.hpp"
#include "search_lab.hpp"
#include "search_report.hpp"
#include "search_ways.hpp"
#include "stof/stof.hpp"
#include "tune/trials.hpp"

namespace {

using nlohmann::json;
using stof::bench::Found;
using stof::bench::KernelShop;
using stof::bench::SearchCell;
using stof::bench::SearchLab;

constexpr int kDevice = 0;
constexpr double kSearchSeconds = 12;  // of each way but the engine's own
constexpr double kPlansSeconds = 10;   // for the plans of a cell
constexpr std::size_t kSmall = 48;     // settings of a part that are searched exhaustively
constexpr int kRepeats = 5;

// A build by a new engine, as a user has it.
json build(const stof::Graph& graph, const std::filesystem::path& cache) {
  stof::EngineOptions options;
  options.cache_dir = cache;
  options.tuning = stof::Tuning::Full;
  std::atomic<int> compiled = 0;
  options.on_event = [&](const stof::Event& event) {
    compiled += event.stage == "compiled" ? 1 : 0;
  };
  const double start = stof::tune::steady_seconds();
  const stof::Engine engine(options);
  const stof::Plan plan = engine.build(graph);
  const double took = stof::tune::steady_seconds() - start;
  const json tuned = json::parse(stof::engine::explain_json(plan, {})).at("tuned");
  return {{"seconds", {{"whole", stof::bench::rounded(took)}}},
          {"compiled", compiled.load()},
          {"timed", tuned.at("timed")},
          {"recalled", tuned.at("recalled")},
          {"failed", tuned.at("failed")},
          {"ended", tuned.at("ended")},
          {"none_us", tuned.at("plan_before_us")},
          {"plan_us", tuned.at("plan_us")}};
}

// All layers of a model, with nothing known and then with what that found.
json measure_model(const SearchCell& cell) {
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

// One layer and the full searches of it so far.
struct Layer {
  std::unique_ptr<SearchLab> lab;
  std::vector<Found> repeats;
};

// All full searches again, and their plans against each other.
void repeat(Layer& layer, json& row) {
  while (layer.repeats.size() < kRepeats) {
    layer.repeats.push_back(layer.lab->tune("full"));
  }
  const std::vector<double> times_us = layer.lab->time_plans(layer.repeats, kPlansSeconds);
  if (times_us.size() == layer.repeats.size()) {
    row["repeats"] = stof::bench::repeats_json(layer.repeats, times_us);
  }
}

// Searched in each way. The row has what is known so far, should a kernel bring the GPU down.
void measure_layer(KernelShop& shop, const SearchCell& cell, Layer& layer, json& row) {
  layer.lab = std::make_unique<SearchLab>(shop, graph_of(cell));
  SearchLab& lab = *layer.lab;
  std::vector<Found> found;
  row = {
      {"case", cell.name()}, {"ways", json::object()}, {"kernels_before", shop.clock.compiled()}};
  const auto add = [&](Found one, double plan_us) {
    row["ways"][one.how] = stof::bench::to_json(one, plan_us);
    found.push_back(std::move(one));
  };
  layer.repeats.push_back(lab.tune("full"));
  const Found& full = layer.repeats.front();
  add(full, full.plan_us);
  add(lab.tune_again(), full.plan_us);
  add(lab.search("none", kSearchSeconds, stof::bench::no_search()), full.none_us);
  row["parts"] = full.winners.size();
  row["render_ms_of_a_kernel"] = stof::bench::rounded(lab.render_ms(full));
  add(lab.search("coarse", kSearchSeconds, stof::bench::coarse_alone()), 0);
  add(lab.search("fine", kSearchSeconds, stof::bench::fine_alone()), 0);
  const Found by_fine = found.back();
  std::vector<double> shares;
  add(lab.search("exhaustive", kSearchSeconds, stof::bench::exhaustive(kSmall, by_fine, shares)),
      0);
  row["fine_of_exhaustive"] = shares;
  add(lab.search("random", kSearchSeconds, stof::bench::at_random(full.timed + full.recalled)), 0);
  const std::vector<double> times_us = lab.time_plans(found, kPlansSeconds);
  for (std::size_t i = 0; i < times_us.size(); ++i) {
    row["ways"][found[i].how]["plan_us"] = stof::bench::rounded(times_us[i]);
  }
  lab.rest();
}

class Bench {
 public:
  Bench(double most_seconds, std::filesystem::path folder)
      : most_seconds_(most_seconds),
        folder_(std::move(folder)),
        result_(stof::bench::read_result(folder_, stof::cuda::read_device_profile(kDevice).name,
                                         stof::cuda::version_text(stof::cuda::driver_version()))) {
    result_["small_settings"] = kSmall;
  }

  // Throws CudaError where a kernel brought the GPU down, of which the row of its cell tells: then
  // another process may go on.
  void run(const std::vector<std::string>& names) {
    std::vector<SearchCell> left = names.empty() ? missing() : of_names(names);
    std::map<std::string, Layer> layers;
    while (!left.empty() && has_time(slowest_layer_s_)) {
      measure(left.front(), layers[left.front().name()]);
      left.erase(left.begin());
      write();
    }
    for (const SearchCell& cell : stof::bench::search_cells()) {
      Layer& layer = layers[cell.name()];
      if (layer.lab && layer.repeats.size() < kRepeats && has_time(slowest_repeat_s_)) {
        add_repeats(cell.name(), layer);
        write();
      }
    }
    write();
  }

 private:
  // What there is no result of, at the end that of which an earlier try failed.
  std::vector<SearchCell> missing() const {
    std::vector<SearchCell> cells = stof::bench::search_cells();
    std::erase_if(cells, [&](const SearchCell& cell) {
      return stof::bench::find_row(result_, cell.name()) != nullptr;
    });
    std::stable_partition(cells.begin(), cells.end(), [&](const SearchCell& cell) {
      return !stof::bench::has_failed(result_, cell.name());
    });
    return cells;
  }

  static std::vector<SearchCell> of_names(const std::vector<std::string>& names) {
    const std::vector<SearchCell> cells = stof::bench::search_cells();
    std::vector<SearchCell> found;
    for (const std::string& name : names) {
      const auto cell = std::ranges::find(cells, name, &SearchCell::name);
      if (cell == cells.end()) {
        throw std::invalid_argument(fmt::format("'{}' is none of the cells", name));
      }
      found.push_back(*cell);
    }
    return found;
  }

  double seconds() const { return stof::tune::steady_seconds() - start_; }

  // For one more like that.
  bool has_time(double slowest_s) const { return seconds() + slowest_s <= most_seconds_; }

  void measure(const SearchCell& cell, Layer& layer) {
    const double begin = seconds();
    json row;
    try {
      if (cell.layers == 0) {
        row = measure_model(cell);
      } else {
        measure_layer(shop_, cell, layer, row);
      }
      if (cell.is_repeated) {
        repeat(layer, row);
      }
    } catch (const stof::CudaError& error) {
      put_failure(cell, std::move(row), error);
      throw;
    } catch (const stof::Error& error) {
      put_failure(cell, std::move(row), error);
      layer = {};
      return;
    }
    if (layer.lab) {
      stof::bench::add_records(folder_, layer.lab->records());
    }
    slowest_layer_s_ =
        cell.layers == 1 ? std::max(slowest_layer_s_, seconds() - begin) : slowest_layer_s_;
    report(begin, row);
    stof::bench::put_row(result_, std::move(row));
  }

  void add_repeats(const std::string& name, Layer& layer) {
    const double begin = seconds();
    json row = *stof::bench::find_row(result_, name);
    repeat(layer, row);
    layer = {};
    slowest_repeat_s_ = std::max(slowest_repeat_s_, seconds() - begin);
    report(begin, row);
    stof::bench::put_row(result_, std::move(row));
  }

  void report(double begin, const json& row) const {
    fmt::print("{:6.1f} s, after {:5.1f} s: {}\n", seconds(), seconds() - begin, row.dump());
    std::fflush(stdout);
  }

  void put_failure(const SearchCell& cell, json row, const stof::Error& error) {
    const bool has_some = row.contains("parts");
    row["case"] = cell.name();
    row[has_some ? "stopped_by" : "failure"] = error.what();
    stof::bench::put_row(result_, std::move(row));
    write();
  }

  void write() {
    result_["left_out"] = json::array();
    for (const SearchCell& cell : stof::bench::search_cells()) {
      if (!stof::bench::has_row(result_, cell.name())) {
        result_["left_out"].push_back(cell.name());
      }
    }
    stof::bench::write_result(folder_, result_);
  }

  double most_seconds_;
  std::filesystem::path folder_;
  json result_;
  KernelShop shop_{kDevice};
  double start_ = stof::tune::steady_seconds();
  double slowest_layer_s_ = 0;  // with its repeats, where it has some
  double slowest_repeat_s_ = 0;
};

}  // namespace

// NOLINTNEXTLINE(bugprone-exception-escape): of memory alone, or a stdout that is closed
int main(int argc, char** argv) {
  if (argc < 3) {
    for (const SearchCell& cell : stof::bench::search_cells()) {
      fmt::print("{}\n", cell.name());
    }
    return 0;
  }
  try {
    Bench(std::stod(argv[1]), argv[2]).run({argv + 3, argv + argc});
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench.search: {}\n", error.what());
    return 1;
  }
  return 0;
}
