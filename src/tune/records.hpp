#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "cache/tuning_store.hpp"
#include "tune/trial.hpp"

namespace stof::tune {

// {"kernel": name, "parameters": {name: value}}, as records have it.
nlohmann::json to_json(const Setting& setting);
// Nothing for other JSON.
std::optional<Setting> setting_from_json(const nlohmann::json& json);

// What a trial was measured with.
struct Circumstances {
  std::string kernel_key;  // of all kernels that it ran
  std::string driver;      // attributes: a record of another driver or compiler is not void
  std::string compiler;
  std::string when;  // UTC, "2026-11-22T06:40:00Z"
};

// Tuning records as the search wants them: those of a store, and priors that came with the library.
// The problem of a trial is JSON as text (fusion/problem.hpp). From one thread.
class Records {
 public:
  // Reads all of the store when settings are ordered for the first time.
  explicit Records(cache::TuningStore& store, std::vector<cache::TuningRecord> priors = {})
      : store_(store), priors_(std::move(priors)) {}

  // What came of a trial that ran kernels of this key: what ran others is a prior only.
  std::optional<Outcome> find(const Trial& trial, std::string_view kernel_key);
  void add(const Trial& trial, const Outcome& outcome, const Circumstances& circumstances);

  // The settings with the kPriors fastest of the nearest problem that was measured next to the
  // first one, which stays, since it is what runs without a search. The problem itself is the
  // nearest.
  std::vector<Setting> order(const std::string& problem, std::vector<Setting> settings);

  static constexpr std::size_t kPriors = 3;

 private:
  struct Known {
    nlohmann::json problem;
    Setting setting;
    double time_us = 0;
  };
  using Buckets = std::multimap<std::string, Known>;

  const Buckets& buckets();
  void put(const cache::TuningRecord& record);
  std::vector<Known> nearest(const nlohmann::json& problem);

  cache::TuningStore& store_;
  std::vector<cache::TuningRecord> priors_;
  std::optional<Buckets> buckets_;
};

// A line of JSON for each record, ordered by its text.
std::string to_jsonl(const std::vector<cache::TuningRecord>& records);
// Throws GraphError that names the line.
std::vector<cache::TuningRecord> from_jsonl(std::string_view text);
// Records that ship with the library, of all GPUs that there are some of.
std::vector<cache::TuningRecord> shipped_records();
// Of each problem the `count` records with the least times; what failed, and records of whole
// plans, are left out.
std::vector<cache::TuningRecord> fastest(std::vector<cache::TuningRecord> records, int count);

// Adds those that the store does not have, or only from an earlier time. Returns how many.
int merge(cache::TuningStore& store, const std::vector<cache::TuningRecord>& records);

// How far apart the sizes of two problems are: the sum of |log2| of the ratios of the extents of
// their values; nothing where anything else differs than extents, strides and alignments.
std::optional<double> distance(const nlohmann::json& a, const nlohmann::json& b);

}  // namespace stof::tune
