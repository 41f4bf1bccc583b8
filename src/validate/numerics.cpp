#include "validate/numerics.hpp"

#include <algorithm>
#include <exception>
#include <optional>
#include <span>

#include <fmt/format.h>

#include "base/gpu_target.hpp"
#include "base/parallel.hpp"
#include "compile/check_entry.hpp"
#include "compile/compile_all.hpp"
#include "execute/argument.hpp"
#include "execute/replay.hpp"
#include "render/value.hpp"
#include "stof/error.hpp"
#include "validate/poisoned_run.hpp"
#include "validate/tensor_contents.hpp"

namespace stof::validate {

using execute::DeviceProgram;

namespace {

constexpr std::size_t kBatch = 16;  // programs that are compiled at once, before any of them runs
constexpr int kRepeats = 6;         // of a run with equal inputs

std::string setting_text(const NumericCase& one, const NumericVariant& variant) {
  return variant.text.empty() ? one.text : fmt::format("{}, with {}", one.text, variant.text);
}

// All of them with the first setting; with the others normal ones, and one more kind each.
std::vector<InputKind> kinds_for(const NumericCase& one, const NumericVariant& variant) {
  const std::ptrdiff_t place = &variant - one.variants.data();
  if (one.is_heavy) {
    return {InputKind::Normal};
  }
  if (place == 0) {
    return {kInputKinds.begin(), kInputKinds.end()};
  }
  const std::size_t others = kInputKinds.size() - 1;
  return {InputKind::Normal, kInputKinds.at(1 + static_cast<std::size_t>(place) % others)};
}

// Programs on the GPU, their kernels compiled in parallel, each once.
class Loader {
 public:
  Loader(const render::Renderer& renderer, const compile::Compiler& compiler, const Gpu& gpu,
         std::stop_token stop)
      : renderer_(renderer), compiler_(compiler), gpu_(gpu), stop_(std::move(stop)) {}

  void compile(std::span<const fusion::Lowered* const> programs) {
    std::vector<std::string> keys;
    std::vector<compile::CompileTask> tasks;
    std::vector<const kernel::KernelSpec*> specs;
    std::vector<std::vector<std::int64_t>> arguments;  // their bytes
    for (const fusion::Lowered* program : programs) {
      for (std::size_t i = 0; i < program->specs.size(); ++i) {
        const kernel::KernelSpec& spec = program->specs[i];
        const std::string key = key_of(spec);
        if (!kernels_.contains(key) && std::ranges::find(keys, key) == keys.end()) {
          tasks.push_back({.source = renderer_.render(spec.file, render::from_json(spec.variables)),
                           .target = base::parse_gpu_target(gpu_.profile.target)});
          keys.push_back(key);
          specs.push_back(&spec);
          arguments.push_back(execute::argument_bytes(program->program, static_cast<int>(i)));
        }
      }
    }
    std::vector<compile::CompileOutcome> outcomes =
        compile::compile_all(compiler_, tasks, {.stop = stop_});
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      if (outcomes[i].error) {
        std::rethrow_exception(outcomes[i].error);
      }
      compile::check_entry(*outcomes[i].kernel, specs[i]->file, specs[i]->entry, arguments[i]);
      kernels_.emplace(keys[i], *std::move(outcomes[i].kernel));
    }
  }

  std::shared_ptr<const DeviceProgram> load(const fusion::Lowered& lowered) const {
    std::vector<std::span<const std::byte>> cubins;
    for (const kernel::KernelSpec& spec : lowered.specs) {
      cubins.emplace_back(kernels_.at(key_of(spec)).cubin);
    }
    return std::make_shared<const DeviceProgram>(gpu_.device, lowered.program, cubins);
  }

 private:
  static std::string key_of(const kernel::KernelSpec& spec) {
    return spec.file + spec.variables.dump();
  }

