#include "engine/rewrites.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "base/files.hpp"
#include "cache/entry.hpp"
#include "engine/tuner.hpp"
#include "fusion/lowering_testing.hpp"
#include "graph/canonical.hpp"
#include "models/bert.hpp"
#include "render/template_store.hpp"
#include "stof/stof.hpp"
#include "temporary_folder.hpp"

namespace {

using stof::NormDeferral;
using stof::base::Digest;
using stof::engine::Rewrites;
using stof::engine::rewrites_key;
using stof::kernel::Key;

const stof::base::DeviceProfile& h200() {
  return stof::base::shipped_profile("h200");
}

stof::graph::Ir bert(std::int64_t sequence) {
  return stof::graph::normalise_but_attention(
      models::bert({.num_hidden_layers = 1}, {.sequence = sequence}).ir());
}

stof::Graph small_bert() {
  return models::bert({.hidden_size = 128,
                       .num_hidden_layers = 1,
                       .num_attention_heads = 2,
                       .intermediate_size = 256},
                      {.sequence = 64});
}

// Of a build; `tuning` gets what it tells of tuning.
std::string explain(const std::filesystem::path& cache, NormDeferral deferral,
                    const stof::Graph& graph = small_bert(),
                    std::vector<std::string>* tuning = nullptr) {
  stof::EngineOptions options;
  options.target = "sm_90a";
  options.device_profile = "h200";
  options.cache_dir = cache;
  options.norm_deferral = deferral;
  options.on_event = [&](const stof::Event& event) {
    if (tuning != nullptr && event.stage == "tune") {
      tuning->push_back(event.detail);
    }
  };
  return stof::Engine(options).build(graph).explain();
}

std::vector<std::filesystem::path> plans_in(const std::filesystem::path& cache) {
  std::vector<std::filesystem::path> plans;
  for (const auto& file : std::filesystem::recursive_directory_iterator(cache)) {
    if (file.path().string().find("/plans/") != std::string::npos && file.is_regular_file()) {
      plans.push_back(file.path());
    }
  }
  return plans;
}

stof::cache::Entry read_entry(const std::filesystem::path& path) {
  return std::get<stof::cache::Entry>(
      stof::cache::Entry::parse(stof::base::read_file(path, std::size_t{1} << 20)));
}

}  // namespace

TEST_CASE("what was chosen comes back from the cache, and only for what it was chosen for") {
  stof::cache::Cache cache({.directory = {}, .lock_folder = {}, .packs = {}, .on_warning = {}});
  const Key key = rewrites_key(bert(128), h200(), Digest{1, 2}, NormDeferral::IfFaster);
  CHECK_FALSE(stof::engine::find_rewrites(cache, key).has_value());
  const Rewrites chosen{.joined = {"a kind", "another"},
                        .deferred = {"a norm"},
                        .rotated = {"heads"},
                        .scheme = stof::fusion::Scheme::from_text("0011 01")};
  stof::engine::add_rewrites(cache, key, chosen);
  CHECK(stof::engine::find_rewrites(cache, key) == chosen);

  CHECK(rewrites_key(bert(128), h200(), Digest{1, 2}, NormDeferral::IfFaster) == key);
  CHECK_FALSE(rewrites_key(bert(256), h200(), Digest{1, 2}, NormDeferral::IfFaster) == key);
  CHECK_FALSE(rewrites_key(bert(128), h200(), Digest{1, 3}, NormDeferral::IfFaster) == key);
  CHECK_FALSE(rewrites_key(bert(128), h200(), Digest{1, 2}, NormDeferral::Never) == key);
  stof::base::DeviceProfile calibrated = h200();
  calibrated.kernel_step_us *= 1.01;
  CHECK_FALSE(rewrites_key(bert(128), calibrated, Digest{1, 2}, NormDeferral::IfFaster) == key);
}

TEST_CASE("graphs that were built in another order are known apart") {
  const auto two_products = [](bool first_first) {
    stof::Graph graph("products");
    const auto x = graph.input("x", {8, 64}, stof::DType::Float16);
    const auto a = graph.weight("a", {64, 64}, stof::DType::Float16);
    const auto b = graph.weight("b", {64, 128}, stof::DType::Float16);
    std::optional<stof::Tensor> first;
    std::optional<stof::Tensor> second;
    if (first_first) {
      first = graph.matmul(x, a);
    }
    second = graph.matmul(x, b);
    if (!first) {
      first = graph.matmul(x, a);
    }
    graph.output("first", *first);
    graph.output("second", *second);
    return stof::graph::normalise_but_attention(graph.ir());
  };
  const auto key_of = [](const stof::graph::Ir& ir) {
    return rewrites_key(ir, h200(), Digest{1, 2}, NormDeferral::Never);
  };
  const stof::graph::Ir one = two_products(true);
  const stof::graph::Ir other = two_products(false);
  CHECK(stof::graph::canonicalise(one).digest == stof::graph::canonicalise(other).digest);
  CHECK_FALSE(key_of(one) == key_of(other));
  CHECK(key_of(one) == key_of(two_products(true)));
}

