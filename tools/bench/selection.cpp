// Times row-wise and block-wise attention on this GPU, on a sample of masks and shapes, and says
// how well the model chooses between them. Usage: bench.selection SECONDS FOLDER, which writes
// selection.json and selection.md there; or bench.selection FOLDER, which needs no GPU and replays
// the choice on the selection.json that is there.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/parallel.hpp"
#include "cost/model.hpp"
#include "cuda/device.hpp"
#include "engine/gpu_layouts.hpp"
#include "engine/segment_check.hpp"
#include "execute/device_program.hpp"
#include "execute/replay.hpp"
#include "fusion/attention_use.hpp"
#include "fusion/lower.hpp"
#include "graph/normalise.hpp"
#include "mask/bits.hpp"
#include "mask/global_local.hpp"
#include "selection_record.hpp"
#include "selection_replay.hpp"
#include "selection_sample.hpp"
#include "stof/error.hpp"
#include "stof/stof.hpp"
#include "tune/race.hpp"
#include "workshop.hpp"

namespace {

using nlohmann::json;
using stof::bench::SelectionCandidate;
using stof::bench::SelectionCase;
using stof::bench::SelectionGroup;
using stof::bench::SelectionMask;
using stof::bench::SelectionShape;
namespace fusion = stof::fusion;
namespace execute = stof::execute;
namespace mask = stof::mask;

constexpr int kDevice = 0;
constexpr const char* kPacked = "attention_packed_sm90";

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

stof::Graph attention_graph(const SelectionGroup& group, const SelectionShape& shape) {
  stof::Graph graph("attention");
  const stof::Shape sizes = {shape.batch, shape.heads, group.length, shape.head_dim};
  const auto input = [&](const char* name) {
    return graph.input(name, sizes, stof::DType::Float16);
  };
  const stof::Tensor q = input("q");
  const stof::Tensor k = input("k");
  const stof::Tensor v = input("v");
  graph.output("o", graph.attention(q, k, v, {.mask = group.mask}));
  return graph;
}

// The share of tiles of 16 x 16 that have something to see, from those of 64 x 64.
double seen_of_16(const mask::MaskLayout& layout) {
  constexpr std::int64_t kParts = 4;  // of 16 to a side
  std::vector<std::int64_t> seen_in_bitmap;
  for (std::size_t n = 0; n < layout.bitmaps.size() / mask::kTileWords; ++n) {
    const auto words = layout.bitmap(static_cast<std::int64_t>(n));
    std::int64_t seen = 0;
    for (std::size_t column = 0; column < kParts; ++column) {
      for (std::size_t row = 0; row < kParts; ++row) {
        const std::size_t first = column * 16 + row * 2;
        const bool is_seen =
            (words[first] | words[first + 1] | words[first + 8] | words[first + 9]) != 0;
        seen += is_seen ? 1 : 0;
      }
    }
    seen_in_bitmap.push_back(seen);
  }
  auto seen = static_cast<std::int64_t>(layout.full.col_idx.size()) * kParts * kParts;
  for (const std::int32_t bitmap : layout.part_bitmap) {
    seen += seen_in_bitmap.at(static_cast<std::size_t>(bitmap));
  }
  const std::int64_t columns = mask::ceil_div(layout.extent.kv_len, 16);
  const std::int64_t rows = mask::ceil_div(layout.extent.q_len, 16);
  return static_cast<double>(seen) /
         static_cast<double>(layout.mask_batch * layout.mask_heads * rows * columns);
}

struct Candidate {
  SelectionCandidate record;
  fusion::Lowered lowered;
  std::vector<stof::jit::Kernel> kernels;
};

struct Case {
  stof::graph::Ir ir;
  fusion::Lowered plain;  // as the model chooses
  SelectionCase record;
  std::vector<Candidate> candidates;
};

class Bench {
 public:
  const stof::base::DeviceProfile& profile() const { return shop_.profile; }

