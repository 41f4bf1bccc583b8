#include "engine/trial_runner.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "base/gpu_target.hpp"
#include "base/hash.hpp"
#include "cuda/device.hpp"
#include "execute/device_program.hpp"
#include "stof/error.hpp"
#include "tune/trials.hpp"
#include "validate/tensor_contents.hpp"

namespace stof::engine {

using execute::DeviceProgram;
using execute::Replay;
using execute::TensorCopies;
using tune::Outcome;
using tune::Trial;

namespace {

constexpr double kReplayUs = 300;  // long beside the time that an event takes
constexpr int kMostRuns = 96;      // of a replay
constexpr double kLongUs = 3000;   // one run, a few times, says what it takes

std::string kernel_key_of(const std::vector<base::Digest>& digests) {
  std::string text;
  for (const base::Digest& digest : digests) {
    text += digest.hex();
  }
  return base::hash(text).hex();
}

std::string message_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const CacheError&) {
    throw;  // of every trial, so not of this one
  } catch (const CancelledError&) {
    throw;
  } catch (const Error& failure) {
    return failure.what();
  }
}

std::string now() {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::chrono::system_clock::now()));
}

std::size_t bytes_of(const graph::Value& value) {
  std::int64_t count = size_bytes(value.dtype);
  for (const std::int64_t extent : value.shape.sizes({})) {
    count *= extent;
  }
  return static_cast<std::size_t>(count);
}

std::shared_ptr<const DeviceProgram> load_program(int device, const kernel::Program& program,
                                                  std::span<const jit::Kernel> kernels) {
  std::vector<std::span<const std::byte>> cubins;
  for (const jit::Kernel& kernel : kernels) {
    cubins.emplace_back(kernel.compiled.cubin);
  }
  return std::make_shared<const DeviceProgram>(device, program, cubins);
}

// The first one is also the canary: it has a turn more in each round. Before the race all run for a
// while, since a GPU that the compiler kept waiting has slowed its clock down.
tune::RaceResult race_replays(const std::vector<const Replay*>& replays,
                              const tune::RaceOptions& options) {
  if (!replays.empty()) {
    constexpr int kWarmUps = 3;
    execute::time_in_turn(replays, kWarmUps);
  }
  const auto time_round = [&](std::span<const int> racing, int samples) {
    std::vector<const Replay*> turn;
    for (const int place : racing) {
      turn.push_back(replays[static_cast<std::size_t>(place)]);
    }
    turn.push_back(replays.front());
    tune::Round round{.times_us = execute::time_in_turn(turn, samples), .canary_us = {}};
    round.canary_us = std::move(round.times_us.back());
    round.times_us.pop_back();
    return round;
  };
  return tune::race(static_cast<int>(replays.size()), time_round, options);
}

// For replays of that length.
tune::RaceOptions race_options(double replay_us) {
  tune::RaceOptions options;
  if (replay_us > kLongUs) {
    options.first_samples = 3;
    options.rounds = 3;
  }
  return options;
}

double predicted_us(const fusion::Lowered& plan) {
  double time_us = 0;
  for (const std::vector<fusion::Option>& options : plan.options) {
    time_us += options.empty() ? 0 : options.front().time.total_us();
  }
  return time_us;
}

std::string to_text(const tune::Setting& setting) {
  std::string text = setting.kernel;
  for (const auto& [name, value] : setting.config) {
    text += fmt::format(" {}={}", name, value);
  }
  return text;
}

std::vector<double> to_doubles(const HostTensor& tensor) {
  std::vector<double> values(static_cast<std::size_t>(tensor.element_count()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = tensor.at(static_cast<std::int64_t>(i));
  }
  return values;
}

std::vector<double> read_rows(const TensorCopies& copies, int output, const ExpectedRows& rows) {
  HostTensor tensor(rows.dtype, {std::ssize(rows.rows), rows.row_elements});
  const auto row_bytes = static_cast<std::size_t>(rows.row_elements * size_bytes(rows.dtype));
  for (std::size_t i = 0; i < rows.rows.size(); ++i) {
    copies.read_output(output, static_cast<std::size_t>(rows.rows[i]) * row_bytes,
                       tensor.bytes().subspan(i * row_bytes, row_bytes));
  }
  return to_doubles(tensor);
}

}  // namespace

struct TrialRunner::Candidate {
  const Trial* trial = nullptr;
  fusion::Lowered lowered;
  std::vector<jit::Kernel> kernels;
  std::string kernel_key;  // empty until they are compiled
  std::optional<Replay> replay;
  Outcome outcome;
  bool is_done = false;  // the outcome is known

