// Templates of a user's without a GPU: they are used as far as they compile.
#include <filesystem>
#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "engine/explain.hpp"
#include "trust_testing.hpp"

using namespace stof;  // NOLINT(google-build-using-namespace)
using stof::testing::TrustScene;
using stof::testing::unit_rows_graph;
using stof::testing::unit_rows_template;

namespace {

EngineOptions for_hopper() {
  return {.target = "sm_90a", .device_profile = "h200"};
}

EngineOptions with_trust(Trust trust) {
  EngineOptions options = for_hopper();
  options.trust = trust;
  return options;
}

std::string explained(const Engine& engine) {
  return engine.build(unit_rows_graph()).explain();
}

}  // namespace

TEST_CASE("trust: a template that compiles is used where there is no GPU, and checked once") {
  TrustScene scene(unit_rows_template());
  const std::string text = explained(scene.engine(for_hopper()));
  CHECK(scene.checks == 1);
  CHECK(text.find("template norm/unit_rows.jinja: it compiles, its numbers were not checked\n") !=
        std::string::npos);
  CHECK(text.find(": norm/unit_rows.jinja, grid") != std::string::npos);

  scene.engine(for_hopper());
  CHECK(scene.checks == 0);
  scene.engine(with_trust(Trust::Compiled));
  CHECK(scene.checks == 0);

  scene.write("notes.jinja", "no part of it");
  scene.engine(for_hopper());
  CHECK(scene.checks == 0);
  scene.write("norm/unit_rows.jinja", unit_rows_template() + "// changed\n");
  scene.engine(for_hopper());
  CHECK(scene.checks == 1);
}

TEST_CASE("trust: what does not compile is in quarantine, with its reason, and nobody uses it") {
  TrustScene scene(unit_rows_template("element /= length", "element /= size"));
  for (const int checks : {1, 0}) {
    const Engine engine = scene.engine(for_hopper());
    CHECK(scene.checks == checks);
    REQUIRE(scene.quarantined.size() == 1);
    CHECK(scene.quarantined[0].starts_with(
        "norm/unit_rows.jinja: compile: sm_90a, hidden 8, rows 1"));
    const Plan plan = engine.build(unit_rows_graph());
    const std::string text = plan.explain();
    CHECK(text.find("in quarantine: template norm/unit_rows.jinja: compile: ") !=
          std::string::npos);
    CHECK(text.find("identifier \"size\" is undefined") != std::string::npos);
    CHECK(text.find(": norm/unit_rows.jinja, grid") == std::string::npos);
    const auto json = nlohmann::json::parse(engine::explain_json(plan, {}));
    CHECK(json["foreign_templates"][0]["file"] == "norm/unit_rows.jinja");
    CHECK(json["foreign_templates"][0]["used"] == false);
  }
}

TEST_CASE("trust: a block that no SM takes is in quarantine") {
  TrustScene scene(unit_rows_template("\"threads\": \"max(param.threads_per_row, 128)\"",
                                      "\"threads\": \"64\""));
  scene.engine(for_hopper());
  REQUIRE(scene.quarantined.size() == 1);
  CHECK(scene.quarantined[0].find("resources: sm_90a, hidden 8, rows 1: resources.threads is 64, "
                                  "launch.block has 128") != std::string::npos);
}

TEST_CASE("trust: one with the name of a shipped template is in quarantine") {
  TrustScene scene(unit_rows_template("\"name\": \"unit_rows\"", "\"name\": \"rms_norm\""));
  const Engine engine = scene.engine(for_hopper());
  REQUIRE(scene.quarantined.size() == 1);
  CHECK(scene.quarantined[0].find("the name 'rms_norm' is that of") != std::string::npos);
  CHECK_NOTHROW(engine.build(unit_rows_graph()));
}

TEST_CASE("trust: a file that is neither a template nor part of one is in quarantine") {
  TrustScene scene(unit_rows_template());
  for (const std::string text : {"{# norm { \"contract\": 1 } #}\n", "{#\n{ \"contract\": 1 }\n}\n",
                                 "extern \"C\" __global__ void nothing() {}\n"}) {
    scene.write("norm/nothing.jinja", text);
    scene.engine(for_hopper());
    REQUIRE(scene.quarantined.size() == 1);
    CHECK(scene.quarantined[0] ==
          "norm/nothing.jinja: contract: it has no header, '{#', a JSON object and '#}', and no "
          "template includes it");
  }
  scene.write("norm/unit_rows.jinja",
              unit_rows_template() + "{% include \"norm/nothing.jinja\" %}\n");
  scene.engine(for_hopper());
  CHECK(scene.quarantined.empty());
}

