#include "validate/check_template.hpp"

#include <exception>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/gpu_target.hpp"
#include "compile/check_entry.hpp"
#include "compile/compile_all.hpp"
#include "contract/contract.hpp"
#include "contract/evaluate.hpp"
#include "contract/header.hpp"
#include "fusion/template_library.hpp"
#include "graph/op_info.hpp"
#include "render/value.hpp"
#include "stof/error.hpp"
#include "validate/numeric_cases.hpp"
#include "validate/template_cases.hpp"

namespace stof::validate {

namespace {

constexpr std::string_view kCopy = "copy";  // what a pattern calls chains of elementwise operators

// Every source that is another one, with the case that it is for.
struct Sources {
  std::vector<compile::CompileTask> tasks;
  std::vector<std::string> cases;  // "sm_90a, dim …"
  std::vector<TemplateCase> uses;  // without variables
  std::vector<const base::DeviceProfile*> devices;
  std::size_t case_count = 0;
  std::vector<std::string> targets;  // that the constraints admit
};

Sources render_cases(const render::Renderer& renderer, const std::string& file,
                     const contract::TemplateContract& contract,
                     std::span<const base::DeviceProfile> devices) {
  Sources sources;
  // Of each source: its target, its text and what its launch passes.
  std::set<std::tuple<std::string, std::string, std::vector<std::int64_t>>> seen;
  for (const base::DeviceProfile& device : devices) {
    std::vector<TemplateCase> cases = template_cases(contract, device);
    sources.case_count += cases.size();
    if (!cases.empty()) {
      sources.targets.push_back(device.target);
    }
    for (TemplateCase& one : cases) {
      kernel::KernelSource source;
      try {
        source = renderer.render(file, render::from_json(one.variables));
      } catch (const TemplateError& error) {
        throw GraphError(fmt::format("{}, {}: {}", device.target, one.text, error.what()));
      }
      if (seen.emplace(device.target, source.text, one.argument_bytes).second) {
        sources.tasks.push_back(
            {.source = std::move(source), .target = base::parse_gpu_target(device.target)});
        sources.cases.push_back(fmt::format("{}, {}", device.target, one.text));
        one.variables = {};
        sources.uses.push_back(std::move(one));
        sources.devices.push_back(&device);
      }
    }
  }
  if (sources.tasks.empty()) {
    std::vector<std::string> reasons;
    for (const base::DeviceProfile& device : devices) {
      reasons.push_back(fmt::format("{}, {}", device.target, why_no_case(contract, device)));
    }
    throw GraphError(
        fmt::format("there is no case of \"tests\" to try: {}", fmt::join(reasons, "; ")));
  }
  return sources;
}

// Compiles all, and gives what the entry of each takes; the first that does not throws GraphError,
// and TemplateError where it has no such entry. Adds what is slow to the warnings.
std::vector<compile::FunctionResources> compile_sources(const CheckTools& tools,
                                                        const Sources& sources,
                                                        const std::string& file,
                                                        const contract::TemplateContract& contract,
                                                        std::vector<std::string>& warnings) {
  const auto outcomes = compile::compile_all(*tools.compiler, sources.tasks, {.stop = tools.stop});
  std::vector<compile::FunctionResources> resources;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    if (outcomes[i].error) {
      try {
        std::rethrow_exception(outcomes[i].error);
      } catch (const CompileError& error) {
        throw GraphError(fmt::format("{}: {}", sources.cases[i], error.what()));
      }
    }
    try {
      compile::check_entry(*outcomes[i].kernel, file, contract.name, sources.uses[i].argument_bytes,
                           contract::argument_texts(contract));
    } catch (const TemplateError& error) {
      throw GraphError(fmt::format("{}: {}", sources.cases[i], error.what()));
    }
    for (const std::string& fault : compile::quality_faults(*outcomes[i].kernel)) {
      warnings.push_back(fmt::format("{}: {}", sources.cases[i], fault));
    }
    resources.push_back(outcomes[i].kernel->entry(contract.name));
  }
  return resources;
}

// Registers are given to warps, 256 at a time (CUDA Programming Guide, compute capabilities).
std::int64_t registers_of_block(std::int64_t threads, std::int64_t registers) {
  constexpr std::int64_t kWarp = 32;
  constexpr std::int64_t kUnit = 256;
  const std::int64_t of_warp = (registers * kWarp + kUnit - 1) / kUnit * kUnit;
  return (threads + kWarp - 1) / kWarp * of_warp;
}

// Throws GraphError where a block cannot be launched or is not what the contract declares.
void check_resources(const compile::FunctionResources& actual, const TemplateCase& use,
                     const base::DeviceProfile& device, const std::string& text,
                     std::vector<std::string>& warnings) {
  const std::int64_t threads = use.launch.block[0] * use.launch.block[1] * use.launch.block[2];
  if (use.declared.threads != threads) {
    throw GraphError(fmt::format("{}: resources.threads is {}, launch.block has {}", text,
                                 use.declared.threads, threads));
  }
  const std::int64_t registers = registers_of_block(threads, actual.registers);
  if (registers > device.registers_per_sm) {
    throw GraphError(fmt::format("{}: {} threads of {} registers are {}, an SM has {}", text,
                                 threads, actual.registers, registers, device.registers_per_sm));
  }
  const std::int64_t shared = actual.shared_bytes + use.launch.shared_bytes;
  if (shared > device.shared_bytes_per_block) {
    throw GraphError(fmt::format("{}: shared memory is {} + {} bytes, the most is {}", text,
                                 actual.shared_bytes, use.launch.shared_bytes,
                                 device.shared_bytes_per_block));
  }
  if (actual.registers > use.declared.registers) {
    warnings.push_back(fmt::format("{}: {} registers, resources.registers is {}", text,
                                   actual.registers, use.declared.registers));
  }
}

// The templates that ship with the library and one other: what is not trusted yet has no say in
// whether it is right, nor have those of them that a user's files hide.
std::map<std::string, std::string> shipped_and(const render::TemplateStore& store,
                                               const std::string& file) {
  std::map<std::string, std::string> texts;
  for (const render::EmbeddedTemplate& one : render::embedded_templates()) {
    texts.emplace(one.path, one.text);
  }
  texts[file] = store.find(file)->text;
  return texts;
}

// An alternative may leave out the last operands of the others.
void check_operands(const contract::PatternStep& step, const contract::HeaderValue& place,
                    std::span<const graph::OpKind> kinds) {
  const std::size_t count = step.inputs.size();
  std::size_t most = 0;
  bool is_variadic = false;
  for (const graph::OpKind kind : kinds) {
    const graph::OpInfo& info = graph::op_info(kind);
    if (count < graph::at(info.min_inputs())) {
      place.fail(
          fmt::format("{} of {} operands, the least is {}", info.name, count, info.min_inputs()));
    }
    if (step.outputs.size() > graph::at(info.max_outputs)) {
      place.fail(fmt::format("{} with {} results, the most is {}", info.name, step.outputs.size(),
                             info.max_outputs));
    }
    most = std::max(most, info.inputs.size());
    is_variadic = is_variadic || info.is_variadic;
  }
  if (!kinds.empty() && count > most && !is_variadic) {
    place.fail(fmt::format("{} of {} operands, the most is {}", step.op, count, most));
  }
}

// Operators and attributes that there are. Throws TemplateError for others.
void check_pattern(const contract::TemplateContract& contract,
                   const contract::HeaderValue& pattern) {
  const std::vector<contract::HeaderValue> places = pattern.items();
  for (std::size_t i = 0; i < contract.pattern.size(); ++i) {
    const contract::PatternStep& step = contract.pattern[i];
    const contract::HeaderValue& place = places.at(i);
    std::vector<std::string> names = step.alternatives;
    names.insert(names.begin(), step.op);
    std::vector<graph::OpKind> kinds;
    for (const std::string& name : names) {
      const auto kind = graph::op_kind_from_name(name);
      if (!kind && name != kCopy) {
        const std::string nearest = graph::nearest_op_name(name);
        place.fail(fmt::format("there is no operator '{}'{}", name,
                               nearest.empty() ? "" : fmt::format("; did you mean {}?", nearest)));
      }
      if (kind && graph::op_info(*kind).is_composite && *kind != graph::OpKind::Attention) {
        place.fail(fmt::format(
            "{} is taken apart before templates are matched, name what it is made of", name));
      }
      if (kind) {
        kinds.push_back(*kind);
      }
      for (const contract::PatternAttribute& attribute : step.attributes) {
        const std::vector<std::string> known =
            kind ? fusion::pattern_attributes(*kind) : std::vector<std::string>();
        if (std::ranges::find(known, attribute.name) == known.end()) {
          place.fail(fmt::format("{} has no attribute '{}', {}", name, attribute.name,
                                 known.empty() ? std::string("it has none")
                                               : fmt::format("it has {}", fmt::join(known, ", "))));
        }
      }
    }
    check_operands(step, place, kinds);
  }
}

// Without a GPU to run them: that what the pattern stands for can be made of the ports, and is run
// by the template. Throws GraphError where that is so on no device.
void check_cases(const TemplateAlone& alone, std::span<const base::DeviceProfile> devices) {
  std::string fault;
  for (const base::DeviceProfile& device : devices) {
    try {
      numeric_cases(alone, device);
      return;
    } catch (const GraphError& error) {
      fault = error.what();
    }
  }
  throw GraphError(fault);
}

}  // namespace

