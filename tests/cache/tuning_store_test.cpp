#include "cache/tuning_store.hpp"

#include <fstream>
#include <set>
#include <thread>

#include <doctest/doctest.h>

#include "base/files.hpp"
#include "temporary_folder.hpp"

using nlohmann::json;
using stof::cache::TuningRecord;
using stof::cache::TuningStore;
using stof::test::TemporaryFolder;
namespace fs = std::filesystem;

namespace {

// A store, and what it warned of.
struct Store {
  explicit Store(const std::optional<fs::path>& folder, bool is_writable = true)
      : store(
            folder, is_writable, [this](const std::string& text) { warnings.push_back(text); },
            [this](const std::string& text) { warnings.push_back(text); }) {}

  std::vector<std::string> warnings;
  TuningStore store;
};

TuningRecord make(int tile, double time_us, const std::string& problem = "gemm") {
  return {.problem = {{"operators", {problem}}, {"dims", {{"m", 128}, {"n", 768}}}},
          .config = {{"tile", tile}},
          .result = {{"time_us", time_us}, {"kernel_key", "0123"}}};
}

std::set<double> times(const std::vector<TuningRecord>& records) {
  std::set<double> times;
  for (const TuningRecord& record : records) {
    times.insert(record.result["time_us"].get<double>());
  }
  return times;
}

}  // namespace

TEST_CASE("records of a problem are found, one a config, the newest of each") {
  const TemporaryFolder folder;
  Store(folder.path()).store.add(make(64, 3.5));
  Store(folder.path()).store.add(make(128, 2.5));
  Store(folder.path()).store.add(make(64, 3.25));
  Store(folder.path()).store.add(make(64, 1.0, "other"));
  Store disk(folder.path());
  const std::vector<TuningRecord> records = disk.store.find(make(0, 0).problem);
  CHECK(times(records) == std::set<double>{3.25, 2.5});
  for (const TuningRecord& record : records) {
    CHECK(record.problem == make(0, 0).problem);
    CHECK(record.result["kernel_key"] == "0123");
  }
  CHECK(disk.store.find({{"operators", {"none"}}}).empty());
  CHECK(disk.warnings.empty());
}

TEST_CASE("the order of names in a problem does not matter") {
  const TemporaryFolder folder;
  Store disk(folder.path());
  disk.store.add(make(64, 3.5));
  CHECK(disk.store.find(json::parse(R"({"dims":{"n":768,"m":128},"operators":["gemm"]})")).size() ==
        1);
}

TEST_CASE("a record is a JSON file that a person can read") {
  const TemporaryFolder folder;
  Store disk(folder.path());
  disk.store.add(make(64, 3.5));
  const json file = json::parse(stof::base::read_file(disk.store.path_of(make(64, 0)), 10000));
  CHECK(file["record"]["config"]["tile"] == 64);
  CHECK(file["record"]["result"]["time_us"] == 3.5);
  CHECK(file["record"]["problem"]["dims"]["m"] == 128);
}

TEST_CASE("every flip of a bit and every truncation is a miss, and set aside") {
  const TemporaryFolder folder;
  Store disk(folder.path());
  disk.store.add(make(64, 3.5));
  const fs::path path = disk.store.path_of(make(64, 3.5));
  const std::string good = stof::base::read_file(path, 10000);
  const auto is_miss = [&](const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
    return disk.store.find(make(64, 3.5).problem).empty() && !fs::exists(path);
  };
  for (std::size_t i = 0; i < good.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ 1 << bit);
      CAPTURE(i);
      REQUIRE(is_miss(bad));
    }
    REQUIRE(is_miss(good.substr(0, i)));
  }
  CHECK(disk.warnings.front() ==
        "cache: " + path.string() + " is not used: it is not the record of its name");
  std::ofstream(path, std::ios::binary) << good;
  CHECK(times(disk.store.find(make(64, 3.5).problem)) == std::set<double>{3.5});
}

TEST_CASE("a record under another name is a miss") {
  const TemporaryFolder folder;
  Store disk(folder.path());
  disk.store.add(make(64, 3.5));
  fs::rename(disk.store.path_of(make(64, 0)), disk.store.path_of(make(128, 0)));
  CHECK(disk.store.find(make(64, 0).problem).empty());
  CHECK(disk.warnings.size() == 1);
}

TEST_CASE("files that others are writing are left alone") {
  const TemporaryFolder folder;
  Store disk(folder.path());
  disk.store.add(make(64, 3.5));
  fs::path temporary = disk.store.path_of(make(64, 3.5));
  temporary += ".0123.tmp";
  std::ofstream(temporary) << "{";
  CHECK(disk.store.find(make(64, 0).problem).size() == 1);
  CHECK(fs::exists(temporary));
  CHECK(disk.warnings.empty());
}

TEST_CASE("without a folder records are in memory") {
  Store memory(std::nullopt);
  memory.store.add(make(64, 3.5));
  memory.store.add(make(64, 3.0));
  memory.store.add(make(32, 2.0));
  CHECK(times(memory.store.find(make(0, 0).problem)) == std::set<double>{3.0, 2.0});
  CHECK(memory.store.find(make(0, 0, "other").problem).empty());
  CHECK(memory.warnings.empty());
}

TEST_CASE("a folder that is only read gives its records, and those of this process on top") {
  const TemporaryFolder folder;
  Store(folder.path()).store.add(make(64, 3.5));
  Store(folder.path()).store.add(make(32, 1.5));
  Store disk(folder.path(), false);
  disk.store.add(make(64, 3.0));
  CHECK(times(disk.store.find(make(0, 0).problem)) == std::set<double>{3.0, 1.5});
  CHECK(times(Store(folder.path()).store.find(make(0, 0).problem)) == std::set<double>{3.5, 1.5});
}

TEST_CASE("threads that record at once lose nothing") {
  const TemporaryFolder folder;
  Store disk(folder.path());
  {
    std::vector<std::jthread> threads;
    threads.reserve(4);
    for (int thread = 0; thread < 4; ++thread) {
      threads.emplace_back([&, thread] {
        for (int i = 0; i < 20; ++i) {
          disk.store.add(make(100 * thread + i, 100 * thread + i));
        }
      });
    }
  }
  CHECK(disk.store.find(make(0, 0).problem).size() == 80);
}