TEST_CASE("trust: a shipped template is back where one that hides it is in quarantine") {
  TrustScene scene(unit_rows_template());
  const std::string shipped = "norm/rms_norm.jinja";
  const std::string text =
      base::read_file(std::string(STOF_SOURCE_DIR "/templates/") + shipped, 1 << 20);
  Graph graph("norm");
  const auto x = graph.input("x", {64, 1024}, DType::Float16);
  graph.output("y", graph.rms_norm(x, graph.weight("gain", {1024}, DType::Float16)));
  for (const std::string& hidden : {std::string(), "\n" + text}) {
    scene.write(shipped, hidden);
    const Engine engine = scene.engine(for_hopper());
    CHECK(scene.quarantined.size() == 1);
    CHECK(engine.build(graph).explain().find(": norm/rms_norm.jinja, grid") != std::string::npos);
  }
  // One with its name is none of the two.
  scene.write("a.jinja", unit_rows_template("\"name\": \"unit_rows\"", "\"name\": \"rms_norm\""));
  for (const bool is_good : {true, false}) {
    scene.write(shipped, text + (is_good ? "// mine\n" : "int mine = yours;\n"));
    const Engine engine = scene.engine(for_hopper());
    CHECK(scene.quarantined.size() == (is_good ? 1 : 2));
    const std::string plan = engine.build(graph).explain();
    CHECK(plan.find(": norm/rms_norm.jinja, grid") != std::string::npos);
    CHECK((plan.find("in quarantine: template norm/rms_norm.jinja: compile: ") !=
           std::string::npos) == !is_good);
  }
}

TEST_CASE("trust: of a copy of all templates one that fails takes none with it") {
  TrustScene scene(unit_rows_template());
  const std::filesystem::path root = STOF_SOURCE_DIR "/templates";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (entry.is_regular_file()) {
      scene.write(entry.path().lexically_relative(root).generic_string(),
                  base::read_file(entry.path(), 1 << 20));
    }
  }
  const std::string kernel = "norm/rms_norm.jinja", part = "parts/norm_body.jinja";
  const std::string kernel_text = base::read_file(root / kernel, 1 << 20);
  const std::string part_text = base::read_file(root / part, 1 << 20);
  Graph graph("norm");
  const auto x = graph.input("x", {64, 1024}, DType::Float16);
  graph.output("y", graph.rms_norm(x, graph.weight("gain", {1024}, DType::Float16)));
  const auto quarantined = [&](const std::string& of_kernel, const std::string& of_part) {
    scene.write(kernel, kernel_text + of_kernel);
    scene.write(part, part_text + of_part);
    const Engine engine = scene.engine(for_hopper());
    CHECK(engine.build(graph).explain().find(": norm/rms_norm.jinja, grid") != std::string::npos);
    std::string files;
    for (const std::string& reason : scene.quarantined) {
      files += reason.substr(0, reason.find(':')) + " ";
    }
    return files;
  };
  const std::string good = "// mine\n", bad = "int mine = yours;\n";
  CHECK(quarantined("", "").empty());
  CHECK(scene.checks == 1);  // of files that are equal to shipped ones there is nothing to check
  CHECK(quarantined(bad, "") == kernel + " ");
  CHECK(quarantined(bad, good) == kernel + " ");
  CHECK(quarantined(good, bad) == part + " ");
  CHECK(quarantined(bad, bad) == part + " " + kernel + " ");
}

TEST_CASE("trust: of two parts the one that fails gives way") {
  TrustScene scene(unit_rows_template());
  const auto text = [](const std::string& path) {
    return base::read_file(STOF_SOURCE_DIR "/templates/" + path, 1 << 20);
  };
  scene.write("device/row.cuh", text("device/row.cuh") + "// mine\n");
  scene.write("parts/norm_body.jinja", text("parts/norm_body.jinja") + "#error nothing\n");
  scene.engine(for_hopper());
  REQUIRE(scene.quarantined.size() == 1);
  CHECK(scene.quarantined[0].starts_with("parts/norm_body.jinja: norm/layer_norm.jinja"));
}

