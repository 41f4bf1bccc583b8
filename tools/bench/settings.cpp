// Times the settings that attention kernels have for cases of the bench, on this GPU. Usage:
// bench.settings WORD,… MASK:BATCH:HEADS:LENGTH:HEAD_DIM[:kvHEADS][:qLENGTH]…: those settings that
// have all the words, such as attention_packed_sm90,tile_q=64, the fastest first, beside what the
// model says of them.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cache/cache.hpp"
#include "engine/gpu_layouts.hpp"
#include "engine/trial_runner.hpp"
#include "engine/tuning_space.hpp"
#include "fusion/lower.hpp"
#include "graph/normalise.hpp"
#include "masks.hpp"
#include "stof/stof.hpp"
#include "workshop.hpp"

namespace {

namespace fusion = stof::fusion;
namespace tune = stof::tune;

constexpr int kDevice = 0;

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, at);) {
    parts.push_back(part);
  }
  return parts;
}

stof::Graph graph_of(const std::string& name) {
  const std::vector<std::string> fields = split(name, ':');
  if (fields.size() < 5) {
    throw std::invalid_argument(
        fmt::format("'{}' is no MASK:BATCH:HEADS:LENGTH:HEAD_DIM[:kvHEADS][:qLENGTH]", name));
  }
  std::vector<std::int64_t> sizes;
  for (std::size_t i = 1; i < 5; ++i) {
    sizes.push_back(std::stoll(fields[i]));
  }
  std::int64_t kv_heads = sizes[1];
  std::int64_t q_len = sizes[2];
  for (std::size_t i = 5; i < fields.size(); ++i) {
    if (fields[i].starts_with("kv")) {
      kv_heads = std::stoll(fields[i].substr(2));
    } else if (fields[i].starts_with("q")) {
      q_len = std::stoll(fields[i].substr(1));
    } else {
      throw std::invalid_argument(
          fmt::format("'{}' of '{}' is neither kvHEADS nor qLENGTH", fields[i], name));
    }
  }
  stof::Graph graph("attention");
  const auto input = [&](const char* port, std::int64_t heads, std::int64_t length) {
    return graph.input(port, {sizes[0], heads, length, sizes[3]}, stof::DType::Float16);
  };
  const stof::Tensor q = input("q", sizes[1], q_len);
  const stof::Tensor k = input("k", kv_heads, sizes[2]);
  const stof::Tensor v = input("v", kv_heads, sizes[2]);
  graph.output("o", graph.attention(q, k, v, {.mask = stof::bench::mask(fields[0], sizes[2])}));
  return graph;
}

class Bench {
 public:
  void run(const std::string& name, const std::vector<std::string>& words) {
    const stof::graph::Ir ir = stof::graph::normalise_but_attention(graph_of(name).ir());
    const fusion::BuildLayout build_layout =
        fusion::remembering([](const auto& mask, const auto& extent) {
          return stof::engine::build_layout(kDevice, mask, extent);
        });
    stof::engine::TuningSpace space(ir, shop_.templates, shop_.profile, build_layout);
    const tune::Space schemes = space.space();
    const std::string problem =
        tune::parts_of(schemes, schemes.proposals.front()).value().front().problem;
    std::vector<tune::Trial> trials;
    for (const tune::Setting& setting : space.settings(problem)) {
      const std::vector<std::string> its_words = split(stof::bench::text_of(setting), ' ');
      if (std::ranges::all_of(words, [&](const std::string& word) {
            return std::ranges::find(its_words, word) != its_words.end();
          })) {
        trials.push_back({.problem = problem, .setting = setting});
      }
    }
    stof::cache::TuningStore store(std::nullopt, false, {}, {});
    tune::Records records(store);
    stof::engine::TrialRunner runner(shop_.trial_tools(kDevice), space, records);
    const std::vector<tune::Outcome> outcomes = runner.measure(trials);
    std::vector<std::pair<double, std::string>> lines;
    for (std::size_t i = 0; i < trials.size(); ++i) {
      lines.emplace_back(outcomes[i].time_us.value_or(1e9),
                         fmt::format("{:9.2f} {:9.2f}  {} {}", outcomes[i].time_us.value_or(-1),
                                     space.predict(trials[i], shop_.profile),
                                     stof::bench::text_of(trials[i].setting), outcomes[i].failure));
    }
    std::ranges::sort(lines);
    std::puts(fmt::format("{}: measured µs, predicted µs", name).c_str());
    for (const auto& [time_us, line] : lines) {
      std::puts(line.c_str());
    }
    std::fflush(stdout);
  }

 private:
  stof::bench::Workshop shop_{kDevice};
};

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc < 3) {
      throw std::invalid_argument("usage: bench.settings WORD,… CASE…");
    }
    Bench bench;
    for (int i = 2; i < argc; ++i) {
      bench.run(argv[i], split(argv[1], ','));
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench.settings: %s\n", error.what());
    return 1;
  }
}
