#include "cache/tuning_store.hpp"

#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/files.hpp"
#include "stof/error.hpp"

namespace stof::cache {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

// A file is {"xxh3": "<32 digits>", "record": {…}}, with the digest of everything from kMiddle on.
constexpr std::string_view kStart = R"({"xxh3": ")";
constexpr std::string_view kMiddle = R"(", "record": )";
constexpr std::size_t kDigits = 32;

// Objects are ordered by name in it, and numbers as short as they can be: equal JSON, equal text.
std::string name_of(const json& value) {
  return base::hash(value.dump()).hex();
}

std::string encode(const TuningRecord& record) {
  const json body = {
      {"problem", record.problem}, {"config", record.config}, {"result", record.result}};
  const std::string checked = fmt::format("{}{}}}\n", kMiddle, body.dump());
  return fmt::format("{}{}{}", kStart, base::hash(checked).hex(), checked);
}

std::optional<TuningRecord> decode(std::string_view text) {
  if (text.size() < kStart.size() + kDigits || !text.starts_with(kStart)) {
    return std::nullopt;
  }
  const std::string_view checked = text.substr(kStart.size() + kDigits);
  if (base::hash(checked).hex() != text.substr(kStart.size(), kDigits)) {
    return std::nullopt;
  }
  const json file = json::parse(text, nullptr, false);
  if (!file.is_object() || !file.contains("record") || !file["record"].is_object()) {
    return std::nullopt;
  }
  const json& body = file["record"];
  if (!body.contains("problem") || !body.contains("config") || !body.contains("result")) {
    return std::nullopt;
  }
  return TuningRecord{
      .problem = body["problem"], .config = body["config"], .result = body["result"]};
}

}  // namespace

TuningStore::TuningStore(std::optional<fs::path> folder, bool is_writable, Warn warn_of_reading,
                         Warn warn_of_writing)
    : folder_(std::move(folder)),
      is_writable_(is_writable),
      warn_of_reading_(std::move(warn_of_reading)),
      warn_of_writing_(std::move(warn_of_writing)) {}

fs::path TuningStore::folder_of(const std::string& problem_name) const {
  return *folder_ / "tuning" / problem_name.substr(0, 2) / problem_name;
}

fs::path TuningStore::path_of(const TuningRecord& record) const {
  return folder_of(name_of(record.problem)) / (name_of(record.config) + ".json");
}

TuningStore::ByConfig TuningStore::read_folder(const fs::path& folder) {
  ByConfig found;
  std::error_code ignored;
  for (fs::directory_iterator i(folder, ignored); i != fs::directory_iterator();
       i.increment(ignored)) {
    if (i->path().extension() != ".json") {
      continue;  // a file that somebody is writing
    }
    if (std::optional<TuningRecord> record = read(i->path())) {
      found[i->path().filename().string()] = *std::move(record);
    }
  }
  return found;
}

std::vector<TuningRecord> TuningStore::find(const json& problem) {
  const std::string problem_name = name_of(problem);
  ByConfig found;
  if (folder_) {
    found = read_folder(folder_of(problem_name));
    std::erase_if(found, [&](const auto& item) { return item.second.problem != problem; });
  }
  const std::lock_guard lock(mutex_);
  if (const auto unwritten = unwritten_.find(problem_name); unwritten != unwritten_.end()) {
    for (const auto& [name, record] : unwritten->second) {
      if (record.problem == problem) {
        found[name] = record;
      }
    }
  }
  std::vector<TuningRecord> records;
  records.reserve(found.size());
  for (auto& [name, record] : found) {
    records.push_back(std::move(record));
  }
  return records;
}

std::optional<TuningRecord> TuningStore::find(const json& problem, const json& config) {
  const std::string name = name_of(config) + ".json";
  const std::string problem_name = name_of(problem);
  std::optional<TuningRecord> record;
  {
    const std::lock_guard lock(mutex_);
    const auto unwritten = unwritten_.find(problem_name);
    if (unwritten != unwritten_.end() && unwritten->second.contains(name)) {
      record = unwritten->second.at(name);
    }
  }
  if (!record && folder_) {
    record = read(folder_of(problem_name) / name);
  }
  return record && record->problem == problem && record->config == config ? record : std::nullopt;
}

std::vector<TuningRecord> TuningStore::all() {
  std::map<std::string, ByConfig> found;
  if (folder_) {
    std::error_code ignored;
    for (fs::directory_iterator i(*folder_ / "tuning", ignored); i != fs::directory_iterator();
         i.increment(ignored)) {
      for (fs::directory_iterator j(i->path(), ignored); j != fs::directory_iterator();
           j.increment(ignored)) {
        found[j->path().filename().string()] = read_folder(j->path());
      }
    }
  }
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [problem, by_config] : unwritten_) {
      for (const auto& [name, record] : by_config) {
        found[problem][name] = record;
      }
    }
  }
  std::vector<TuningRecord> records;
  for (auto& [problem, by_config] : found) {
    for (auto& [name, record] : by_config) {
      records.push_back(std::move(record));
    }
  }
  return records;
}

void TuningStore::add(const TuningRecord& record, base::Flush flush) {
  const std::string problem_name = name_of(record.problem);
  const std::string name = name_of(record.config) + ".json";
  const bool is_written = is_writable_ && folder_ && write(record, flush);
  const std::lock_guard lock(mutex_);
  if (!is_written) {
    unwritten_[problem_name][name] = record;
  } else if (const auto old = unwritten_.find(problem_name); old != unwritten_.end()) {
    old->second.erase(name);
  }
}

void TuningStore::flush() {
  std::error_code ignored;
  if (!folder_ || !is_writable_ || !fs::exists(*folder_, ignored)) {
    return;
  }
  try {
    base::flush_files(*folder_);
  } catch (const GraphError& error) {
    warn_of_writing_(
        fmt::format("cache: tuning records may not outlive a crash: {}", error.what()));
  }
}

std::optional<TuningRecord> TuningStore::read(const fs::path& path) {
  std::optional<std::string> text;
  try {
    text = base::read_file_if_exists(path, kMaxRecordBytes);
  } catch (const GraphError& error) {
    warn_of_reading_(fmt::format("cache: a tuning record is lost: {}", error.what()));
  }
  if (!text) {
    return std::nullopt;
  }
  std::optional<TuningRecord> record = decode(*text);
  if (!record || path_of(*record) != path) {
    warn_of_reading_(
        fmt::format("cache: {} is not used: it is not the record of its name", path.string()));
    if (is_writable_) {
      set_aside(*folder_, path, *text);
    }
    return std::nullopt;
  }
  return record;
}

bool TuningStore::write(const TuningRecord& record, base::Flush flush) {
  try {
    publish_file(path_of(record), encode(record), flush);
    return true;
  } catch (const GraphError& error) {
    warn_of_writing_(fmt::format("cache: a tuning record stays in memory: {}", error.what()));
    return false;
  }
}

}  // namespace stof::cache