  SelectionMask measure(const SelectionGroup& group) {
    SelectionMask record{.family = group.family,
                         .variant = group.variant,
                         .length = group.length,
                         .seen_of_16 = 0,
                         .features = {},
                         .tiles = {},
                         .packed = {},
                         .windows = {},
                         .global_tiles = 1,
                         .cases = {}};
    std::vector<std::pair<stof::Mask, mask::MaskLayout>> layouts;
    std::mutex mutex;
    const fusion::BuildLayout remembering = fusion::remembering([&](const auto& m, const auto& e) {
      layouts.emplace_back(m, stof::engine::build_layout(kDevice, m, e));
      return layouts.back().second;
    });
    const fusion::BuildLayout build_layout = [&](const auto& m, const auto& e) {
      const std::scoped_lock lock(mutex);
      return remembering(m, e);
    };
    std::vector<Case> cases;
    const std::pair<stof::Mask, mask::MaskLayout>* of_kernels = nullptr;
    for (const SelectionShape& shape : group.shapes) {
      cases.push_back(lower(group, shape, build_layout));
      // The mask itself, or what it was made to, which is as long as the kernels say.
      of_kernels = &*std::ranges::find(layouts, cases.back().record.dims.at("q_len"),
                                       [](const auto& built) { return built.second.extent.q_len; });
      record.features = mask::measure(of_kernels->first, of_kernels->second);
      add_candidates(cases.back(), record.features, build_layout);
      if (record.packed.empty() && !options_of(cases.back(), kPacked).empty()) {
        for (const std::int64_t tile_q : {64, 128}) {
          record.packed[tile_q] =
              stof::cost::tile_work(mask::packed_tiles(of_kernels->second, tile_q).lists);
        }
      }
    }
    compile(cases);
    for (Case& one : cases) {
      time(one);
      for (Candidate& candidate : one.candidates) {
        one.record.candidates.push_back(std::move(candidate.record));
      }
      record.cases.push_back(std::move(one.record));
    }
    record.seen_of_16 = seen_of_16(layouts.front().second);
    record.windows = mask::count_window_columns(of_kernels->second);
    if (const auto split = mask::global_local(of_kernels->second)) {
      record.global_tiles = split->global_tiles();
    }
    for (const std::int64_t tile_q : {64, 128, 192}) {
      record.tiles[tile_q] =
          stof::cost::tile_work(mask::attention_tiles(of_kernels->second, tile_q));
    }
    return record;
  }

 private:
  // What the model chooses from of a kernel; none where it may not choose that.
  static std::vector<fusion::Option> options_of(const Case& one, const std::string& kernel) {
    std::vector<fusion::Option> options;
    std::ranges::copy_if(one.plain.options.at(0), std::back_inserter(options),
                         [&](const fusion::Option& option) { return option.kernel == kernel; });
    return options;
  }

  // The model has one setting alone of a kernel that a rule chose, and two to choose from of
  // others.
  static bool is_in_place(const Case& one, const fusion::Setting& setting) {
    const std::vector<fusion::Option> options = options_of(one, setting.kernel);
    return options.size() == 1 ? options.front().config == setting.config : !options.empty();
  }

  // Every setting that the model knows of each template, or else those that it has for the case;
  // lists of keys only where they are not longer than anybody would want, and packed tiles where
  // the model may choose them.
  std::vector<fusion::Setting> settings(const Case& one, const mask::MaskFeatures& features) const {
    constexpr double kMostKeys = 1 << 25;
    const double keys = features.mean_keys * static_cast<double>(features.extent.q_len);
    std::vector<fusion::Setting> settings;
    const stof::cost::Model model(shop_.profile);
    for (const fusion::KernelTemplate& kernel : shop_.templates) {
      const std::string& name = kernel.contract.name;
      if (!kernel.file.starts_with("attention/") ||
          (fusion::reads_key_rows(kernel.contract) && keys > kMostKeys) ||
          (name == kPacked && options_of(one, name).empty())) {
        continue;
      }
      const stof::cost::Problem problem{.contract = &kernel.contract,
                                        .scope = &one.plain.scopes.at(0),
                                        .work = {},
                                        .epilogue = {}};
      auto configs = model.settings(problem);
      for (const fusion::Option& option : one.plain.options.at(0)) {
        if (option.kernel == name && std::ranges::find(configs, option.config) == configs.end()) {
          configs.push_back(option.config);
        }
      }
      for (auto& config : configs) {
        settings.push_back({.kernel = name, .config = std::move(config)});
      }
    }
    return settings;
  }

