// What the model chooses in layers of the zoo, beside what it could choose. Usage:
//   bench.choice FOLDER CELL…            times settings of each kind of segment that the model
//                                        proposes on this GPU, and writes FOLDER/choice.jsonl
//   bench.choice --compile FOLDER CELL…  compiles the kernels of that for an H200, with no GPU
//   bench.choice --replay FILE CELL…     what the model says of such a choice.jsonl now, with no
//   GPU
// of cells MODEL:BATCH:SEQUENCE:LAYERS of the zoo. The first and the last one print what is chosen
// and what is the fastest of each kind of segment.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/gpu_layouts.hpp"
#include "engine/trial_runner.hpp"
#include "engine/tuning_space.hpp"
#include "fusion/joined_products.hpp"
#include "fusion/rotated_products.hpp"
#include "graph/normalise.hpp"
#include "mask/layout.hpp"
#include "models/zoo.hpp"
#include "render/template_store.hpp"
#include "search_cells.hpp"
#include "workshop.hpp"

namespace {

namespace bench = stof::bench;
namespace fusion = stof::fusion;
namespace tune = stof::tune;
using nlohmann::json;
using stof::engine::TuningSpace;
using stof::graph::Ir;

constexpr int kDevice = 0;
constexpr double kHopeless = 2.5;  // times what the model's choice should take

bench::SearchCell cell_of(const std::string& name) {
  std::istringstream stream(name);
  std::string model;
  std::getline(stream, model, ':');
  char colon = 0;
  bench::SearchCell cell;
  stream >> cell.batch >> colon >> cell.sequence >> colon >> cell.layers;
  const auto known = std::ranges::find(models::kNames, model);
  if (known == std::end(models::kNames) || !stream) {
    throw std::invalid_argument(
        fmt::format("'{}' is no MODEL:BATCH:SEQUENCE:LAYERS of the zoo", name));
  }
  cell.model = *known;
  return cell;
}

Ir prepared(const bench::SearchCell& cell, const fusion::TemplateLibrary& templates,
            const stof::base::DeviceProfile& profile, const fusion::BuildLayout& build_layout) {
  fusion::JoinedProducts joined = fusion::join_products_if_faster(
      stof::graph::normalise_but_attention(graph_of(cell).ir()), templates, profile, build_layout);
  return fusion::rotate_products_if_faster({.ir = std::move(joined.ir)}, templates, profile,
                                           build_layout)
      .ir;
}

// Kinds of segments of all proposals, and how often each is in the first of them.
std::vector<tune::Part> all_parts(const tune::Space& space) {
  std::vector<tune::Part> parts;
  for (const fusion::Scheme& scheme : space.proposals) {
    for (tune::Part& part : tune::parts_of(space, scheme).value_or(std::vector<tune::Part>())) {
      if (std::ranges::find(parts, part.problem, &tune::Part::problem) == parts.end()) {
        part.count = parts.empty() || &scheme == &space.proposals.front() ? part.count : 0;
        parts.push_back(std::move(part));
      }
    }
  }
  return parts;
}

// Of each kernel those that should be the fastest, few of them that should be equally fast; of one
// of whose settings the model says nothing, all.
std::vector<tune::Setting> hopeful(TuningSpace& space, const std::string& problem) {
  constexpr std::size_t kOfKernel = 12;
  constexpr std::size_t kEqual = 2;
  constexpr std::size_t kUnknown = 48;
  std::map<std::string, std::map<double, std::vector<tune::Setting>>> by_kernel;
  const std::vector<tune::Setting>& settings = space.settings(problem);
  const double most_us = kHopeless * settings.front().predicted_us;
  for (const tune::Setting& setting : settings) {
    if (setting.predicted_us <= most_us) {
      by_kernel[setting.kernel][setting.predicted_us].push_back(setting);
    }
  }
  std::vector<tune::Setting> taken = {settings.front()};
  for (const auto& [kernel, by_time] : by_kernel) {
    const bool is_unknown = by_time.size() == 1;
    std::size_t left = is_unknown ? kUnknown : kOfKernel;
    for (const auto& [time_us, equal] : by_time) {
      const std::size_t count = std::min({left, equal.size(), is_unknown ? kUnknown : kEqual});
      taken.insert(taken.end(), equal.begin(), equal.begin() + static_cast<std::ptrdiff_t>(count));
      left -= count;
    }
  }
  const auto again = std::find(taken.begin() + 1, taken.end(), settings.front());
  if (again != taken.end()) {
    taken.erase(again);
  }
  std::stable_sort(taken.begin() + 1, taken.end(),
                   [](const auto& a, const auto& b) { return a.predicted_us < b.predicted_us; });
  return taken;
}

std::vector<tune::Trial> trials_of(TuningSpace& space, const std::vector<tune::Part>& parts) {
  std::vector<tune::Trial> trials;
  for (const tune::Part& part : parts) {
    for (tune::Setting& setting : hopeful(space, part.problem)) {
      trials.push_back({.problem = part.problem, .setting = std::move(setting)});
    }
  }
  return trials;
}

struct Timed {
  tune::Setting setting;
  double time_us = 0;
};

// By the model's order, of which the first is what it chooses.
void print_part(const tune::Part& part, const std::string& label, const std::vector<Timed>& timed,
                bool is_long) {
  if (timed.empty()) {
    return;
  }
  const auto fastest = std::ranges::min_element(timed, {}, &Timed::time_us);
  fmt::print("{} times {}\n", part.count, label);
  const auto print = [](const char* what, const Timed& one) {
    fmt::print("  {:7} {:7.2f} us, predicted {:7.2f}  {}\n", what, one.time_us,
               one.setting.predicted_us, bench::text_of(one.setting));
  };
  print("chosen", timed.front());
  print("fastest", *fastest);
  for (const Timed& one : timed) {
    if (is_long) {
      print("", one);
    }
  }
}

void print_sums(const std::vector<std::pair<tune::Part, std::vector<Timed>>>& parts) {
  double chosen_us = 0;
  double fastest_us = 0;
  for (const auto& [part, timed] : parts) {
    if (!timed.empty()) {
      chosen_us += part.count * timed.front().time_us;
      fastest_us += part.count * std::ranges::min_element(timed, {}, &Timed::time_us)->time_us;
    }
  }
  fmt::print("all of the first proposal: chosen {:.2f} us, fastest {:.2f} us, {:+.1f} %\n\n",
             chosen_us, fastest_us, 100 * (chosen_us / fastest_us - 1));
}

class Bench {
 public:
  explicit Bench(const std::filesystem::path& folder)
      : shop_(stof::cuda::read_device_profile(kDevice), folder / "cache"),
        file_(folder / "choice.jsonl") {}

