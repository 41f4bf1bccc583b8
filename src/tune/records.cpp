#include "tune/records.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "stof/error.hpp"
#include "tune/embedded_records.hpp"

namespace stof::tune {

using cache::TuningRecord;
using nlohmann::json;

namespace {

constexpr int kMaxDepth = 100;  // of JSON; problems have a few levels

// Records come from files too, whose problems may be any JSON.
bool has_values(const json& problem) {
  const auto is_size = [](const json& extent) { return extent.is_number(); };
  const auto is_value = [&](const json& value) {
    return value.is_object() && value.contains("shape") && value["shape"].is_array() &&
           std::ranges::all_of(value["shape"], is_size);
  };
  return problem.is_object() && problem.contains("values") && problem["values"].is_array() &&
         std::ranges::all_of(problem["values"], is_value);
}

// What problems have in common that may learn from each other.
std::string bucket_of(const json& problem) {
  json bucket = problem;
  if (has_values(problem)) {
    for (json& value : bucket["values"]) {
      const std::size_t rank = value["shape"].size();
      value.erase("strides");
      value.erase("alignment");
      value["shape"] = rank;
    }
  }
  return bucket.dump();
}

// Distance of problems of one bucket.
double size_distance(const json& a, const json& b) {
  double sum = 0;
  if (!has_values(a) || !has_values(b)) {
    return sum;
  }
  for (std::size_t i = 0; i < a["values"].size(); ++i) {
    const json& ours = a["values"][i]["shape"];
    const json& theirs = b["values"][i]["shape"];
    for (std::size_t axis = 0; axis < ours.size(); ++axis) {
      sum += std::abs(std::log2(std::max(ours[axis].get<double>(), 1.0) /
                                std::max(theirs[axis].get<double>(), 1.0)));
    }
  }
  return sum;
}

std::optional<double> time_of(const json& result) {
  const auto found = result.find("time_us");
  const double time_us = found != result.end() && found->is_number() ? found->get<double>() : 0;
  return time_us > 0 ? std::optional(time_us) : std::nullopt;
}

std::string text_of(const json& object, const char* name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

}  // namespace

json to_json(const Setting& setting) {
  return {{"kernel", setting.kernel}, {"parameters", setting.config}};
}

std::optional<Setting> setting_from_json(const json& text) {
  if (!text.is_object() || !text.contains("kernel") || !text["kernel"].is_string() ||
      !text.contains("parameters") || !text["parameters"].is_object()) {
    return std::nullopt;
  }
  Setting setting{.kernel = text["kernel"], .config = {}};
  for (const auto& [name, value] : text["parameters"].items()) {
    if (!value.is_number_integer()) {
      return std::nullopt;
    }
    setting.config.emplace(name, value.get<std::int64_t>());
  }
  return setting;
}

std::optional<double> distance(const json& a, const json& b) {
  return bucket_of(a) == bucket_of(b) ? std::optional(size_distance(a, b)) : std::nullopt;
}

std::optional<Outcome> Records::find(const Trial& trial, std::string_view kernel_key) {
  const std::optional<TuningRecord> record =
      store_.find(json::parse(trial.problem), to_json(trial.setting));
  if (!record || text_of(record->result, "kernel_key") != kernel_key) {
    return std::nullopt;
  }
  Outcome outcome{.time_us = time_of(record->result), .failure = {}};
  if (!outcome.time_us) {
    outcome.failure = text_of(record->result, "failure");
    if (outcome.failure.empty()) {
      return std::nullopt;
    }
  }
  return outcome;
}

void Records::add(const Trial& trial, const Outcome& outcome, const Circumstances& circumstances) {
  TuningRecord record{.problem = json::parse(trial.problem),
                      .config = to_json(trial.setting),
                      .result = {{"kernel_key", circumstances.kernel_key},
                                 {"driver", circumstances.driver},
                                 {"compiler", circumstances.compiler},
                                 {"when", circumstances.when}}};
  if (outcome.time_us) {
    record.result["time_us"] = *outcome.time_us;
  } else {
    record.result["failure"] = outcome.failure;
  }
  store_.add(record);
}

const Records::Buckets& Records::buckets() {
  if (!buckets_) {
    buckets_.emplace();
    for (const TuningRecord& record : priors_) {
      put(record);
    }
    for (const TuningRecord& record : store_.all()) {
      put(record);
    }
  }
  return *buckets_;
}

void Records::put(const TuningRecord& record) {
  const std::optional<Setting> setting = setting_from_json(record.config);
  const std::optional<double> time_us =
      record.result.is_object() ? time_of(record.result) : std::nullopt;
  if (setting && time_us) {
    buckets_->emplace(bucket_of(record.problem),
                      Known{.problem = record.problem, .setting = *setting, .time_us = *time_us});
  }
}

// The records of the nearest problem, the fastest first.
std::vector<Records::Known> Records::nearest(const json& problem) {
  std::vector<Known> nearest;
  double least = 0;
  const auto [begin, end] = buckets().equal_range(bucket_of(problem));
  for (auto i = begin; i != end; ++i) {
    const double distance = size_distance(problem, i->second.problem);
    // Of problems that are as near the one whose text comes first.
    const bool is_other = !nearest.empty() && nearest.front().problem != i->second.problem;
    if (nearest.empty() || distance < least ||
        (is_other && distance == least && i->second.problem < nearest.front().problem)) {
      nearest.clear();
      least = distance;
    } else if (is_other) {
      continue;
    }
    nearest.push_back(i->second);
  }
  std::ranges::stable_sort(nearest, [](const Known& a, const Known& b) {
    return std::tie(a.time_us, a.setting) < std::tie(b.time_us, b.setting);
  });
  return nearest;
}

std::vector<Setting> Records::order(const std::string& problem, std::vector<Setting> settings) {
  if (settings.size() < 3) {
    return settings;
  }
  auto place = settings.begin() + 1;
  std::size_t left = kPriors;
  for (const Known& known : nearest(json::parse(problem))) {
    if (left == 0) {
      break;
    }
    const auto found = std::find(settings.begin(), settings.end(), known.setting);
    if (found == settings.end()) {
      continue;
    }
    --left;
    if (found >= place) {
      std::rotate(place, found, found + 1);
      ++place;
    }
  }
  return settings;
}

std::string to_jsonl(const std::vector<TuningRecord>& records) {
  std::vector<std::string> lines;
  for (const TuningRecord& record : records) {
    const json line = {
        {"problem", record.problem}, {"config", record.config}, {"result", record.result}};
    lines.push_back(line.dump() + "\n");
  }
  std::ranges::sort(lines);
  std::string text;
  for (const std::string& line : lines) {
    text += line;
  }
  return text;
}

std::vector<TuningRecord> from_jsonl(std::string_view text) {
  std::vector<TuningRecord> records;
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty()) {
      continue;
    }
    if (line.size() > cache::kMaxRecordBytes) {
      throw GraphError(fmt::format("tuning records: line {} has {} bytes, the most is {}", number,
                                   line.size(), cache::kMaxRecordBytes));
    }
    // Deeper ones are not taken: what writes JSON calls itself for each level.
    bool is_too_deep = false;
    json record = json::parse(
        line,
        [&](int depth, json::parse_event_t /*event*/, json& /*parsed*/) {
          is_too_deep |= depth > kMaxDepth;
          return !is_too_deep;
        },
        false);
    if (is_too_deep) {
      throw GraphError(
          fmt::format("tuning records: line {} is deeper than {} levels", number, kMaxDepth));
    }
    if (record.is_discarded()) {
      throw GraphError(fmt::format("tuning records: line {} is no JSON", number));
    }
    if (!record.is_object() || !record.contains("problem") || !record.contains("config") ||
        !record.contains("result") || !record["result"].is_object()) {
      throw GraphError(fmt::format(
          "tuning records: line {} is no object with problem, config and result", number));
    }
    if (setting_from_json(record["config"]) && !time_of(record["result"]) &&
        text_of(record["result"], "failure").empty()) {
      const auto time = record["result"].find("time_us");
      throw GraphError(fmt::format(
          "tuning records: line {}: a setting has a time_us of more than 0 or a failure, not {}",
          number, time == record["result"].end() ? "neither" : time->dump()));
    }
    records.push_back({.problem = std::move(record["problem"]),
                       .config = std::move(record["config"]),
                       .result = std::move(record["result"])});
  }
  return records;
}