  Case lower(const SelectionGroup& group, const SelectionShape& shape,
             const fusion::BuildLayout& build_layout) const {
    Case one{.ir = stof::graph::normalise_but_attention(attention_graph(group, shape).ir()),
             .plain = {},
             .record = {},
             .candidates = {}};
    one.plain = fusion::lower(one.ir, shop_.templates, shop_.profile, build_layout);
    one.record.dims = one.plain.scopes.at(0).dims;
    return one;
  }

  void add_candidates(Case& one, const mask::MaskFeatures& features,
                      const fusion::BuildLayout& build_layout) const {
    const std::string problem = fusion::problem_key(one.plain.origins.at(0).problem);
    const std::vector<fusion::Setting> all = settings(one, features);
    one.candidates.resize(all.size());
    stof::base::parallel_for(std::ssize(all), [&](std::int64_t i) {
      const fusion::Setting& setting = all[static_cast<std::size_t>(i)];
      const fusion::Decisions decisions{
          .scheme = one.plain.scheme, .settings = {{problem, setting}}, .lists_all = false};
      Candidate& candidate = one.candidates[static_cast<std::size_t>(i)];
      candidate.lowered =
          fusion::lower(one.ir, shop_.templates, shop_.profile, build_layout, decisions);
      candidate.record = {.kernel = setting.kernel,
                          .config = setting.config,
                          .measured_us = {},
                          .predicted_us = candidate.lowered.options.at(0).front().time.total_us(),
                          .is_in_place = is_in_place(one, setting)};
    });
    std::erase_if(one.candidates, [](const Candidate& candidate) {
      return !candidate.lowered.origins.at(0).refusal.empty();
    });
  }

  void compile(std::vector<Case>& cases) const {
    std::vector<stof::kernel::KernelSpec> specs;
    for (const Case& one : cases) {
      for (const Candidate& candidate : one.candidates) {
        specs.insert(specs.end(), candidate.lowered.specs.begin(), candidate.lowered.specs.end());
      }
    }
    auto compiled = shop_.template_jit.get_or_compile(
        specs, stof::base::parse_gpu_target(shop_.profile.target));
    auto next = compiled.begin();
    for (Case& one : cases) {
      for (Candidate& candidate : one.candidates) {
        for (std::size_t i = 0; i < candidate.lowered.specs.size(); ++i) {
          candidate.kernels.push_back(std::move(*next++));
        }
      }
    }
  }

  // All but those that are predicted to be far slower than others.
  void time(Case& one) {
    constexpr double kFar = 8;
    constexpr double kFarUs = 1000;
    constexpr double kReplayUs = 300;
    constexpr int kMostRuns = 96;
    double least_us = one.candidates.front().record.predicted_us;
    for (const Candidate& candidate : one.candidates) {
      least_us = std::min(least_us, candidate.record.predicted_us);
    }
    const execute::TensorContents contents = contents_of(one);
    const int copy_count = execute::TensorCopies::count_for(
        contents, 2 * static_cast<std::size_t>(shop_.profile.l2_bytes), kMostRuns);
    const int runs =
        std::max(copy_count, std::clamp(static_cast<int>(kReplayUs / least_us), 1, kMostRuns));
    const execute::TensorCopies copies(kDevice, contents, copy_count);
    std::vector<std::unique_ptr<execute::Replay>> replays;
    std::vector<Candidate*> racing;
    for (Candidate& candidate : one.candidates) {
      if (candidate.record.predicted_us > std::max(kFarUs, kFar * least_us)) {
        continue;
      }
      std::vector<std::span<const std::byte>> cubins;
      for (const stof::jit::Kernel& kernel : candidate.kernels) {
        cubins.emplace_back(kernel.compiled.cubin);
      }
      replays.push_back(std::make_unique<execute::Replay>(
          std::make_shared<const execute::DeviceProgram>(
              kDevice, std::move(candidate.lowered.program), cubins),
          copies, runs));
      racing.push_back(&candidate);
    }
    const auto result =
        stof::tune::race(static_cast<int>(replays.size()),
                         [&](std::span<const int> places, int samples) {
                           std::vector<const execute::Replay*> turn;
                           for (const int place : places) {
                             turn.push_back(replays[static_cast<std::size_t>(place)].get());
                           }
                           return stof::tune::Round{
                               .times_us = execute::time_in_turn(turn, samples), .canary_us = {}};
                         },
                         {.rounds = 3});
    for (std::size_t i = 0; i < racing.size(); ++i) {
      racing[i]->record.measured_us = result.times_us[i];
    }
  }