  void run(const std::string& name) {
    const bench::SearchCell cell = cell_of(name);
    const Ir ir = prepared(cell, shop_.templates, shop_.profile, build_layout_);
    TuningSpace space(ir, shop_.templates, shop_.profile, build_layout_);
    const tune::Space schemes = space.space();
    const std::vector<tune::Part> parts = all_parts(schemes);
    tune::Records records(store_);
    stof::engine::TrialRunner runner(shop_.trial_tools(kDevice), space, records);
    const std::vector<tune::Trial> trials = trials_of(space, parts);
    const std::vector<tune::Outcome> outcomes = runner.measure(trials);
    std::map<std::string, std::vector<Timed>> timed;
    for (std::size_t i = 0; i < trials.size(); ++i) {
      if (outcomes[i].time_us) {
        timed[trials[i].problem].push_back({trials[i].setting, *outcomes[i].time_us});
      }
    }
    fmt::print("{}: {} settings\n", name, trials.size());
    std::vector<std::pair<tune::Part, std::vector<Timed>>> found;
    for (const tune::Part& part : parts) {
      print_part(part, space.label(part.problem), timed[part.problem], false);
      write(name, part, timed[part.problem]);
      found.emplace_back(part, timed[part.problem]);
    }
    print_sums(found);
    print_plans(runner, ir, schemes, timed);
    std::fflush(stdout);
  }

 private:
  static fusion::Decisions fastest(const tune::Space& schemes, const fusion::Scheme& scheme,
                                   const std::map<std::string, std::vector<Timed>>& timed,
                                   const std::string& but) {
    fusion::Decisions decisions{.scheme = scheme, .settings = {}, .lists_all = false};
    for (const tune::Part& part :
         tune::parts_of(schemes, scheme).value_or(std::vector<tune::Part>())) {
      const auto known = timed.find(part.problem);
      if (part.problem != but && known != timed.end() && !known->second.empty()) {
        const tune::Setting& best =
            std::ranges::min_element(known->second, {}, &Timed::time_us)->setting;
        decisions.settings.emplace(part.problem,
                                   fusion::Setting{.kernel = best.kernel, .config = best.config});
      }
    }
    return decisions;
  }

  // What the settings are worth where they run one behind the other.
  void print_plans(const stof::engine::TrialRunner& runner, const Ir& ir,
                   const tune::Space& schemes,
                   const std::map<std::string, std::vector<Timed>>& timed) const {
    const auto lower = [&](const fusion::Decisions& decisions) {
      return fusion::lower(ir, shop_.templates, shop_.profile, build_layout_, decisions);
    };
    std::vector<std::string> names = {"as the model chooses"};
    std::vector<fusion::Lowered> plans = {lower({})};
    for (const fusion::Scheme& scheme : schemes.proposals) {
      names.push_back(fmt::format("fastest of proposal {}", scheme.text()));
      plans.push_back(lower(fastest(schemes, scheme, timed, "")));
      names.emplace_back("  with the model's settings");
      plans.push_back(lower({.scheme = scheme, .settings = {}, .lists_all = false}));
    }
    const fusion::Scheme& first = schemes.proposals.front();
    for (const tune::Part& part :
         tune::parts_of(schemes, first).value_or(std::vector<tune::Part>())) {
      names.push_back(fmt::format("fastest of the first, but as chosen: {}",
                                  json::parse(part.problem).at("operators").dump().substr(0, 60)));
      plans.push_back(lower(fastest(schemes, first, timed, part.problem)));
    }
    const std::vector<double> times_us = runner.time_plans(ir, plans);
    for (std::size_t i = 0; i < times_us.size(); ++i) {
      fmt::print("  {:8.2f} us  {}\n", times_us[i], names[i]);
    }
    fmt::print("\n");
  }

