// The bugs of mutants.hpp are such as only numbers show: all templates with one are templates.
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/device_profile.hpp"
#include "compile/check_entry.hpp"
#include "compile/compile_all.hpp"
#include "compile/nvrtc_compiler.hpp"
#include "contract/contract.hpp"
#include "mutants.hpp"
#include "render/renderer.hpp"
#include "render/value.hpp"
#include "validate/template_cases.hpp"

using namespace stof;  // NOLINT(google-build-using-namespace)
using stof::testing::Mutant;

TEST_CASE("mutants: every one has its text once, a contract, renders and compiles") {
  const auto texts = stof::testing::good_templates();
  const base::DeviceProfile& device = base::shipped_profile("h200");
  std::vector<compile::CompileTask> tasks;
  std::vector<std::vector<std::int64_t>> arguments;
  std::set<std::string> bugs;
  for (const Mutant& mutant : stof::testing::mutants()) {
    bugs.insert(std::string(mutant.bug) + mutant.file);
    REQUIRE_MESSAGE(stof::testing::count_of(texts.at(mutant.part), mutant.from) == 1,
                    std::string(mutant.bug));
    const render::Renderer renderer(stof::testing::mutated(texts, mutant));
    const std::string& text = renderer.store().find(mutant.file)->text;
    const auto cases =
        validate::template_cases(contract::parse_contract(mutant.file, text), device);
    REQUIRE_FALSE(cases.empty());
    // The dims in the middle have every port.
    const validate::TemplateCase& one = cases[cases.size() > 1 ? 1 : 0];
    tasks.push_back({.source = renderer.render(mutant.file, render::from_json(one.variables)),
                     .target = base::parse_gpu_target(device.target)});
    arguments.push_back(one.argument_bytes);
  }
  CHECK(bugs.size() == stof::testing::mutants().size());
  CHECK(bugs.size() >= 20);
  const compile::NvrtcCompiler compiler;
  const auto outcomes = compile::compile_all(compiler, tasks);
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const Mutant& mutant = stof::testing::mutants()[i];
    REQUIRE_MESSAGE(outcomes[i].kernel.has_value(), std::string(mutant.bug));
    const std::string& text = texts.at(mutant.file);
    CHECK_NOTHROW(compile::check_entry(*outcomes[i].kernel, mutant.file,
                                       contract::parse_contract(mutant.file, text).name,
                                       arguments[i]));
  }
}