  // Windows of one lot of random numbers.
  execute::TensorContents contents_of(const Case& one) {
    constexpr std::size_t kInputs = 3;
    constexpr std::size_t kShift = std::size_t{2} * 131071;
    const auto& dims = one.record.dims;
    const auto bytes = static_cast<std::size_t>(dims.at("batch") * dims.at("heads") *
                                                dims.at("q_len") * dims.at("head_dim") * 2);
    const std::size_t wanted = bytes + kInputs * kShift;
    if (random_.size() < wanted) {
      stof::Graph graph("numbers");
      const stof::Tensor x =
          graph.input("x", {static_cast<std::int64_t>(wanted / 2)}, stof::DType::Float16);
      graph.output("y", graph.relu(x));
      const stof::engine::HostTensors tensors = stof::engine::random_tensors(graph.ir());
      const auto numbers = tensors.at("x").bytes();
      random_.assign(numbers.begin(), numbers.end());
    }
    execute::TensorContents contents;
    for (std::size_t i = 0; i < kInputs; ++i) {
      contents.inputs.emplace_back(std::span(random_).subspan(i * kShift, bytes));
    }
    contents.output_bytes.push_back(bytes);
    return contents;
  }

  stof::bench::Workshop shop_{kDevice};
  std::vector<std::byte> random_;
};

void write(const std::filesystem::path& file, const std::string& text) {
  std::ofstream stream(file);
  stream << text;
  if (!stream.flush()) {
    throw std::runtime_error(fmt::format("cannot write {}", file.string()));
  }
}

json read(const std::filesystem::path& file) {
  std::ifstream stream(file);
  if (!stream) {
    throw std::runtime_error(fmt::format("cannot read {}", file.string()));
  }
  return json::parse(stream);
}

json measure_all(double most_seconds) {
  const double start = seconds();
  Bench bench;
  const std::vector<SelectionGroup> sample = stof::bench::selection_sample();
  std::vector<SelectionMask> masks;
  for (const SelectionGroup& group : sample) {
    if (seconds() - start > most_seconds) {
      break;
    }
    const double begin = seconds();
    masks.push_back(bench.measure(group));
    fmt::print("{:6.1f} s: {}, {}, {}: {:.2f} s\n", seconds() - start, group.family, group.variant,
               group.length, seconds() - begin);
    std::fflush(stdout);
  }
  json result = to_json(masks);
  result["device"] = bench.profile().name;
  result["driver"] = stof::cuda::version_text(stof::cuda::driver_version());
  result["seconds"] = std::round(seconds() - start);
  result["masks_of_the_sample"] = sample.size();
  return result;
}

// What the model says of what was measured.
stof::bench::SelectionReplay replay_of(const json& measured,
                                       const fusion::TemplateLibrary& templates) {
  const std::string device = measured.at("device");
  return {stof::bench::selection_from_json(measured), templates,
          stof::base::shipped_profile(device)};
}

std::string table_of(const json& result) {
  const json& summary = result.at("summary");
  std::string text = fmt::format(
      "# Choice of an attention kernel, {}\n\n{} of the {} masks of the sample, each for two "
      "shapes. Regret: how much longer than with the fastest candidate.\n\n"
      "| choice | cases | mean | 95th percentile | most |\n| --- | --- | --- | --- | --- |\n",
      result.at("device").get<std::string>(), result.at("masks").size(),
      result.at("masks_of_the_sample").get<int>());
  const auto row = [&](const std::string& name, const json& regret) {
    text += fmt::format("| {} | {} | {:.1f} % | {:.1f} % | {:.0f} % |\n", name,
                        regret.at("cases").get<int>(), 100 * regret.at("mean").get<double>(),
                        100 * regret.at("percentile_95").get<double>(),
                        100 * regret.at("most").get<double>());
  };
  const json& regrets = summary.at("regret");
  row("fastest of all", {{"cases", regrets.at("model").at("cases")},
                         {"mean", 0.0},
                         {"percentile_95", 0.0},
                         {"most", 0.0}});
  row("model, fitted to the other families", regrets.at("held_out"));
  row("model, fitted to all", regrets.at("model"));
  row("rows or blocks by the stopwatch, the setting by the model",
      regrets.at("model_of_best_kind"));
  row("the paper's rule, tau 1.2, with the fastest setting", regrets.at("paper"));
  row("always blocks, with the fastest setting", regrets.at("always_blocks"));
  row("always rows, with the fastest setting, where it was timed", regrets.at("always_rows"));
  text +=
      "\n| family, held out | cases | mean | 95th percentile | most |\n"
      "| --- | --- | --- | --- | --- |\n";
  for (const auto& [family, of] : summary.at("families").items()) {
    row(family, of.at("regret"));
  }
  text +=
      "\n| predictions of | candidates | mean error | 95th percentile |\n"
      "| --- | --- | --- | --- |\n";
  for (const auto& [kernel, error] : summary.at("error").items()) {
    text += fmt::format("| {} | {} | {:.1f} % | {:.1f} % |\n", kernel,
                        error.at("candidates").get<int>(), 100 * error.at("mean").get<double>(),
                        100 * error.at("percentile_95").get<double>());
  }
  return text;
}

void save(const json& result, const std::filesystem::path& folder) {
  write(folder / "selection.md", table_of(result));
  write(folder / "selection.json", result.dump() + "\n");
}

}  // namespace