  void fail(std::string reason) {
    outcome = {.time_us = {}, .failure = std::move(reason)};
    is_done = true;
  }
};

std::optional<Outcome> TrialRunner::recall(const Trial& trial) {
  std::vector<base::Digest> digests;
  try {
    const base::GpuTarget target = base::parse_gpu_target(tools_.profile->target);
    for (const kernel::KernelSpec& spec : space_.lower(trial).specs) {
      const std::optional<base::Digest> digest = tools_.jit->known(spec, target);
      if (!digest) {
        return std::nullopt;
      }
      digests.push_back(*digest);
    }
  } catch (const GraphError& refusal) {
    return Outcome{.time_us = {}, .failure = refusal.what()};
  }
  return records_.find(trial, kernel_key_of(digests));
}

std::vector<Outcome> TrialRunner::measure(std::span<const Trial> trials) {
  std::vector<Candidate> candidates(trials.size());
  for (std::size_t i = 0; i < trials.size(); ++i) {
    candidates[i].trial = &trials[i];
    try {
      candidates[i].lowered = space_.lower(trials[i]);
    } catch (const GraphError& refusal) {
      candidates[i].fail(refusal.what());
    }
  }
  try {
    compile(candidates);
  } catch (const CancelledError&) {
    return {};
  }
  std::vector<std::pair<std::string, std::vector<Candidate*>>> by_problem;
  for (Candidate& candidate : candidates) {
    const std::string& problem = candidate.trial->problem;
    auto known = std::ranges::find(by_problem, problem,
                                   &std::pair<std::string, std::vector<Candidate*>>::first);
    if (known == by_problem.end()) {
      known = by_problem.insert(by_problem.end(), {problem, {}});
    }
    if (!candidate.is_done) {
      known->second.push_back(&candidate);
    }
  }
  for (auto& [problem, of_problem] : by_problem) {
    if (tools_.stop.stop_requested()) {
      break;
    }
    race(problem, of_problem);
  }
  std::vector<Outcome> outcomes;
  outcomes.reserve(candidates.size());
  for (Candidate& candidate : candidates) {
    outcomes.push_back(std::move(candidate.outcome));
  }
  return outcomes;
}

void TrialRunner::compile(std::vector<Candidate>& candidates) {
  std::vector<kernel::KernelSpec> specs;
  for (const Candidate& candidate : candidates) {
    specs.insert(specs.end(), candidate.lowered.specs.begin(), candidate.lowered.specs.end());
  }
  std::vector<jit::Outcome> kernels =
      tools_.jit->try_each(specs, base::parse_gpu_target(tools_.profile->target), tools_.stop);
  auto next = kernels.begin();
  for (Candidate& candidate : candidates) {
    std::vector<base::Digest> digests;
    for (std::size_t i = 0; i < candidate.lowered.specs.size(); ++i, ++next) {
      if (next->error) {
        candidate.fail(message_of(next->error));
        continue;
      }
      digests.push_back(next->kernel->digest);
      candidate.kernels.push_back(*std::move(next->kernel));
    }
    if (candidate.is_done) {
      continue;
    }
    candidate.kernel_key = kernel_key_of(digests);
    // Kernels that are new to this process may be ones that were timed in another.
    if (auto known = records_.find(*candidate.trial, candidate.kernel_key)) {
      candidate.outcome = *std::move(known);
      candidate.is_done = true;
    }
  }
}

const TrialRunner::Segment& TrialRunner::segment(const std::string& problem) {
  if (const auto known = segments_.find(problem); known != segments_.end()) {
    return known->second;
  }
  const graph::Ir& ir = space_.graph(problem);
  HostTensors tensors = random_tensors(ir);
  Segment& segment = segments_[problem];
  segment.tensors = std::move(tensors);
  if (tools_.has_checks) {
    segment.expectation = expect(ir, segment.tensors);
  }
  if (!segment.expectation.skipped.empty()) {
    tools_.tell(space_.label(problem), "not checked: " + segment.expectation.skipped);
  }
  segment.contents = validate::contents_of(ir, segment.tensors);
  return segment;
}