const Rung* TemplateCheck::find(std::string_view name) const {
  const auto found = std::ranges::find(rungs, name, &Rung::name);
  return found == rungs.end() ? nullptr : &*found;
}

bool TemplateCheck::is_validated() const {
  return is_passed() && find("repeatability") != nullptr;
}

TemplateCheck check_template(const CheckTools& tools, const std::string& file) {
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
    } catch (const CompileError& error) {
      check.rungs.push_back({.name = name, .is_passed = false, .detail = error.what()});
    }
  };
  const render::Renderer& renderer = *tools.renderer;
  contract::TemplateContract contract;
  Sources sources;
  std::vector<compile::FunctionResources> resources;
  climb("contract", [&] {
    const render::TemplateFile* text = renderer.store().find(file);
    if (text == nullptr) {
      throw GraphError(fmt::format("there is no template '{}'", file));
    }
    contract = contract::parse_contract(file, text->text);
    fusion::read_templates(shipped_and(renderer.store(), file));  // its name is its own, say
    check_pattern(contract, contract::HeaderValue::read(file, text->text)["pattern"]);
    if (contract.tests.empty()) {
      throw GraphError("\"tests\" names no dims to try");
    }
    return contract.summary;
  });
  climb("render", [&] {
    sources = render_cases(renderer, file, contract, tools.devices);
    return fmt::format("{} cases for {} are {} sources", sources.case_count,
                       fmt::join(sources.targets, ", "), sources.tasks.size());
  });
  climb("compile", [&] {
    resources = compile_sources(tools, sources, file, contract, check.warnings);
    return fmt::format("{} sources, {} warnings", sources.tasks.size(), check.warnings.size());
  });
  climb("resources", [&] {
    std::int64_t most = 0;
    for (std::size_t i = 0; i < resources.size(); ++i) {
      check_resources(resources[i], sources.uses[i], *sources.devices[i], sources.cases[i],
                      check.warnings);
      most = std::max(most, resources[i].registers);
    }
    if (!tools.gpu && sources.case_count > 0) {
      check_cases(alone(fusion::read_templates(shipped_and(renderer.store(), file)), file),
                  tools.devices);
    }
    return fmt::format("{} blocks can be launched, {} registers at most", resources.size(), most);
  });
  if (!tools.gpu) {
    return check;
  }
  std::optional<NumericTrial> trial;
  NumericReport report;
  climb("numerics", [&] {
    trial.emplace(alone(fusion::read_templates(shipped_and(renderer.store(), file)), file),
                  *tools.gpu);
    report = trial->run(renderer, *tools.compiler, tools.stop);
    if (!report.wrong.empty()) {
      throw GraphError(report.wrong);
    }
    return fmt::format("{} cases with {} settings are right, in {} runs", report.cases,
                       report.kernels, report.runs);
  });
  climb("repeatability", [&] {
    if (!report.unrepeatable.empty()) {
      throw GraphError(report.unrepeatable);
    }
    return std::string(contract.is_deterministic ? "equal runs give equal bits"
                                                 : "equal runs give right numbers");
  });
  climb("race", [&] { return trial->race(renderer, *tools.compiler, tools.stop); });
  return check;
}

}  // namespace stof::validate