  const render::Renderer& renderer_;
  const compile::Compiler& compiler_;
  const Gpu& gpu_;
  std::stop_token stop_;
  std::map<std::string, compile::CompiledKernel> kernels_;
};

std::optional<std::string> fault_of(const PoisonedRun& run,
                                    const std::vector<ExpectedOutput>& expected) {
  for (const ExpectedOutput& output : expected) {
    if (auto fault = wrong_numbers(output, run.output(output.name))) {
      return fault;
    }
  }
  if (const auto damaged = run.damage()) {
    return fmt::format("{} is overwritten", *damaged);
  }
  return std::nullopt;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

NumericTrial::NumericTrial(TemplateAlone alone, Gpu gpu)
    : alone_(std::move(alone)), gpu_(std::move(gpu)), cases_(numeric_cases(alone_, gpu_.profile)) {}

NumericTrial::Data& NumericTrial::data(std::size_t one, InputKind kind) {
  const auto [known, is_new] = data_.try_emplace({one, kind});
  if (is_new) {
    fill(known->second, one, kind, 0);
  }
  return known->second;
}

void NumericTrial::prepare(std::span<const std::size_t> cases) {
  struct Missing {
    std::size_t one;
    InputKind kind;
    Data* data;
  };
  std::vector<Missing> missing;
  for (const std::size_t one : cases) {
    for (const InputKind kind : kInputKinds) {
      const auto [known, is_new] =
          cases_[one].is_heavy ? std::pair(data_.end(), false) : data_.try_emplace({one, kind});
      if (is_new) {
        missing.push_back({.one = one, .kind = kind, .data = &known->second});
      }
    }
  }
  base::parallel_for(
      std::ssize(missing),
      [&](std::int64_t i) {
        const Missing& one = missing[static_cast<std::size_t>(i)];
        fill(*one.data, one.one, one.kind, 1);
      },
      0);
}

void NumericTrial::fill(Data& data, std::size_t one, InputKind kind, int thread_count) const {
  data.tensors = hostile_tensors(cases_[one].ir, kind);
  data.outputs = expected_outputs(cases_[one].ir, data.tensors, alone_.kernel.contract.accumulate,
                                  thread_count);
}

NumericReport NumericTrial::run(const render::Renderer& renderer, const compile::Compiler& compiler,
                                const std::stop_token& stop) {
  struct Step {
    std::size_t one = 0;
    const NumericVariant* variant = nullptr;
  };
  std::vector<Step> steps;
  for (std::size_t i = 0; i < cases_.size(); ++i) {
    for (const NumericVariant& variant : cases_[i].variants) {
      steps.push_back({.one = i, .variant = &variant});
    }
  }
  NumericReport report;
  Loader loader(renderer, compiler, gpu_, stop);
  for (std::size_t begin = 0; begin < steps.size(); begin += kBatch) {
    const auto batch = std::span(steps).subspan(begin, std::min(kBatch, steps.size() - begin));
    std::vector<const fusion::Lowered*> programs;
    for (const Step& step : batch) {
      programs.push_back(&step.variant->lowered);
    }
    loader.compile(programs);
    std::vector<std::size_t> needed;
    for (const Step& step : batch) {
      needed.push_back(step.one);
    }
    prepare(needed);
    for (const Step& step : batch) {
      report.cases = static_cast<int>(step.one) + 1;
      ++report.kernels;
      std::shared_ptr<const DeviceProgram> program;
      try {
        program = loader.load(step.variant->lowered);
      } catch (const CudaError& error) {
        report.wrong =
            fmt::format("{}: {}", setting_text(cases_[step.one], *step.variant), error.what());
        return report;
      }
      try_variant(step.one, *step.variant, program, report);
      if (!report.wrong.empty() || !report.unrepeatable.empty()) {
        return report;
      }
    }
  }
  return report;
}

void NumericTrial::try_variant(std::size_t one, const NumericVariant& variant,
                               const std::shared_ptr<const DeviceProgram>& program,
                               NumericReport& report) {
  const std::string text = setting_text(cases_[one], variant);
  for (const InputKind kind : kinds_for(cases_[one], variant)) {
    Data& data = this->data(one, kind);
    try {
      PoisonedRun run(program, cases_[one].ir, data.tensors);
      run.run(PoisonedRun::kNan);
      ++report.runs;
      if (const auto fault = fault_of(run, data.outputs)) {
        report.wrong = fmt::format("{}, on {}: {}", text, name(kind), *fault);
      } else if (kind == InputKind::Normal && report.unrepeatable.empty()) {
        repeat(run, data, report);
      }
    } catch (const CudaError& error) {  // it cannot be launched, or reads what is nobody's
      report.wrong = fmt::format("{}, on {}: {}", text, name(kind), error.what());
    }
    if (!report.wrong.empty()) {
      return;
    }
    if (!report.unrepeatable.empty()) {
      report.unrepeatable = fmt::format("{}: {}", text, report.unrepeatable);
      return;
    }
  }
}

void NumericTrial::repeat(PoisonedRun& run, const Data& data, NumericReport& report) const {
  const auto first = run.output_bytes();
  for (int i = 0; i < kRepeats && report.unrepeatable.empty(); ++i) {
    run.run(i % 2 == 0 ? PoisonedRun::kNumber : PoisonedRun::kNan);
    ++report.runs;
    const bool is_same = run.output_bytes() == first;
    if (is_same && !run.damage()) {
      continue;
    }
    if (const auto fault = fault_of(run, data.outputs)) {
      report.unrepeatable = fmt::format("run {} of equal inputs: {}", i + 2, *fault);
    } else if (alone_.kernel.contract.is_deterministic && !is_same) {
      report.unrepeatable = fmt::format(
          "run {} of equal inputs gives other bits, and the contract says \"deterministic\"",
          i + 2);
    }
  }
}

std::string NumericTrial::race(const render::Renderer& renderer, const compile::Compiler& compiler,
                               const std::stop_token& stop) {
  const auto largest = std::ranges::max_element(cases_, {}, &NumericCase::operations);
  fusion::Lowered unfused;
  try {
    const std::size_t count = fusion::operator_order(largest->ir).size();
    const fusion::Decisions decisions{
        .scheme = fusion::Scheme::of_single_operators(count), .settings = {}, .lists_all = false};
    unfused = fusion::lower(largest->ir, alone_.others, gpu_.profile, {}, decisions);
  } catch (const GraphError& error) {
    return fmt::format("{}: there is no other way to run it", largest->text);
  }
  const fusion::Lowered& fused = largest->variants.front().lowered;
  Loader loader(renderer, compiler, gpu_, stop);
  loader.compile(std::vector<const fusion::Lowered*>{&fused, &unfused});
  const Data& data =
      this->data(static_cast<std::size_t>(largest - cases_.begin()), InputKind::Normal);
  const execute::TensorContents contents = contents_of(largest->ir, data.tensors);
  constexpr int kCopies = 8;
  constexpr int kRuns = 32;
  constexpr int kSamples = 21;
  const execute::TensorCopies copies(gpu_.device, contents, kCopies);
  const execute::Replay by_template(loader.load(fused), copies, kRuns);
  const execute::Replay by_others(loader.load(unfused), copies, kRuns);
  const auto times_us = execute::time_in_turn(
      std::vector<const execute::Replay*>{&by_template, &by_others}, kSamples);
  return fmt::format("{}: {:.1f} us, unfused {:.1f} us", largest->text, median(times_us[0]),
                     median(times_us[1]));
}

}  // namespace stof::validate
