// One attention under many masks: ready-made ones, expressions, combinations, and data.
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include <stof/stof.hpp>

namespace {

constexpr std::int64_t kHeads = 4, kSeq = 192, kHeadDim = 32;

std::vector<std::pair<std::string, stof::Mask>> masks() {
  const auto q = stof::query_position(), k = stof::key_position(), head = stof::head_index();

  // Data: every key whose bit is set, here the even ones and those of the past.
  stof::HostTensor keep(stof::DType::Bool, {kSeq, kSeq});
  for (std::int64_t i = 0; i < kSeq * kSeq; ++i) {
    keep.set(i, i % kSeq <= i / kSeq || i % 2 == 0 ? 1 : 0);
  }
  return {
      {"all", stof::Mask()},
      {"causal", stof::causal()},
      {"a causal window", q >= k && q - k < 48},
      {"Longformer", stof::longformer(16, 4)},
      {"packed documents", stof::documents({0, 50, 140, 192}) && stof::causal()},
      {"a window that grows with the head", q - k <= 16 * (head + 1) && k <= q},
      {"from a text", stof::parse_expression("k_pos <= q_pos || k_pos < 8", stof::mask_names())},
      {"from data", stof::Mask::dense(keep.view())},
      {"data and an expression", stof::Mask::dense(keep.view()) && !stof::strided(3)},
  };
}

// Mean over all heads and rows of the log-sum-exp: the more keys are seen, the larger.
double mean_lse(const stof::Engine& engine, const stof::Mask& mask) {
  stof::Graph graph("attention");
  const auto tensor = [&](const char* name) {
    return graph.input(name, {1, kHeads, kSeq, kHeadDim}, stof::DType::Float16);
  };
  const auto result =
      graph.attention_with_lse(tensor("q"), tensor("k"), tensor("v"), {.mask = mask});
  graph.output("o", result.output);
  graph.output("lse", result.lse);
  const stof::Plan plan = engine.build(graph);

  std::vector<float> values(kHeads * kSeq * kHeadDim);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(i * 7919 % 101) / 50.0F - 1.0F;
  }
  stof::Buffer q = engine.allocate(plan.input("q")), k = engine.allocate(plan.input("k")),
               v = engine.allocate(plan.input("v")), o = engine.allocate(plan.output("o")),
               lse = engine.allocate(plan.output("lse"));
  q.upload(values);
  k.upload(values);
  v.upload(values);
  const stof::Weights none = engine.random_weights(plan);  // there are none
  plan.bind(none, {{"q", q}, {"k", k}, {"v", v}, {"o", o}, {"lse", lse}}).launch();
  double sum = 0;
  for (const float value : lse.download_floats()) {
    sum += value;
  }
  return sum / (kHeads * kSeq);
}

}  // namespace

int main() {
  const stof::Engine engine({.backend = stof::Backend::Auto});
  for (const auto& [name, mask] : masks()) {
    std::printf("%-34s  mean LSE %.4f  %s\n", name.c_str(), mean_lse(engine, mask),
                mask.text().c_str());
  }
}
