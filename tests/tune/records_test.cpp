#include "tune/records.hpp"

#include <algorithm>
#include <atomic>

#include <doctest/doctest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/device_profile.hpp"
#include "stof/error.hpp"
#include "temporary_folder.hpp"

namespace {

std::atomic<int> flushes = 0;

}  // namespace

// That of the C library, counted.
extern "C" int fsync(int file) {
  ++flushes;
  return static_cast<int>(syscall(SYS_fsync, file));
}

namespace {

using nlohmann::json;
using stof::cache::TuningRecord;
using stof::cache::TuningStore;
using stof::tune::Circumstances;
using stof::tune::Outcome;
using stof::tune::Records;
using stof::tune::Setting;
using stof::tune::Trial;

TuningStore open_store(const std::optional<std::filesystem::path>& folder = {}) {
  const auto fail = [](const std::string& text) { FAIL(text); };
  return {folder, true, fail, fail};
}

json gemm(int m, int n, const char* dtype = "float16") {
  return {{"device", "NVIDIA H200"},
          {"operators", {{{"op", "matmul"}}}},
          {"values",
           {{{"dtype", dtype}, {"shape", {m, 768}}, {"strides", {768, 1}}, {"alignment", 16}},
            {{"dtype", dtype}, {"shape", {m, n}}, {"strides", {n, 1}}, {"alignment", 16}}}}};
}

Setting tile(int size, const char* kernel = "gemm_sm90") {
  return {.kernel = kernel, .config = {{"stages", 4}, {"tile", size}}};
}

Trial trial(const json& problem, int size) {
  return {.problem = problem.dump(), .setting = tile(size)};
}

Circumstances measured_with(const char* key, const char* when = "2026-01-01T00:00:00Z") {
  return {.kernel_key = key, .driver = "580", .compiler = "13.0", .when = when};
}

Outcome took(double time_us) {
  return {.time_us = time_us, .failure = {}};
}

}  // namespace

TEST_CASE("a setting is its JSON and back") {
  CHECK(stof::tune::setting_from_json(stof::tune::to_json(tile(64))) == tile(64));
  CHECK_FALSE(stof::tune::setting_from_json(json::parse(R"({"kernel": "k"})")));
  CHECK_FALSE(stof::tune::setting_from_json(
      json::parse(R"({"kernel": "k", "parameters": {"tile": "wide"}})")));
  CHECK_FALSE(stof::tune::setting_from_json(json::parse("[1]")));
}

TEST_CASE("a record is found by its trial, to the last bit, also by another process") {
  const stof::test::TemporaryFolder folder;
  TuningStore first = open_store(folder.path());
  Records(first).add(trial(gemm(128, 768), 64), took(1.0 / 3), measured_with("key"));
  Records(first).add(trial(gemm(128, 768), 96), {.time_us = {}, .failure = "spills"},
                     measured_with("key"));
  TuningStore second = open_store(folder.path());
  Records records(second);
  CHECK(records.find(trial(gemm(128, 768), 64), "key")->time_us == 1.0 / 3);
  CHECK(records.find(trial(gemm(128, 768), 96), "key")->failure == "spills");
  CHECK_FALSE(records.find(trial(gemm(128, 768), 128), "key"));
  CHECK_FALSE(records.find(trial(gemm(129, 768), 64), "key"));
}

TEST_CASE("a record of another kernel is a prior, not a result") {
  TuningStore store = open_store();
  Records records(store);
  records.add(trial(gemm(128, 768), 128), took(4), measured_with("old"));
  CHECK_FALSE(records.find(trial(gemm(128, 768), 128), "new"));
  const std::vector<Setting> order =
      records.order(gemm(128, 768).dump(), {tile(16), tile(32), tile(64), tile(128)});
  CHECK(order == std::vector<Setting>{tile(16), tile(128), tile(32), tile(64)});
}