// NOLINTNEXTLINE(bugprone-exception-escape): of memory alone, or a stdout that is closed
int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() != 2) {
    fmt::print(
        "bench.selection SECONDS FOLDER: measures for so long, and writes selection.json and "
        "selection.md\nbench.selection --replay FOLDER: writes them again, with what the "
        "model says now\nbench.selection --fit FOLDER: prints the coefficients that fit\n");
    return 2;
  }
  try {
    const std::filesystem::path folder = arguments[1];
    const fusion::TemplateLibrary templates =
        fusion::read_templates(stof::render::TemplateStore::open({}).texts());
    const bool is_measuring = !arguments[0].starts_with("--");
    json result =
        is_measuring ? measure_all(std::stod(arguments[0])) : read(folder / "selection.json");
    if (is_measuring) {
      write(folder / "selection.json", result.dump() + "\n");
    }
    const stof::bench::SelectionReplay replay = replay_of(result, templates);
    if (arguments[0] == "--fit") {
      const stof::cost::Coefficients fitted = replay.fitted({});
      fmt::print("{}\n", stof::bench::attention_coefficients(fitted).dump(2));
      const auto regret = replay.model(fitted);
      fmt::print(stderr, "regret {:.4f}, 95th percentile {:.4f}, error {:.4f}\n", regret.mean,
                 regret.percentile_95, replay.error(fitted).mean);
      return 0;
    }
    result["summary"] = replay.summary({});
    save(result, folder);
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench.selection: {}\n", error.what());
    return 1;
  }
  return 0;
}
