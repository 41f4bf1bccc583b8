#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "search_lab.hpp"

// What tools/bench/search writes.
namespace stof::bench {

// A search and the time of its plan; `plan_us` is 0 where that is not known.
nlohmann::json to_json(const Found& found, double plan_us);

// Equal searches of one graph, each with no record, and the times of their plans: how far these are
// apart, and in how many parts all have one winner.
nlohmann::json repeats_json(const std::vector<Found>& repeats, std::span<const double> times_us);

double rounded(double value);  // to hundredths

// Adds the row, in place of one of the same case.
void put_row(nlohmann::json& result, nlohmann::json row);
// nullptr where the result has none of that case, or only why it failed.
const nlohmann::json* find_row(const nlohmann::json& result, const std::string& name);

bool has_row(const nlohmann::json& result, const std::string& name);
// Whether the result says of that case only why it failed.
bool has_failed(const nlohmann::json& result, const std::string& name);

// The result of an earlier run in the folder, where it is of this device and driver, else an empty
// one.
nlohmann::json read_result(const std::filesystem::path& folder, const std::string& device,
                           const std::string& driver);
// Adds records to those that records.jsonl in the folder has, and keeps the fastest few of each
// problem: such a file ships with the library. Throws std::runtime_error.
void add_records(const std::filesystem::path& folder,
                 const std::vector<cache::TuningRecord>& records);

// As search.json, and as search.md with a table and what it says. Throws std::runtime_error.
void write_result(const std::filesystem::path& folder, const nlohmann::json& result);

}  // namespace stof::bench