TEST_CASE("the nearest problem that was measured orders the settings of one that was not") {
  TuningStore store = open_store();
  Records records(store);
  records.add(trial(gemm(100, 768), 128), took(4), measured_with("key"));
  records.add(trial(gemm(100, 768), 64), took(3), measured_with("key"));
  records.add(trial(gemm(100, 768), 256), took(2), measured_with("key"));  // no longer allowed
  records.add(trial(gemm(4096, 768), 32), took(1), measured_with("key"));
  records.add(trial(gemm(128, 768, "bfloat16"), 32), took(1), measured_with("key"));
  const std::vector<Setting> settings = {tile(16), tile(32), tile(64), tile(128)};
  CHECK(records.order(gemm(128, 768).dump(), settings) ==
        std::vector<Setting>{tile(16), tile(64), tile(128), tile(32)});
  CHECK(records.order(gemm(8192, 768).dump(), settings) == settings);  // 32 is second already
  CHECK(records.order(gemm(128, 768, "float32").dump(), settings) == settings);
}

TEST_CASE("problems are as far apart as their sizes") {
  CHECK(stof::tune::distance(gemm(128, 768), gemm(128, 768)) == 0.0);
  CHECK(stof::tune::distance(gemm(128, 768), gemm(256, 768)) == 2.0);  // m is in two values
  CHECK(stof::tune::distance(gemm(128, 768), gemm(128, 192)) == 2.0);
  CHECK_FALSE(stof::tune::distance(gemm(128, 768), gemm(128, 768, "bfloat16")));
}

TEST_CASE("shipped records are priors, and the user's own count as much") {
  TuningStore store = open_store();
  const std::vector<TuningRecord> shipped =
      stof::tune::from_jsonl(json({{"problem", gemm(128, 768)},
                                   {"config", stof::tune::to_json(tile(64))},
                                   {"result", {{"time_us", 3}, {"kernel_key", "key"}}}})
                                 .dump());
  Records records(store, shipped);
  CHECK_FALSE(records.find(trial(gemm(128, 768), 64), "key"));
  CHECK(records.order(gemm(128, 768).dump(), {tile(16), tile(32), tile(64)})[1] == tile(64));
}

TEST_CASE("two stores merge: the newer of a record is kept") {
  TuningStore ours = open_store();
  TuningStore theirs = open_store();
  Records(ours).add(trial(gemm(1, 8), 16), took(1), measured_with("a", "2026-01-02T00:00:00Z"));
  Records(ours).add(trial(gemm(1, 8), 32), took(2), measured_with("a", "2026-01-02T00:00:00Z"));
  Records(theirs).add(trial(gemm(1, 8), 16), took(3), measured_with("b", "2026-01-01T00:00:00Z"));
  Records(theirs).add(trial(gemm(1, 8), 32), took(4), measured_with("b", "2026-01-03T00:00:00Z"));
  Records(theirs).add(trial(gemm(2, 8), 16), took(5), measured_with("b"));
  const std::string text = stof::tune::to_jsonl(theirs.all());
  CHECK(std::ranges::count(text, '\n') == 3);
  CHECK(stof::tune::merge(ours, stof::tune::from_jsonl(text)) == 2);
  CHECK(stof::tune::merge(ours, stof::tune::from_jsonl(text)) == 0);
  Records merged(ours);
  CHECK(merged.find(trial(gemm(1, 8), 16), "a")->time_us == 1);
  CHECK(merged.find(trial(gemm(1, 8), 32), "b")->time_us == 4);
  CHECK(merged.find(trial(gemm(2, 8), 16), "b")->time_us == 5);
}