TEST_CASE("trust: files that do not parse, or cannot be read, are left out with a reason") {
  TrustScene scene(unit_rows_template());
  for (const char* const ending : {"{% if %}", "{{ \xc3\xa9 }}", "{{ dim.\xff }}"}) {
    scene.write("norm/unit_rows.jinja", unit_rows_template() + ending);
    explained(scene.engine(for_hopper()));
    REQUIRE(scene.quarantined.size() == 1);
    CHECK(scene.quarantined[0].starts_with("norm/unit_rows.jinja: render: "));
  }
  scene.write("norm/unit_rows.jinja", std::string((1 << 20) + 1, ' '));
  explained(scene.engine(for_hopper()));
  REQUIRE(scene.quarantined.size() == 1);
  CHECK(scene.quarantined[0] == "norm/unit_rows.jinja: 1048577 bytes, more than 1048576");
  scene.write("norm/unit_rows.jinja", unit_rows_template("= multiply(", "= m\xc3ltiply("));
  explained(scene.engine(for_hopper()));
  REQUIRE(scene.quarantined.size() == 1);
  CHECK(scene.quarantined[0].starts_with("norm/unit_rows.jinja: contract: "));
}

TEST_CASE("trust: a template that does not take all that it replaces leaves the rest to it") {
  TrustScene scene(
      unit_rows_template("\"version\": 1,", "\"version\": 1, \"replaces\": \"rms_norm\","));
  Graph graph("norm");
  const auto x = graph.input("x", {64, 1024}, DType::Float16);
  graph.output("y", graph.rms_norm(x, graph.weight("gain", {1024}, DType::Float16)));
  const Engine engine = scene.engine(for_hopper());
  CHECK(scene.quarantined.empty());
  CHECK(engine.build(graph).explain().find(": norm/rms_norm.jinja, grid") != std::string::npos);
  CHECK(explained(engine).find(": norm/unit_rows.jinja, grid") != std::string::npos);
}

TEST_CASE("trust: a kernel without the parameters of its hook is in quarantine") {
  TrustScene scene(unit_rows_template("\"deterministic\"",
                                      "\"hooks\": {\"epilogue\": \"y\"}, \"deterministic\""));
  explained(scene.engine(for_hopper()));
  REQUIRE(scene.quarantined.size() == 1);
  CHECK(scene.quarantined[0].find("with a tensor at the hook: ") != std::string::npos);
  CHECK(scene.quarantined[0].find("parameters, its launch passes ") != std::string::npos);
}

TEST_CASE("trust: a header that does not come first is not overlooked") {
  TrustScene scene("\n" + unit_rows_template());
  scene.write("parts/mine.jinja", "{# A part. #}\n{% macro nothing() %}{% endmacro %}\n");
  const std::string text = explained(scene.engine(for_hopper()));
  REQUIRE(scene.quarantined.size() == 1);
  CHECK(scene.quarantined[0] ==
        "norm/unit_rows.jinja: contract: something stands ahead of the header");
  CHECK(text.find("in quarantine: template norm/unit_rows.jinja") != std::string::npos);
}

TEST_CASE("trust: of two templates with one name the first is used") {
  TrustScene scene(unit_rows_template());
  scene.write("norm/unit_rows_again.jinja", unit_rows_template());
  const std::string text = explained(scene.engine(for_hopper()));
  REQUIRE(scene.quarantined.size() == 1);
  CHECK(scene.quarantined[0] ==
        "norm/unit_rows_again.jinja: its name 'unit_rows' is that of norm/unit_rows.jinja too");
  CHECK(text.find(": norm/unit_rows.jinja, grid") != std::string::npos);
}

TEST_CASE("trust: a template whose launch is out of range for a graph is not for it") {
  TrustScene scene(unit_rows_template(
      "[\"ceil_div(dim.rows * param.threads_per_row, max(param.threads_per_row, 128))\"]",
      "[\"1\", \"dim.rows\"]"));
  const Engine engine = scene.engine(for_hopper());
  REQUIRE(scene.quarantined.empty());
  for (const std::int64_t rows : {65535, 65536}) {
    const std::string text = engine.build(unit_rows_graph(rows)).explain();
    CHECK((text.find(": norm/unit_rows.jinja, grid") != std::string::npos) == (rows == 65535));
  }
}

TEST_CASE("trust: a template whose ints are out of range for a graph is not for it") {
  TrustScene scene(unit_rows_template("\"dim.rows\", \"stride.x.rows\"]",
                                      "\"dim.rows * 100000\", \"stride.x.rows\"]"));
  const Engine engine = scene.engine(for_hopper());
  REQUIRE(scene.quarantined.empty());
  for (const std::int64_t rows : {21474, 21475}) {
    const std::string text = engine.build(unit_rows_graph(rows)).explain();
    CHECK((text.find(": norm/unit_rows.jinja, grid") != std::string::npos) == (rows == 21474));
    CHECK((text.find("launch.arguments.2 is 2147500000, from -2147483648 to 2147483647") !=
           std::string::npos) == (rows == 21475));
  }
}

