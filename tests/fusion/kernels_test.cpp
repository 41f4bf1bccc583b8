// Every template, rendered and compiled for every kind of GPU: with what is chosen for the cases of
// operator_cases.hpp, and at the corners of its parameters.
#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/device_profile.hpp"
#include "base/parallel.hpp"
#include "compile/nvrtc_compiler.hpp"
#include "engine/operator_cases.hpp"
#include "fusion/deferred_norms.hpp"
#include "fusion/joined_products.hpp"
#include "fusion/lower.hpp"
#include "fusion/rotated_products.hpp"
#include "graph/normalise.hpp"
#include "render/renderer.hpp"
#include "stof/stof.hpp"

using namespace stof;  // NOLINT(google-build-using-namespace)

namespace {

struct Kernel {
  kernel::KernelSpec spec;
  contract::ContractScope scope;
  base::GpuTarget target;

  std::string text() const {
    return fmt::format("{} for {} with {}", spec.file, target.text(), spec.variables.dump());
  }
};

class Kernels {
 public:
  Kernels()
      : store_(std::make_shared<const render::TemplateStore>(render::TemplateStore::open({}))),
        templates_(fusion::read_templates(store_->texts())) {}

  const fusion::TemplateLibrary& templates() const { return templates_; }

  void add(const Graph& graph, const base::DeviceProfile& device) {
    add(graph::normalise_but_attention(graph.ir()), device);
  }

  void add(const graph::Ir& ir, const base::DeviceProfile& device) {
    const auto lowered = fusion::lower(ir, templates_, device);
    for (std::size_t i = 0; i < lowered.specs.size(); ++i) {
      const kernel::KernelSpec& spec = lowered.specs[i];
      const base::GpuTarget target = base::parse_gpu_target(device.target);
      if (seen_.insert(spec.file + target.text() + spec.variables.dump()).second) {
        kernels_.push_back({spec, lowered.scopes[i], target});
      }
    }
  }

  const contract::TemplateContract& contract_of(const Kernel& kernel) const {
    return std::find_if(templates_.begin(), templates_.end(),
                        [&](const auto& one) { return one.file == kernel.spec.file; })
        ->contract;
  }

  const std::vector<Kernel>& all() const { return kernels_; }

  // All of sm_90a, and of the others one of those that have the same text, of the next target each
  // time: three or four targets have a text in common.
  std::vector<Kernel> one_of_each_text() const {
    std::map<std::string, std::vector<const Kernel*>> by_text;
    std::vector<Kernel> result;
    for (const Kernel& kernel : kernels_) {
      if (kernel.target.text() == "sm_90a") {
        result.push_back(kernel);
      } else {
        by_text[source(kernel)].push_back(&kernel);
      }
    }
    std::size_t turn = 0;
    for (const auto& [text, same] : by_text) {
      result.push_back(*same[turn++ % same.size()]);
    }
    return result;
  }

  // For each template and target the settings of its first `uses` kernels between which every
  // parameter takes the least and the greatest value that the restrictions allow there.
  std::vector<Kernel> at_corners(std::size_t uses) const {
    std::map<std::string, std::size_t> taken;
    std::vector<Kernel> result;
    for (const Kernel& kernel : kernels_) {
      if (taken[kernel.spec.file + kernel.target.text()]++ < uses) {
        for (const kernel::KernelConfig& config :
             corners(contract::allowed_configs(contract_of(kernel), kernel.scope))) {
          result.push_back(kernel);
          result.back().spec.variables["param"].update(nlohmann::json(config));
        }
      }
    }
    return result;
  }

  // Kernels of a template with all settings that the restrictions allow, but for the number of
  // slots or stages and the order of tiles: with others it is addresses that change.
  std::vector<Kernel> at_all_settings(const std::string& file) const {
    std::vector<Kernel> result;
    for (const Kernel& kernel : kernels_) {
      if (kernel.spec.file != file) {
        continue;
      }
      std::set<kernel::KernelConfig> seen;
      for (const kernel::KernelConfig& config :
           contract::allowed_configs(contract_of(kernel), kernel.scope)) {
        kernel::KernelConfig others = config;
        for (const char* const name : {"slots", "stages", "order"}) {
          others.erase(name);
        }
        if (seen.insert(others).second) {
          result.push_back(kernel);
          result.back().spec.variables["param"].update(nlohmann::json(config));
        }
      }
    }
    return result;
  }

  std::string source(const Kernel& kernel) const {
    return render::Renderer(store_)
        .render(kernel.spec.file, render::from_json(kernel.spec.variables))
        .text;
  }