TEST_CASE("a plan that reads otherwise is none") {
  stof::cache::Cache cache({.directory = {}, .lock_folder = {}, .packs = {}, .on_warning = {}});
  for (const char* const payload :
       {"", "[]", R"({"joined": 1, "deferred": [], "rotated": []})",
        R"({"joined": [], "deferred": []})",
        R"({"joined": [], "deferred": [], "rotated": [], "scheme": "012"})"}) {
    const Key key(payload);
    cache.add({stof::cache::EntryKind::Plan, key, {.payload = payload}});
    CHECK_FALSE(stof::engine::find_rewrites(cache, key).has_value());
  }
}

TEST_CASE("a build that finds what was chosen makes the plan that the first one made") {
  for (const NormDeferral deferral : {NormDeferral::Never, NormDeferral::IfFaster}) {
    const stof::test::TemporaryFolder folder;
    const std::string first = explain(folder / "cache", deferral);
    CHECK(plans_in(folder / "cache").size() == 1);
    CHECK(explain(folder / "cache", deferral) == first);
    CHECK(plans_in(folder / "cache").size() == 1);
  }
}

TEST_CASE(
    "a plan whose scheme is not there, since tuning chose one, or does not run gets another") {
  const stof::test::TemporaryFolder folder;
  const std::string first = explain(folder / "cache", NormDeferral::Never);
  const std::filesystem::path plan = plans_in(folder / "cache").at(0);
  const stof::cache::Entry whole = read_entry(plan);
  const auto builds_anew = [&](const nlohmann::json& payload) {
    const stof::cache::Entry other(stof::cache::EntryKind::Plan,
                                   Key(std::string(whole.key_material())),
                                   {.payload = payload.dump()});
    stof::base::write_file_atomically(plan, other.bytes());
    std::vector<std::string> tuning;
    CHECK(explain(folder / "cache", NormDeferral::Never, small_bert(), &tuning) == first);
    CHECK(read_entry(plan).payload() == whole.payload());
    return tuning;
  };
  auto payload = nlohmann::json::parse(whole.payload());
  payload.erase("scheme");
  CHECK(builds_anew(payload).empty());
  payload["scheme"] = "01";
  const std::vector<std::string> tuning = builds_anew(payload);
  REQUIRE(tuning.size() == 1);
  CHECK(tuning[0].starts_with("what is remembered does not run: scheme: 1 has 2 digits, "));
}

TEST_CASE("what tuning found and does not run gives way to what the model chooses") {
  stof::Graph graph("norm");
  const auto x = graph.input("x", {64, 256}, stof::DType::Float16);
  graph.output("y", graph.rms_norm(x, graph.weight("gain", {256}, stof::DType::Float16)));
  const auto tuned_with = [&](const std::string& scheme) -> stof::cache::TuningRecord {
    const stof::graph::Ir ir = stof::graph::normalise_but_attention(graph.ir());
    const Digest templates = stof::render::TemplateStore::open({}).digest();
    return {.problem = stof::engine::tuned_key(ir, h200(), templates),
            .config = stof::engine::tuned_config(),
            .result = {{"level", 2},
                       {"scheme", scheme},
                       {"segments", nlohmann::json::array()},
                       {"ended", "done"},
                       {"timed", 1},
                       {"recalled", 0},
                       {"failed", 0},
                       {"seconds", 1.5}}};
  };
  const stof::test::TemporaryFolder folder;
  const auto build_with = [&](const std::string& scheme, std::vector<std::string>& tuning) {
    stof::cache::Cache cache(
        {.directory = folder / "cache", .lock_folder = {}, .packs = {}, .on_warning = {}});
    cache.tuning().add(tuned_with(scheme));
    return explain(folder / "cache", NormDeferral::Never, graph, &tuning);
  };
  const std::string plain = explain(folder / "plain", NormDeferral::Never, graph);
  for (const char* const plan : {"not remembered", "remembered"}) {  // that the model chose
    CAPTURE(plan);
    std::vector<std::string> tuning;
    CHECK(build_with("01", tuning) == plain);
    CHECK(tuning == std::vector<std::string>{"what is remembered does not run: scheme: 1 has 2 "
                                             "digits, the graph norm has 1 operators"});
    CHECK(plans_in(folder / "cache").size() == 1);
  }
  std::vector<std::string> tuning;
  CHECK(build_with("0", tuning) != plain);  // it says that it is tuned
  CHECK(tuning.empty());
}