TEST_CASE("trust: what a template replaces is what ships, whatever hides it") {
  const std::string shipped = "norm/rms_norm.jinja";
  const std::string text =
      base::read_file(std::string(STOF_SOURCE_DIR "/templates/") + shipped, 1 << 20);
  const auto renamed = [&](const std::string& name) {
    std::string other = text;
    return other.replace(other.find("\"rms_norm\""), 10, name);
  };
  TrustScene scene(renamed("\"mine\", \"replaces\": \"rms_norm\""));
  scene.engine(for_hopper());
  CHECK(scene.quarantined.empty());
  // One that hides it and fails is gone, and what was found out of the other still holds.
  scene.write(shipped, renamed("\"other\"") + "oops\n");
  scene.engine(for_hopper());
  REQUIRE(scene.quarantined.size() == 1);
  CHECK(scene.quarantined[0].starts_with(shipped));
  // One that hides it and is good leaves nothing to replace.
  scene.write(shipped, renamed("\"other\""));
  scene.engine(for_hopper());
  REQUIRE(scene.quarantined.size() == 1);
  CHECK(scene.quarantined[0].find("it replaces 'rms_norm', and no template that ships") !=
        std::string::npos);
  // Its own name is that of the shipped one.
  TrustScene own(renamed("\"rms_norm\", \"replaces\": \"rms_norm\""));
  own.engine(for_hopper());
  CHECK(own.quarantined.empty());
}

TEST_CASE("trust: a plan says where no launch has a template of the user's") {
  TrustScene scene(unit_rows_template());
  Graph graph("relu");
  graph.output("y", graph.relu(graph.input("x", {8, 64}, DType::Float16)));
  const std::string text = scene.engine(for_hopper()).build(graph).explain();
  CHECK(text.find("its numbers were not checked; no launch has it: the graph, made of primitive "
                  "operators, has no multiply\n") != std::string::npos);
}

TEST_CASE("trust: without a GPU nothing becomes validated") {
  TrustScene scene(unit_rows_template());
  scene.engine(with_trust(Trust::Validated));
  REQUIRE(scene.quarantined.size() == 1);
  CHECK(scene.quarantined[0] ==
        "norm/unit_rows.jinja: it was never validated, and there is no GPU to do that on");
}

TEST_CASE("trust: JitMode::Off checks nothing, and takes what was checked before") {
  TrustScene scene(unit_rows_template());
  EngineOptions off = for_hopper();
  off.jit = JitMode::Off;
  scene.engine(off);
  REQUIRE(scene.quarantined.size() == 1);
  CHECK(scene.quarantined[0] ==
        "norm/unit_rows.jinja: it was never checked, and JitMode::Off compiles nothing");
  explained(scene.engine(for_hopper()));
  CHECK(explained(scene.engine(off)).find(": norm/unit_rows.jinja, grid") != std::string::npos);
  CHECK(scene.quarantined.empty());
}

TEST_CASE("trust: a shipped template with a part of a user's is checked like his own") {
  TrustScene scene(unit_rows_template());
  const std::string part = "parts/norm_body.jinja";
  const std::string text =
      base::read_file(std::string(STOF_SOURCE_DIR "/templates/") + part, 1 << 20);
  Graph graph("norm");
  const auto x = graph.input("x", {64, 1024}, DType::Float16);
  graph.output("y", graph.rms_norm(x, graph.weight("gain", {1024}, DType::Float16)));
  const auto plan = [&] { return scene.engine(for_hopper()).build(graph).explain(); };

  scene.write(part, text + "// mine\n");
  CHECK(plan().find("template norm/rms_norm.jinja: it compiles") != std::string::npos);
  CHECK(scene.checks == 3);
  CHECK(scene.quarantined.empty());

  scene.write(part, "#error nothing\n");
  const std::string restored = plan();
  CHECK(scene.checks == 2);  // that of the example does not include it
  REQUIRE(scene.quarantined.size() == 1);
  CHECK(scene.quarantined[0].starts_with(
      "parts/norm_body.jinja: norm/layer_norm.jinja includes it: "));
  CHECK(restored.find("in quarantine: template parts/norm_body.jinja: ") != std::string::npos);
  CHECK(restored.find(": norm/rms_norm.jinja, grid") != std::string::npos);
}