  void write(const std::string& name, const tune::Part& part, const std::vector<Timed>& timed) {
    for (const Timed& one : timed) {
      file_ << json({{"case", name},
                     {"problem", json::parse(part.problem)},
                     {"kernel", one.setting.kernel},
                     {"parameters", one.setting.config},
                     {"us", one.time_us}})
                   .dump()
            << "\n";
    }
    file_.flush();
  }

  bench::Workshop shop_;
  fusion::BuildLayout build_layout_ = fusion::remembering([](const auto& mask, const auto& extent) {
    return stof::engine::build_layout(kDevice, mask, extent);
  });
  stof::cache::TuningStore store_{std::nullopt, false, {}, {}};
  std::ofstream file_;
};

// Times by problem and text of the setting.
using Times = std::map<std::pair<std::string, std::string>, double>;

Times read_times(const std::filesystem::path& path) {
  std::ifstream file(path);
  Times times;
  for (std::string line; std::getline(file, line);) {
    const json row = json::parse(line);
    const tune::Setting setting{.kernel = row.at("kernel"), .config = row.at("parameters")};
    times[{fusion::problem_key(row.at("problem")), bench::text_of(setting)}] = row.at("us");
  }
  return times;
}

// A layer on an H200 that is not there.
struct HostLab {
  explicit HostLab(const std::string& name)
      : templates(fusion::read_templates(stof::render::TemplateStore::open({}).texts())),
        ir(prepared(cell_of(name), templates, profile, build_layout)),
        space(ir, templates, profile, build_layout) {}

  const stof::base::DeviceProfile& profile = stof::base::shipped_profile("h200");
  fusion::TemplateLibrary templates;
  fusion::BuildLayout build_layout = fusion::remembering(
      [](const auto& mask, const auto& extent) { return stof::mask::build_layout(mask, extent); });
  Ir ir;
  TuningSpace space;
};

void compile(const bench::Workshop& shop, const std::string& name) {
  HostLab lab(name);
  const std::vector<tune::Trial> trials = trials_of(lab.space, all_parts(lab.space.space()));
  std::vector<stof::kernel::KernelSpec> specs;
  for (const tune::Trial& trial : trials) {
    const fusion::Lowered lowered = lab.space.lower(trial);
    specs.insert(specs.end(), lowered.specs.begin(), lowered.specs.end());
  }
  fmt::print("{}: {} settings, {} kernels\n", name, trials.size(), specs.size());
  std::fflush(stdout);
  shop.template_jit.try_each(specs, stof::base::parse_gpu_target(lab.profile.target));
}

void replay(const Times& times, const std::string& name) {
  HostLab lab(name);
  fmt::print("{}\n", name);
  std::vector<std::pair<tune::Part, std::vector<Timed>>> found;
  for (const tune::Part& part : all_parts(lab.space.space())) {
    std::vector<Timed> timed;
    for (const tune::Setting& setting : lab.space.settings(part.problem)) {
      const auto known = times.find({part.problem, bench::text_of(setting)});
      if (known != times.end()) {
        timed.push_back({setting, known->second});
      }
    }
    print_part(part, lab.space.label(part.problem), timed, true);
    found.emplace_back(part, std::move(timed));
  }
  print_sums(found);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    const bool is_host = !arguments.empty() && arguments[0].starts_with("--");
    const std::size_t first = is_host ? 2 : 1;
    if (arguments.size() <= first) {
      throw std::invalid_argument("usage: bench.choice [--compile | --replay] PATH CELL…");
    }
    const std::span cells = std::span(arguments).subspan(first);
    if (arguments[0] == "--replay") {
      const Times times = read_times(arguments[1]);
      std::ranges::for_each(cells, [&](const std::string& name) { replay(times, name); });
    } else if (arguments[0] == "--compile") {
      const bench::Workshop shop(stof::base::shipped_profile("h200"),
                                 std::filesystem::path(arguments[1]) / "cache");
      std::ranges::for_each(cells, [&](const std::string& name) { compile(shop, name); });
    } else {
      Bench bench(arguments[0]);
      std::ranges::for_each(cells, [&](const std::string& name) { bench.run(name); });
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench.choice: %s\n", error.what());
    return 1;
  }
}