  // What is wrong with them, a line each.
  std::string faults(const std::vector<Kernel>& kernels) const {
    const render::Renderer renderer(store_);
    const compile::NvrtcCompiler compiler;
    std::mutex mutex;
    std::string faults;
    base::parallel_for(static_cast<std::int64_t>(kernels.size()), [&](std::int64_t i) {
      const Kernel& kernel = kernels[static_cast<std::size_t>(i)];
      std::string fault;
      try {
        const compile::CompiledKernel compiled = compiler.compile(
            {.source = renderer.render(kernel.spec.file, render::from_json(kernel.spec.variables)),
             .target = kernel.target},
            {});
        const auto found = compile::quality_faults(compiled);
        fault = found.empty() ? "" : found.front();
      } catch (const Error& error) {
        fault = error.what();
      }
      const std::scoped_lock lock(mutex);
      if (!fault.empty()) {
        faults += kernel.text() + "\n  " + fault + "\n";
      }
    });
    return faults;
  }

 private:
  // Few of them that together hold the least and the greatest value of each parameter: again and
  // again the one that holds the most of those that are missing.
  static std::vector<kernel::KernelConfig> corners(std::vector<kernel::KernelConfig> configs) {
    std::map<std::string, std::set<std::int64_t>> missing;
    for (const kernel::KernelConfig& config : configs) {
      for (const auto& [name, value] : config) {
        missing[name].insert(value);
      }
    }
    for (auto& [name, values] : missing) {
      values = {*values.begin(), *values.rbegin()};
    }
    const auto found = [&](const kernel::KernelConfig& config) {
      return std::count_if(config.begin(), config.end(), [&](const auto& one) {
        return missing[one.first].contains(one.second);
      });
    };
    std::vector<kernel::KernelConfig> result;
    while (!configs.empty()) {
      const auto best =
          std::max_element(configs.begin(), configs.end(),
                           [&](const auto& a, const auto& b) { return found(a) < found(b); });
      if (found(*best) == 0) {
        break;
      }
      result.push_back(*best);
      for (const auto& [name, value] : *best) {
        missing[name].erase(value);
      }
    }
    return result;
  }

