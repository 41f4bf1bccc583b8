#include "validate/check_template.hpp"

#include <exception>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/gpu_target.hpp"
#include "compile/check_entry.hpp"
#include "compile/compile_all.hpp"
#include "contract/contract.hpp"
#include "graph/op_info.hpp"
#include "render/value.hpp"
#include "stof/error.hpp"
#include "validate/template_cases.hpp"

namespace stof::validate {

namespace {

constexpr std::string_view kCopy = "copy";  // what a pattern calls chains of elementwise operators

// Every source that is another one, with the case that it is for.
struct Sources {
  std::vector<compile::CompileTask> tasks;
  std::vector<std::string> cases;  // "sm_90a, dim …"
  std::size_t case_count = 0;
  std::vector<std::string> targets;  // that the constraints admit
};

Sources render_cases(const render::Renderer& renderer, const std::string& file,
                     const contract::TemplateContract& contract,
                     std::span<const base::DeviceProfile> devices) {
  Sources sources;
  std::set<std::pair<std::string, std::string>> seen;  // target, text
  for (const base::DeviceProfile& device : devices) {
    const std::vector<TemplateCase> cases = template_cases(contract, device);
    sources.case_count += cases.size();
    if (!cases.empty()) {
      sources.targets.push_back(device.target);
    }
    for (const TemplateCase& one : cases) {
      kernel::KernelSource source;
      try {
        source = renderer.render(file, render::from_json(one.variables));
      } catch (const TemplateError& error) {
        throw GraphError(fmt::format("{}, {}: {}", device.target, one.text, error.what()));
      }
      if (seen.emplace(device.target, source.text).second) {
        sources.tasks.push_back(
            {.source = std::move(source), .target = base::parse_gpu_target(device.target)});
        sources.cases.push_back(fmt::format("{}, {}", device.target, one.text));
      }
    }
  }
  if (sources.tasks.empty()) {
    throw GraphError("the constraints admit no case of \"tests\" on any target");
  }
  return sources;
}

// Compiles all; the first that does not throws GraphError, and TemplateError where it has no such
// entry. Adds what is slow to the warnings.
void compile_sources(const compile::Compiler& compiler, const Sources& sources,
                     const std::string& file, const std::string& entry, const std::stop_token& stop,
                     std::vector<std::string>& warnings) {
  const auto outcomes = compile::compile_all(compiler, sources.tasks, {.stop = stop});
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    if (outcomes[i].error) {
      try {
        std::rethrow_exception(outcomes[i].error);
      } catch (const CompileError& error) {
        throw GraphError(fmt::format("{}: {}", sources.cases[i], error.what()));
      }
    }
    compile::check_entry(*outcomes[i].kernel, file, entry);
    for (const std::string& fault : compile::quality_faults(*outcomes[i].kernel)) {
      warnings.push_back(fmt::format("{}: {}", sources.cases[i], fault));
    }
  }
}

}  // namespace

TemplateCheck check_template(const render::Renderer& renderer, const std::string& file,
                             const compile::Compiler& compiler,
                             std::span<const base::DeviceProfile> devices,
                             const std::stop_token& stop) {
  TemplateCheck check{.file = file, .rungs = {}, .warnings = {}};
  const auto climb = [&](const char* name, const auto& rung) {
    if (!check.rungs.empty() && !check.is_passed()) {
      return;
    }
    try {
      check.rungs.push_back({.name = name, .is_passed = true, .detail = rung()});
    } catch (const TemplateError& error) {
      check.rungs.push_back({.name = name, .is_passed = false, .detail = error.what()});
    } catch (const GraphError& error) {
      check.rungs.push_back({.name = name, .is_passed = false, .detail = error.what()});
    }
  };
  contract::TemplateContract contract;
  Sources sources;
  climb("contract", [&] {
    const render::TemplateFile* text = renderer.store().find(file);
    if (text == nullptr) {
      throw GraphError(fmt::format("there is no template '{}'", file));
    }
    contract = contract::parse_contract(file, text->text);
    for (const contract::PatternStep& step : contract.pattern) {
      std::vector<std::string> names = step.alternatives;
      names.insert(names.begin(), step.op);
      for (const std::string& name : names) {
        if (!graph::op_kind_from_name(name) && name != kCopy) {
          throw GraphError(fmt::format("pattern: there is no operator '{}'", name));
        }
      }
    }
    if (contract.tests.empty()) {
      throw GraphError("\"tests\" names no dims to try");
    }
    return contract.summary;
  });
  climb("render", [&] {
    sources = render_cases(renderer, file, contract, devices);
    return fmt::format("{} cases for {} are {} sources", sources.case_count,
                       fmt::join(sources.targets, ", "), sources.tasks.size());
  });
  climb("compile", [&] {
    compile_sources(compiler, sources, file, contract.name, stop, check.warnings);
    return fmt::format("{} sources, {} warnings", sources.tasks.size(), check.warnings.size());
  });
  return check;
}

}  // namespace stof::validate
