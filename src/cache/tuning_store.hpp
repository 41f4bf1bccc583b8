#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "cache/disk_layer.hpp"

namespace stof::cache {

// Of a record as JSON, with its file.
inline constexpr std::size_t kMaxRecordBytes = 1 << 20;

// What was measured of one configuration of one problem. Problem and config are what the record is
// found by, so equal ones must be equal JSON; the rest may alter.
// NOLINTNEXTLINE(bugprone-exception-escape): JSON moves without a throw
struct TuningRecord {
  nlohmann::json problem;
  nlohmann::json config;
  nlohmann::json result;
};

// Tuning records as one JSON file for each problem and config (cache/README.md). Processes that
// tune one problem at once lose nothing: merging is listing. Thread-safe.
class TuningStore {
 public:
  // Without a folder, and for what cannot be written to it, records live as long as this object.
  TuningStore(std::optional<std::filesystem::path> folder, bool is_writable, Warn warn_of_reading,
              Warn warn_of_writing);

  // Every record of a problem, in an order that depends on the configs alone. Never throws for what
  // lies on the disk: a file that is not what its name says is set aside.
  std::vector<TuningRecord> find(const nlohmann::json& problem);
  // The one of this config.
  std::optional<TuningRecord> find(const nlohmann::json& problem, const nlohmann::json& config);
  // Those of all problems.
  std::vector<TuningRecord> all();
  // Replaces the record of the same problem and config. Of many, each may be flushed later, all at
  // once: what a crash leaves of a file before that is set aside when it is read.
  void add(const TuningRecord& record, base::Flush flush = base::Flush::Each);
  void flush();

  std::filesystem::path path_of(const TuningRecord& record) const;

 private:
  using ByConfig = std::map<std::string, TuningRecord>;  // by the name of the file

  std::filesystem::path folder_of(const std::string& problem_name) const;
  // The records in a folder, by the names of their files.
  ByConfig read_folder(const std::filesystem::path& folder);
  std::optional<TuningRecord> read(const std::filesystem::path& path);
  bool write(const TuningRecord& record, base::Flush flush);

  std::optional<std::filesystem::path> folder_;
  bool is_writable_;
  Warn warn_of_reading_;
  Warn warn_of_writing_;
  std::mutex mutex_;
  std::map<std::string, ByConfig> unwritten_;  // by the name of the problem
};

}  // namespace stof::cache