// Loads, runs once and looks at the results.
void TrialRunner::prepare(Candidate& candidate, const Segment& segment, const TensorCopies& copies,
                          int runs) const {
  try {
    candidate.replay.emplace(
        load_program(tools_.device, candidate.lowered.program, candidate.kernels), copies, runs);
  } catch (const CudaError& error) {
    candidate.fail(error.what());  // more threads or shared memory than there are
    return;
  }
  copies.spoil_outputs();
  try {
    candidate.replay->run_once();
  } catch (const CudaError& error) {  // it brought the GPU down
    throw CudaError(error.code(),
                    fmt::format("tune: '{}' by {}: {}", space_.label(candidate.trial->problem),
                                to_text(candidate.trial->setting), error.what()));
  }
  for (std::size_t i = 0; i < segment.expectation.outputs.size(); ++i) {
    const ExpectedRows& expected = segment.expectation.outputs[i];
    const auto fault = mismatch(expected, read_rows(copies, static_cast<int>(i), expected));
    if (fault) {
      candidate.fail(fmt::format("wrong numbers: output {}, {}", i, *fault));
      candidate.replay.reset();
      return;
    }
  }
}

void TrialRunner::race(const std::string& problem, std::vector<Candidate*>& candidates) {
  if (candidates.empty()) {
    return;
  }
  const Segment* data = nullptr;
  try {
    data = &segment(problem);
  } catch (const GraphError& error) {
    for (Candidate* candidate : candidates) {
      candidate->fail(error.what());
      keep(*candidate);
    }
    return;
  }
  const double predicted_us = std::max(space_.few_settings(problem).front().predicted_us, 1.0);
  const int copy_count = TensorCopies::count_for(
      data->contents, 2 * static_cast<std::size_t>(tools_.profile->l2_bytes), kMostRuns);
  const int runs = std::max(
      copy_count, std::clamp(static_cast<int>(std::ceil(kReplayUs / predicted_us)), 1, kMostRuns));
  const TensorCopies copies(tools_.device, data->contents, copy_count);
  std::vector<const Replay*> replays;
  std::vector<Candidate*> running;
  for (Candidate* candidate : candidates) {
    prepare(*candidate, *data, copies, runs);
    if (candidate->replay) {
      running.push_back(candidate);
      replays.push_back(&*candidate->replay);
    }
  }
  const tune::RaceResult result = race_replays(replays, race_options(runs * predicted_us));
  if (result.canary_spread > tune::RaceOptions().canary_spread) {
    tools_.tell(
        space_.label(problem),
        fmt::format("the GPU was busy or changed its clock: equal runs differed by {:.1f} %, "
                    "after {} repeats",
                    100 * result.canary_spread, result.repeats));
  }
  for (std::size_t i = 0; i < running.size(); ++i) {
    running[i]->outcome = {.time_us = result.times_us[i], .failure = {}};
    running[i]->is_done = true;
  }
  for (Candidate* candidate : candidates) {
    candidate->replay.reset();  // its memory is that of the copies
    keep(*candidate);
  }
}

std::vector<double> TrialRunner::time_plans(const graph::Ir& ir,
                                            std::span<const fusion::Lowered> plans,
                                            double until) const {
  std::size_t bytes = 0;
  for (const auto& value : ir.values) {
    bytes += value->role == graph::ValueRole::Result ? 0 : bytes_of(*value);
  }
  if (bytes > kMostPlanBytes) {
    return {};
  }
  HostTensors tensors;
  try {
    tensors = random_tensors(ir);
  } catch (const GraphError&) {
    return {};
  }
  double longest_us = 0;
  for (const fusion::Lowered& plan : plans) {
    longest_us = std::max(longest_us, predicted_us(plan));
  }
  const int runs = longest_us > kLongUs ? 1 : 3;
  const TensorCopies copies(tools_.device, validate::contents_of(ir, tensors), 1);
  std::vector<std::unique_ptr<Replay>> replays;
  std::vector<const Replay*> racing;
  const auto is_late = [until] { return tune::steady_seconds() >= until; };
  for (const fusion::Lowered& plan : plans) {
    if (racing.size() >= 2 && is_late()) {
      break;
    }
    const std::vector<jit::Kernel> kernels =
        tools_.jit->get_or_compile(plan.specs, base::parse_gpu_target(tools_.profile->target));
    replays.push_back(
        std::make_unique<Replay>(load_program(tools_.device, plan.program, kernels), copies, runs));
    racing.push_back(replays.back().get());
  }
  tune::RaceOptions options = race_options(longest_us);
  options.is_late = is_late;
  return race_replays(racing, options).times_us;
}

void TrialRunner::keep(const Candidate& candidate) {
  records_.add(*candidate.trial, candidate.outcome,
               {.kernel_key = candidate.kernel_key,
                .driver = cuda::version_text(cuda::driver_version()),
                .compiler = tools_.compiler,
                .when = now()});
}

}  // namespace stof::engine
