#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/trial_runner.hpp"
#include "engine/tuner.hpp"
#include "engine/tuning_space.hpp"
#include "fusion/decisions.hpp"
#include "stof/graph.hpp"
#include "tune/search.hpp"
#include "workshop.hpp"

// Searches for one graph on this GPU, each by itself but for the kernels.
namespace stof::bench {

// What one search found, and what it took.
struct Found {
  std::string how;
  fusion::Decisions decisions;
  std::map<std::string, tune::Setting> winners;  // by problem: the fastest by itself
  int compiled = 0;
  std::int64_t timed = 0;
  std::int64_t recalled = 0;  // that the lab had timed before
  std::int64_t failed = 0;
  std::string ended;
  double compile_s = 0;  // while some kernel was compiled
  double whole_s = 0;
  // Of the whole plan, and of the model's choice, where the search timed them; else 0.
  double plan_us = 0;
  double none_us = 0;
};

// Seconds in which at least one kernel was being compiled.
class CompileClock {
 public:
  // One call at a time.
  void see(const jit::Event& event);

  int compiled() const { return compiled_; }
  double seconds() const { return seconds_; }

 private:
  int running_ = 0;
  int compiled_ = 0;
  double begin_s_ = 0;
  double seconds_ = 0;
};

// Where the kernels of all labs are compiled: those that several of them try, once.
struct KernelShop {
  explicit KernelShop(int of_device)
      : device(of_device), work(of_device, [this](const jit::Event& event) { clock.see(event); }) {}

  int device;
  CompileClock clock;
  Workshop work;
};

class SearchLab {
 public:
  // The shop is used for as long as a lab lives.
  SearchLab(KernelShop& shop, const Graph& graph);

  // Tuning::Full with no record at all, as the engine does it. What the first one times is known to
  // every search() behind it.
  Found tune(const std::string& how);
  // A second build: what was found is looked up.
  Found tune_again();

  // A part of that search, or another one, over what the lab knows: a trial is timed once.
  using Search = std::function<tune::SearchResult(tune::Space&, tune::Trials&)>;
  Found search(const std::string& how, double max_seconds, const Search& run);

  // The time of each plan in microseconds, as they run, against each other; none where they are too
  // large. It takes no longer than that, but for what two plans take at least.
  std::vector<double> time_plans(const std::vector<Found>& found, double max_seconds) const;

  // Of one of the kernels that a plan runs, on average.
  double render_ms(const Found& found) const;

  // What the first tune() timed.
  std::vector<cache::TuningRecord> records() const;

  // Frees what searches need, but for the kernels.
  void rest();

 private:
  engine::TunerTools tuner_tools(cache::TuningStore& store) const;
  engine::TrialTools trial_tools() const;
  fusion::Lowered lower(const Found& found) const;
  std::string compiler_build() const;
  Found timed(const std::string& how, const std::function<void(Found&)>& run);

  struct Searched {  // what search() uses
    explicit Searched(const SearchLab& lab);

    engine::TuningSpace space;
    tune::Records records;
    engine::TrialRunner runner;
  };

  const KernelShop& kernels_;
  const Workshop& shop_;
  fusion::BuildLayout build_layout_;
  graph::Ir ir_;
  std::unique_ptr<cache::TuningStore> store_;  // of the first tune()
  std::unique_ptr<Searched> searched_;
};

}  // namespace stof::bench