std::vector<TuningRecord> shipped_records() {
  std::vector<TuningRecord> records;
  for (const EmbeddedRecord& file : embedded_records()) {
    for (TuningRecord& record : from_jsonl(file.text)) {
      records.push_back(std::move(record));
    }
  }
  return records;
}

std::vector<TuningRecord> fastest(std::vector<TuningRecord> records, int count) {
  std::erase_if(records, [](const TuningRecord& record) {
    return !setting_from_json(record.config) || !time_of(record.result);
  });
  std::ranges::stable_sort(records, [](const TuningRecord& a, const TuningRecord& b) {
    return *time_of(a.result) < *time_of(b.result);
  });
  std::map<std::string, int> of_problem;
  std::erase_if(records, [&](const TuningRecord& record) {
    return ++of_problem[record.problem.dump()] > count;
  });
  return records;
}

int merge(cache::TuningStore& store, const std::vector<TuningRecord>& records) {
  int count = 0;
  for (const TuningRecord& record : records) {
    const std::optional<TuningRecord> known = store.find(record.problem, record.config);
    if (!known || text_of(known->result, "when") < text_of(record.result, "when")) {
      store.add(record, base::Flush::Later);  // each takes milliseconds to flush
      ++count;
    }
  }
  store.flush();
  return count;
}

}  // namespace stof::tune
