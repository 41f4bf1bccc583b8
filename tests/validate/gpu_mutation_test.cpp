// What the numbers of the ladder are for: bugs that compile, each of them found on a GPU.
#include <map>
#include <memory>
#include <string>

#include <doctest/doctest.h>

#include "compile/nvrtc_compiler.hpp"
#include "cuda/read_device_profile.hpp"
#include "fusion/template_library.hpp"
#include "mutants.hpp"
#include "render/renderer.hpp"
#include "validate/numerics.hpp"

using namespace stof;  // NOLINT(google-build-using-namespace)
using stof::testing::Mutant;

TEST_CASE("mutants: good templates are right, and every bug is found") {
  const auto texts = stof::testing::good_templates();
  const auto library = fusion::read_templates(texts);
  const auto good =
      std::make_shared<const render::TemplateStore>(render::TemplateStore::from_texts(texts));
  const render::Renderer renderer(good);
  const compile::NvrtcCompiler compiler;
  const validate::Gpu gpu{.device = 0, .profile = cuda::read_device_profile(0)};
  std::map<std::string, validate::NumericTrial> trials;
  for (const Mutant& mutant : stof::testing::mutants()) {
    auto trial = trials.find(mutant.file);
    if (trial == trials.end()) {
      trial = trials.try_emplace(mutant.file, validate::alone(library, mutant.file), gpu).first;
      const validate::NumericReport report = trial->second.run(renderer, compiler);
      CHECK_MESSAGE(report.wrong.empty(), std::string(mutant.file), ": ", report.wrong);
      CHECK_MESSAGE(report.unrepeatable.empty(), std::string(mutant.file), ": ",
                    report.unrepeatable);
      MESSAGE(std::string(mutant.file), ": ", report.cases, " cases, ", report.kernels,
              " settings, ", report.runs, " runs");
    }
    const render::Renderer mutated(stof::testing::mutated(texts, mutant));
    const validate::NumericReport report = trial->second.run(mutated, compiler);
    const std::string bug = std::string(mutant.file) + ": " + mutant.bug;
    const bool is_found = !report.wrong.empty() || !report.unrepeatable.empty();
    CHECK_MESSAGE(is_found, bug, " passes");
    MESSAGE(bug, ": ", report.wrong, report.unrepeatable);
  }
}

TEST_CASE("race: both ways are timed") {
  const auto texts = stof::testing::good_templates();
  const render::Renderer renderer(
      std::make_shared<const render::TemplateStore>(render::TemplateStore::from_texts(texts)));
  const compile::NvrtcCompiler compiler;
  validate::NumericTrial trial(validate::alone(fusion::read_templates(texts), "gated.jinja"),
                               {.device = 0, .profile = cuda::read_device_profile(0)});
  const std::string text = trial.race(renderer, compiler);
  MESSAGE(text);
  CHECK(text.find(" us, unfused ") != std::string::npos);
}
