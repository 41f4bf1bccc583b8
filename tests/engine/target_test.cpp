// Builds for a GPU that is not there: all stages but those that run.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "stof/stof.hpp"
#include "temporary_folder.hpp"

namespace {

using stof::DType;
using stof::Engine;
using stof::EngineOptions;
using stof::test::TemporaryFolder;

// A normalisation over rows whose number is not known.
stof::Graph norm() {
  stof::Graph graph("norm");
  const auto x = graph.input("x", {graph.dim("rows", 1, 500), 256}, DType::Float16);
  graph.output("y", graph.rms_norm(x, graph.weight("gain", {256}, DType::Float16)));
  return graph;
}

bool is_nvrtc_loaded() {
  std::ifstream maps("/proc/self/maps");
  const std::string text{std::istreambuf_iterator<char>(maps), {}};
  return text.find("libnvrtc") != std::string::npos;
}

// An engine for a target, and the stages that it went through.
struct Builder {
  explicit Builder(const TemporaryFolder& folder, EngineOptions options = {})
      : engine(with_events(folder, std::move(options))) {}

  EngineOptions with_events(const TemporaryFolder& folder, EngineOptions options) {
    options.target = "sm_90a";
    options.device_profile = "h200";
    options.cache_dir = folder / "cache";
    options.on_event = [this](const stof::Event& event) { stages.push_back(event.stage); };
    return options;
  }

  bool has(const std::string& stage) const { return std::ranges::count(stages, stage) > 0; }

  std::vector<std::string> stages;
  Engine engine;
};

}  // namespace

// First in this file: NVRTC stays in the process once it is there.
TEST_CASE("what is in no cache and may not be compiled is an error, without a compiler") {
  const TemporaryFolder folder;
  const Builder builder(folder, {.jit = stof::JitMode::Off});
  CHECK_THROWS_AS(builder.engine.build(norm()), stof::CacheError);
  CHECK_FALSE(is_nvrtc_loaded());
}

TEST_CASE("a mask that arrives at run time is planned without a GPU") {
  const TemporaryFolder folder;
  const Builder builder(folder);
  const auto plan_of = [&](std::int64_t max_part_tiles) {
    stof::Graph graph("run_time");
    const auto q = graph.input("q", {1, 16, 2000, 64}, DType::Float16);
    const auto mask = graph.mask_input(
        "m", {1, 1, 2000, 2000},
        {.form = stof::MaskForm::Dense, .max_part_tiles = max_part_tiles, .like = stof::causal()});
    graph.output("y", graph.attention(q, q, q, {.mask_input = mask}));
    return builder.engine.build(graph);
  };
  const stof::Plan bounded = plan_of(16);
  const stof::Plan plan = plan_of(0);
  CAPTURE(bounded.explain());
  CHECK(bounded.explain().find("layout of 'm': built on each run ahead of attention_2, at most 16 "
                               "part tiles, ") != std::string::npos);
  CHECK(plan.explain().find("any number of part tiles") != std::string::npos);
  CHECK(bounded.workspace_bytes() > 0);
  CHECK(bounded.workspace_bytes() < plan.workspace_bytes());
}

TEST_CASE("norms behind the products that read them are named, and come where they are asked for") {
  stof::Graph graph("normed");
  const auto x = graph.input("x", {64, 256}, DType::Float16);
  const auto normed = graph.rms_norm(x, graph.weight("gain", {256}, DType::Float16));
  graph.output("y", graph.linear(normed, graph.weight("w", {512, 256}, DType::Float16)));
  const TemporaryFolder folder;
  const std::string before = Builder(folder).engine.build(graph).explain();
  CHECK(before.find("norms behind") == std::string::npos);
  CHECK(before.find("norm/rms_norm.jinja") != std::string::npos);
  const Builder builder(folder, {.norm_deferral = stof::NormDeferral::Always});
  const std::string text = builder.engine.build(graph).explain();
  CAPTURE(text);
  CHECK(text.find("\nnorms behind the products that read them: rms_norm_2\n") != std::string::npos);
  CHECK(text.find("matmul/gemm_moments.jinja") != std::string::npos);
  CHECK(text.find("norm/") == std::string::npos);
}