  std::shared_ptr<const render::TemplateStore> store_;
  fusion::TemplateLibrary templates_;
  std::set<std::string> seen_;
  std::vector<Kernel> kernels_;
};

void add_cases(Kernels& kernels, const base::DeviceProfile& device) {
  for (const auto& cases :
       {testing::matmul_cases(), testing::gated_cases(), testing::normed_product_cases(),
        testing::chained_product_cases(), testing::row_cases(), testing::other_cases(),
        testing::attention_cases(), testing::attention_cases(34)}) {
    for (const testing::OperatorCase& of : cases) {
      kernels.add(of.build(DType::Float16), device);
    }
  }
  for (const testing::OperatorCase& of : testing::rotated_product_cases()) {
    const graph::Ir ir = graph::normalise_but_attention(of.build(DType::Float16).ir());
    kernels.add(fusion::rotate_products_if_faster({.ir = fusion::join_products(ir).ir},
                                                  kernels.templates(), device)
                    .ir,
                device);
  }
  for (const testing::OperatorCase& of : testing::normed_input_cases()) {
    const Graph graph = of.build(DType::Float16);
    kernels.add(fusion::defer_norms(graph::normalise_but_attention(graph.ir())).ir, device);
  }
}

// Attention as its rules tell it apart: by size, width, class and length of lists.
void add_attention(Kernels& kernels, const base::DeviceProfile& device) {
  const Mask global(query_position() < 32 || key_position() < 32);
  const std::vector<Mask> masks = {Mask(),
                                   causal(),
                                   strided(7),
                                   sliding_window(64, 64),
                                   global || sliding_window(32, 32),
                                   causal() && documents({0, 300, 1024}),
                                   random_blocks(64, 3, 5)};
  for (const std::int64_t head_dim : {64, 72, 128, 256}) {
    for (const auto& [batch, length] :
         {std::pair{1, 1024}, std::pair{16, 1024}, std::pair{10, 512}}) {
      for (const Mask& mask : masks) {
        Graph graph("attention");
        const Shape shape = {batch, 12, length, head_dim};
        const auto q = graph.input("q", shape, DType::BFloat16);
        const auto k = graph.input("k", shape, DType::BFloat16);
        const auto v = graph.input("v", shape, DType::BFloat16);
        graph.output("o", graph.attention(q, k, v, {.mask = mask}));
        kernels.add(graph, device);
      }
    }
  }
}

// Attention of short heads of a batch.
void add_short_heads(Kernels& kernels, const base::DeviceProfile& device) {
  for (const std::int64_t head_dim : {80, 128}) {
    Graph graph("attention");
    const auto x = graph.input("x", {32, 12, 192, head_dim}, DType::BFloat16);
    graph.output("o", graph.attention(x, x, x, {.mask = causal()}));
    kernels.add(graph, device);
  }
}

// Attention whose scores read a number or, of narrow heads, a byte for each query and key: with
// bytes some settings of wider ones spill.
void add_scores(Kernels& kernels, const base::DeviceProfile& device) {
  constexpr std::int64_t kLength = 1024;
  constexpr std::int64_t kWidestOfBytes = 48;
  const Mask global(query_position() < 32 || key_position() < 32);
  const std::vector<Mask> masks = {Mask(), causal(), global || sliding_window(32, 32),
                                   documents({0, 300, 700, kLength})};
  for (const std::int64_t head_dim : {32, 40, 48, 56, 64, 128}) {
    for (const Mask& mask : masks) {
      for (const DType read : {DType::Float16, DType::Bool}) {
        if (read == DType::Bool && head_dim > kWidestOfBytes) {
          continue;
        }
        Graph graph("attention");
        const auto x = graph.input("x", {8, 16, kLength, head_dim}, DType::Float16);
        const Capture capture = graph.capture(graph.input("c", {16, kLength, kLength}, read));
        const Expr value = capture(head_index(), query_position(), key_position());
        const Score score_of_pair =
            read == DType::Bool ? Score(select(value, score(), score() - 10.0)) : score() + value;
        graph.output("o", graph.attention(x, x, x, {.mask = mask, .score = score_of_pair}));
        kernels.add(graph, device);
      }
    }
  }
}

// One kernel of attention that is chosen, with all of these values of its parameters, without and
// with sums that someone reads; of its own heads, or of all that are given by the dimensions of
// keys and of values.
std::vector<Kernel> with_values(const std::string& file,
                                const std::vector<std::pair<std::string, std::vector<int>>>& values,
                                const std::vector<std::pair<int, int>>& heads = {}) {
  Kernels chosen;
  add_attention(chosen, base::shipped_profile("h200"));
  add_short_heads(chosen, base::shipped_profile("h200"));
  const auto one = std::ranges::find_if(
      chosen.all(), [&](const Kernel& kernel) { return kernel.spec.file == file; });
  REQUIRE(one != chosen.all().end());
  std::vector<Kernel> kernels = {*one, *one};
  kernels[0].spec.variables["has"]["lse"] = false;
  kernels[1].spec.variables["has"]["lse"] = true;
  if (!heads.empty()) {
    std::vector<Kernel> more;
    for (const Kernel& kernel : kernels) {
      for (const auto& [head_dim, value_dim] : heads) {
        auto& dims = more.emplace_back(kernel).spec.variables["dim"];
        dims["head_dim"] = head_dim;
        dims["value_dim"] = value_dim;
      }
    }
    kernels = std::move(more);
  }
  for (const auto& [name, of_name] : values) {
    std::vector<Kernel> more;
    for (const Kernel& kernel : kernels) {
      for (const int value : of_name) {
        more.emplace_back(kernel).spec.variables["param"][name] = value;
      }
    }
    kernels = std::move(more);
  }
  return kernels;
}

// One shipped profile for each kind of GPU.
constexpr std::array kDevices = {"a100", "a10", "l40s", "h200", "b200", "rtx5090"};

}  // namespace

TEST_CASE("every template takes part in a case") {
  Kernels kernels;
  add_cases(kernels, base::shipped_profile("h200"));
  add_cases(kernels, base::shipped_profile("a100"));
  add_attention(kernels, base::shipped_profile("h200"));
  add_short_heads(kernels, base::shipped_profile("h200"));
  std::set<std::string> used;
  for (const Kernel& kernel : kernels.all()) {
    used.insert(kernel.spec.file);
  }
  for (const fusion::KernelTemplate& one : kernels.templates()) {
    CHECK_MESSAGE(used.contains(one.file), one.file, " is never chosen");
  }
}

TEST_CASE("every template compiles at the corners of its parameters") {
  Kernels kernels;
  for (const char* device : kDevices) {
    add_cases(kernels, base::shipped_profile(device));
  }
  const std::vector<Kernel> corners = kernels.at_corners(1);
  CHECK(corners.size() > 2 * kernels.templates().size());
  CHECK(kernels.faults(corners) == "");
}

