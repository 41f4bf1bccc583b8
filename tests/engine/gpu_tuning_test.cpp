// Tuning on this GPU: what is found is right, kept, and used again.
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "engine/explain.hpp"
#include "gpu_testing.hpp"
#include "models/bert.hpp"
#include "temporary_folder.hpp"

using namespace stof;  // NOLINT(google-build-using-namespace)
using stof::testing::HostTensors;
using stof::testing::Values;

namespace {

Graph small_bert() {
  return models::bert({.vocab_size = 1000,
                       .hidden_size = 256,
                       .num_hidden_layers = 2,
                       .num_attention_heads = 4,
                       .intermediate_size = 512},
                      {.batch = 1, .sequence = 100, .mask = sliding_window(8, 8)});
}

struct Counts {
  int compiled = 0;
  int tuned = 0;
};

struct Built {
  Engine engine;
  Plan plan;
  nlohmann::json tuned;
};

Built build(const std::filesystem::path& cache, Tuning tuning, Counts& counts,
            std::stop_token stop = {}) {
  EngineOptions options;
  options.cache_dir = cache;
  options.tuning = tuning;
  options.tuning_seconds = 20;
  options.tuning_stop = std::move(stop);
  options.on_event = [&](const Event& event) {
    counts.compiled += event.stage == "compiled" ? 1 : 0;
    counts.tuned += event.stage == "tune" ? 1 : 0;
  };
  Engine engine(options);
  Plan plan = engine.build(small_bert());
  nlohmann::json tuned = nlohmann::json::parse(engine::explain_json(plan, {}))["tuned"];
  return {std::move(engine), std::move(plan), std::move(tuned)};
}

HostTensors inputs_of(const Plan& plan) {
  HostTensors tensors;
  for (const TensorInfo& info : plan.weights()) {
    tensors.emplace(info.name,
                    stof::testing::random_tensor(info.shape.sizes({}), 3, info.dtype, -0.2, 0.2));
  }
  tensors.emplace("ids", stof::testing::random_integers(DType::Int32, {1, 100}, 1000));
  return tensors;
}

}  // namespace

TEST_CASE("a tuned plan gives the same numbers, and the next build times and compiles nothing") {
  const stof::test::TemporaryFolder cache;
  const stof::test::TemporaryFolder other;
  Counts untuned;
  Built plain = build(other.path(), Tuning::None, untuned);
  CHECK(plain.tuned.is_null());
  CHECK(untuned.tuned == 0);

  Counts first;
  Built tuned = build(cache.path(), Tuning::Full, first);
  CHECK(first.tuned > 0);
  CHECK(first.compiled > 20);
  CHECK(tuned.tuned["level"] == "full");
  CHECK(tuned.tuned["timed"] > 20);
  CHECK(tuned.tuned["time_us"] <= tuned.tuned["before_us"]);
  CHECK(tuned.tuned["plan_us"] <= tuned.tuned["plan_before_us"]);
  const auto& segments = tuned.tuned["segments"];
  const bool keeps_any =
      std::ranges::any_of(segments, [](const auto& segment) { return segment["kept"] == true; });
  CHECK((tuned.plan.explain().find("measured") != std::string::npos) == keeps_any);
  MESSAGE(tuned.tuned["before_us"].dump(), " us to ", tuned.tuned["time_us"].dump(), " us, ",
          tuned.tuned["timed"].dump(), " trials, ", tuned.tuned["seconds"].dump(), " s");

  HostTensors tensors = inputs_of(plain.plan);
  const auto expected = stof::testing::run_plan(plain.engine, plain.plan, tensors);
  const auto actual = stof::testing::run_plan(tuned.engine, tuned.plan, tensors);
  for (const auto& [name, values] : expected) {
    CHECK(stof::testing::relative_norm(actual.at(name), values) < 3e-3);
  }

  for (const Tuning level : {Tuning::Full, Tuning::Quick, Tuning::None}) {
    Counts again;
    const Built second = build(cache.path(), level, again);
    CHECK(again.compiled == 0);
    CHECK(again.tuned == 0);
    CHECK(second.tuned["timed"] == 0);
    CHECK(second.tuned["time_us"] == tuned.tuned["time_us"]);
  }
}

TEST_CASE("a stop keeps what was found; the next tuning goes on from there") {
  const stof::test::TemporaryFolder cache;
  std::stop_source stop;
  Counts counts;
  EngineOptions options;
  options.cache_dir = cache.path();
  options.tuning = Tuning::Full;
  options.tuning_stop = stop.get_token();
  options.on_event = [&](const Event& event) {
    counts.tuned += event.stage == "tune" ? 1 : 0;
    if (counts.tuned >= 1) {
      stop.request_stop();
    }
  };
  const Plan plan = Engine(options).build(small_bert());
  const auto tuned = nlohmann::json::parse(engine::explain_json(plan, {}))["tuned"];
  CHECK(tuned["level"] == "stopped");
  CHECK(tuned["timed"] > 0);

  Counts again;
  const Built second = build(cache.path(), Tuning::Quick, again);
  CHECK(second.tuned["level"] == "quick");
  CHECK(second.tuned["recalled"] >= tuned["timed"]);
}

TEST_CASE("a budget of seconds is kept, but for a batch of trials") {
  const stof::test::TemporaryFolder cache;
  EngineOptions options;
  options.cache_dir = cache.path();
  options.tuning = Tuning::Full;
  options.tuning_seconds = 0.01;
  const Plan plan = Engine(options).build(small_bert());
  const auto tuned = nlohmann::json::parse(engine::explain_json(plan, {}))["tuned"];
  CHECK(tuned["timed"] > 0);
  CHECK(tuned["timed"] <= 64);
}