TEST_CASE("a build fills a cache, and the next one compiles nothing") {
  const TemporaryFolder folder;
  const Builder first(folder);
  const stof::Plan plan = first.engine.build(norm());
  CHECK(first.has("lower"));
  CHECK(first.has("compiled"));
  const std::string text = plan.explain();
  CAPTURE(text);
  CHECK(text.starts_with("gpu backend, NVIDIA H200 as sm_90a\n1 launch of 1 kernel, "));
  CHECK(text.find("rows = 500\n") != std::string::npos);
  CHECK(text.find("spills 0 bytes") != std::string::npos);
  CHECK(text.find("\nfusion scheme 0: 1 segment of 1 operator\n") != std::string::npos);
  CHECK(text.find("\n  predicted rms_norm, ") != std::string::npos);
  CHECK(plan.workspace_bytes({{"rows", 20}}) >= 0);

  const Builder second(folder, {.jit = stof::JitMode::Off});
  CHECK(second.engine.build(norm()).explain() == text);
  CHECK(second.has("cache"));
  CHECK_FALSE(second.has("compile"));
}

TEST_CASE("what is in a pack is neither compiled nor written") {
  const TemporaryFolder folder;
  const TemporaryFolder application;
  const std::string text = Builder(application).engine.build(norm()).explain();
  const std::filesystem::path pack = application / "cache";
  const std::filesystem::path empty = folder / "empty";
  std::filesystem::create_directories(empty / "v1");
  const Builder builder(folder, {.packs = {empty, pack}, .jit = stof::JitMode::Off});
  CHECK(builder.engine.build(norm()).explain() == text);
  CHECK(builder.has("cache"));
  CHECK_FALSE(builder.has("compile"));
  CHECK(std::filesystem::is_empty(empty / "v1"));

  CHECK_THROWS_AS(
      Builder(folder, {.packs = {empty}, .jit = stof::JitMode::Off}).engine.build(norm()),
      stof::CacheError);
  try {
    const Builder none(folder, {.packs = {folder / "none"}});
    FAIL("no error");
  } catch (const stof::GraphError& error) {
    CHECK(std::string(error.what()).find("none has no folder v1, which") != std::string::npos);
  }
}

TEST_CASE("a read-only cache is used and not written") {
  const TemporaryFolder folder;
  const Builder builder(folder, {.jit = stof::JitMode::ReadOnly});
  builder.engine.build(norm());
  CHECK(builder.has("compiled"));
  CHECK_FALSE(std::filesystem::exists(folder / "cache"));
}

TEST_CASE("a plan for a target cannot be bound") {
  const TemporaryFolder folder;
  const Builder builder(folder);
  const stof::Plan plan = builder.engine.build(norm());
  try {
    builder.engine.load_weights(
        plan,
        std::vector<stof::NamedTensor>{{"gain", stof::HostTensor(DType::Float16, {256}).view()}});
    FAIL("no error");
  } catch (const stof::GraphError& error) {
    CHECK(
        std::string(error.what()).starts_with("load_weights: the engine builds for target sm_90a"));
  }
  try {
    builder.engine.random_weights(plan);
    FAIL("no error");
  } catch (const stof::GraphError& error) {
    CHECK(std::string(error.what())
              .starts_with("random_weights: the engine builds for target sm_90a"));
  }
  const stof::Engine reference({.backend = stof::Backend::Reference});
  try {
    plan.bind(reference.random_weights(reference.build(norm())), {});
    FAIL("no error");
  } catch (const stof::GraphError& error) {
    CHECK(std::string(error.what()).starts_with("bind: the engine builds for target sm_90a"));
  }
}