TEST_CASE("a line that is no record is named") {
  CHECK(stof::tune::from_jsonl("\n\n").empty());
  CHECK_THROWS_WITH_AS(stof::tune::from_jsonl("\n{"), "tuning records: line 2 is no JSON",
                       stof::GraphError);
  for (const char* result : {R"({"time_us": -3})", R"({"time_us": 0})", R"({"time_us": "fast"})",
                             R"({})", R"({"failure": ""})"}) {
    const std::string record =
        R"({"problem":{},"config":{"kernel":"k","parameters":{}},"result":)" + std::string(result);
    CHECK_THROWS_AS(stof::tune::from_jsonl(record + "}"), stof::GraphError);
  }
  for (const char* line :
       {"[]", R"({"problem": 1, "config": 2})", R"({"problem": 1, "config": 2, "result": 3})"}) {
    const std::string text = std::string("\n") + line + "\n";
    CHECK_THROWS_WITH_AS(stof::tune::from_jsonl(text),
                         "tuning records: line 2 is no object with problem, config and result",
                         stof::GraphError);
  }
  const auto line_with = [](const std::string& problem) {
    return R"({"problem":)" + problem + R"(,"config":1,"result":{}})";
  };
  CHECK_THROWS_WITH_AS(
      stof::tune::from_jsonl(line_with(std::string(200'000, '[') + std::string(200'000, ']'))),
      "tuning records: line 1 is deeper than 100 levels", stof::GraphError);
  CHECK_THROWS_WITH_AS(stof::tune::from_jsonl(line_with(std::string(1 << 20, ' ') + "1")),
                       "tuning records: line 1 has 1048612 bytes, the most is 1048576",
                       stof::GraphError);
}

TEST_CASE("records that are taken in together are flushed to the disk together") {
  const stof::test::TemporaryFolder folder;
  TuningStore store = open_store(folder.path());
  std::vector<TuningRecord> records;
  for (int size = 1; size <= 20; ++size) {
    records.push_back({.problem = gemm(size % 4 + 1, 8),
                       .config = to_json(tile(size)),
                       .result = {{"time_us", size}, {"when", "2026-01-01T00:00:00Z"}}});
  }
  flushes = 0;
  CHECK(stof::tune::merge(store, records) == 20);
  CHECK(flushes == 0);
  CHECK(stof::tune::to_jsonl(open_store(folder.path()).all()) == stof::tune::to_jsonl(records));
  store.add(records.front());
  CHECK(flushes == 1);
}

TEST_CASE("records of others may say anything") {
  TuningStore store = open_store();
  const auto add = [&](const json& problem, const json& result) {
    stof::tune::merge(store, {{.problem = problem, .config = to_json(tile(16)), .result = result}});
  };
  add({{"values", {1, 2}}}, {{"time_us", 1}});
  json words = gemm(8, 8);
  words["values"][0]["shape"] = {"a", "b"};
  add(words, {{"time_us", 1}});
  add(gemm(8, 8), {{"time_us", -1e300}});
  add(gemm(16, 8), {{"time_us", 2}, {"when", 5}, {"kernel_key", 7}});
  add(gemm(16, 8), {{"time_us", 3}, {"when", 6}});
  Records records(store);
  CHECK(!records.find(trial(gemm(8, 8), 16), ""));
  const std::vector<Setting> settings = {tile(64), tile(32), tile(16)};
  CHECK(records.order(gemm(8, 8).dump(), settings) ==
        std::vector{tile(64), tile(16), tile(32)});  // by that of 16 rows
}

TEST_CASE("the fastest of each problem, without what failed and without whole plans") {
  TuningStore store = open_store();
  Records records(store);
  for (const int size : {16, 32, 64}) {
    records.add(trial(gemm(1, 8), size), took(size), measured_with("key"));
    records.add(trial(gemm(2, 8), size), took(100 - size), measured_with("key"));
  }
  records.add(trial(gemm(1, 8), 8), {.time_us = {}, .failure = "spills"}, measured_with("key"));
  store.add(
      {.problem = {{"graph", "ab"}}, .config = {{"what", "plan"}}, .result = {{"time_us", 1}}});
  std::vector<double> times;
  for (const TuningRecord& record : stof::tune::fastest(store.all(), 2)) {
    times.push_back(record.result["time_us"]);
  }
  CHECK(times == std::vector<double>{16, 32, 36, 68});
}

TEST_CASE("records ship, and each is one of a kernel on a GPU that the library knows") {
  const std::vector<TuningRecord> shipped = stof::tune::shipped_records();
  CHECK_FALSE(shipped.empty());
  for (const TuningRecord& record : shipped) {
    CHECK(stof::tune::setting_from_json(record.config).has_value());
    CHECK(record.result["time_us"] > 0);
    CHECK_NOTHROW(stof::base::shipped_profile(record.problem["device"].get<std::string>()));
  }
}
