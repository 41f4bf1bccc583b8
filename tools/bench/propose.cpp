// Times the search for fusion schemes, on the host alone: one layer of BERT after the other, of
// which equal ones cost one. Usage: bench.propose [LAYERS...]
#include "fusion/propose.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/device_profile.hpp"
#include "graph/normalise.hpp"
#include "models/bert.hpp"
#include "render/template_store.hpp"

namespace {

namespace fusion = stof::fusion;
using Clock = std::chrono::steady_clock;

void print_row(std::int64_t layers, const fusion::TemplateLibrary& templates) {
  const stof::Graph graph = models::bert({.num_hidden_layers = layers}, {});
  const stof::graph::Ir ir = stof::graph::normalise_but_attention(graph.ir());
  constexpr int kRounds = 15;
  std::vector<double> times_ms;
  times_ms.reserve(kRounds);
  std::size_t found = 0;
  for (int round = 0; round < kRounds; ++round) {
    const Clock::time_point start = Clock::now();
    found = propose_schemes(ir, templates, stof::base::shipped_profile("h200")).size();
    times_ms.push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
  }
  std::ranges::sort(times_ms);
  fmt::print("{:6} {:9} {:7} {:8.2f} {:8.2f}\n", layers, fusion::operator_order(ir).size(), found,
             times_ms.front(), times_ms[times_ms.size() / 2]);
}

void run(const std::vector<std::string>& arguments) {
  const auto store = stof::render::TemplateStore::open({});
  const fusion::TemplateLibrary templates = fusion::read_templates(store.texts());
  fmt::print("{:>6} {:>9} {:>7} {:>8} {:>8}\n", "layers", "operators", "schemes", "least ms",
             "median");
  for (const std::string& layers : arguments) {
    print_row(std::stoll(layers), templates);
  }
}

}  // namespace

// NOLINTNEXTLINE(bugprone-exception-escape): of stderr that is closed
int main(int argc, char** argv) {
  try {
    run(argc > 1 ? std::vector<std::string>(argv + 1, argv + argc)
                 : std::vector<std::string>{"1", "12", "56"});
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench.propose: {}\n", error.what());
    return EXIT_FAILURE;
  }
}