TEST_CASE("what is chosen for any kind of GPU compiles without spills or lost speed") {
  Kernels kernels;
  for (const char* device : kDevices) {
    add_cases(kernels, base::shipped_profile(device));
  }
  add_attention(kernels, base::shipped_profile("h200"));
  add_short_heads(kernels, base::shipped_profile("h200"));
  const std::vector<Kernel> chosen = kernels.one_of_each_text();
  CHECK(chosen.size() > 400);
  CHECK(kernels.faults(chosen) == "");
}

TEST_CASE("attention whose scores read tensors compiles without spills") {
  Kernels kernels;
  add_scores(kernels, base::shipped_profile("h200"));
  const std::vector<Kernel> chosen = kernels.one_of_each_text();
  CHECK(chosen.size() > 20);
  CHECK(kernels.faults(chosen) == "");
}

TEST_CASE("attention by wgmma includes no headers, which would take longer than its own text") {
  Kernels kernels;
  add_attention(kernels, base::shipped_profile("h200"));
  add_short_heads(kernels, base::shipped_profile("h200"));
  std::set<std::string> files;
  for (const Kernel& kernel : kernels.all()) {
    if (kernel.spec.file.ends_with("_sm90.jinja")) {
      files.insert(kernel.spec.file);
      CHECK_MESSAGE(kernels.source(kernel).find("#include") == std::string::npos, kernel.spec.file);
    }
  }
  CHECK(files.size() > 4);
}

TEST_CASE("attention over packed tiles, and over runs of keys, compiles with all settings") {
  Kernels chosen;
  add_attention(chosen, base::shipped_profile("h200"));
  for (const char* const file : {"attention/packed_sm90.jinja", "attention/interval_sm90.jinja"}) {
    std::vector<Kernel> kernels = chosen.at_all_settings(file);
    REQUIRE(!kernels.empty());
    for (std::size_t i = 0; i < kernels.size(); i += 2) {
      kernels[i].spec.variables["has"]["lse"] = true;
    }
    CHECK(chosen.faults(kernels) == "");
  }
}

TEST_CASE("attention of short heads compiles with all numbers of pieces") {
  CHECK(Kernels().faults(with_values("attention/held_sm90.jinja", {{"pieces", {1, 2, 4}}})) == "");
}

TEST_CASE("attention of short heads one after the other compiles with all sizes of the ring") {
  CHECK(Kernels().faults(with_values("attention/short_heads_sm90.jinja", {{"slots", {2, 3}}},
                                     {{128, 128}, {64, 128}, {128, 40}, {72, 72}, {64, 64}})) ==
        "");
}

TEST_CASE("attention over windows compiles for wide heads with all numbers of keys") {
  CHECK(Kernels().faults(with_values(
            "attention/window_sm90.jinja",
            {{"tile_k", {64, 96, 160, 192}}, {"groups", {2}}, {"slots", {5}}, {"query_slots", {4}}},
            {{128, 128}, {80, 96}, {64, 128}, {128, 40}})) == "");
}

TEST_CASE("attention over windows with global tokens compiles for wide heads") {
  const auto faults_of = [](const std::vector<int>& global_keys, int global_tiles,
                            const std::vector<std::pair<int, int>>& heads) {
    return Kernels().faults(with_values("attention/global_local_sm90.jinja",
                                        {{"tile_k", {64, 160, 192}},
                                         {"global_keys", global_keys},
                                         {"global_tiles", {global_tiles}},
                                         {"slots", {4}},
                                         {"query_slots", {3}}},
                                        heads));
  };
  CHECK(faults_of({32, 64, 96}, 1, {{128, 128}, {64, 128}, {96, 80}}) == "");
  CHECK(faults_of({64, 96}, 2, {{96, 96}, {128, 40}}) == "");
}

TEST_CASE("attention over windows with global tokens compiles with all numbers of keys") {
  CHECK(Kernels().faults(
            with_values("attention/global_local_sm90.jinja", {{"tile_k", {64, 128, 192}},
                                                              {"global_keys", {32, 64, 128}},
                                                              {"global_tiles", {1, 2}}})) == "");
  CHECK(Kernels().faults(with_values("attention/resident_sm90.jinja", {{"groups", {2, 3}},
                                                                       {"local_boxes", {1, 3}},
                                                                       {"global_boxes", {1, 2}},
                                                                       {"cluster", {1, 3, 8}}})) ==
        "");
  CHECK(Kernels().faults(with_values("attention/resident_sm90.jinja", {{"groups", {2, 3}},
                                                                       {"local_boxes", {2, 3}},
                                                                       {"global_boxes", {0}},
                                                                       {"cluster", {1, 8}}})) ==
        "");
}
