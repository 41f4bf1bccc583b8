// One layer of a real size on a GPU, eight sequences of 512 tokens. No sequence sees another, so
// the reference in float64 runs one of them.
#include "gpu_testing.hpp"
#include "models/bert.hpp"
#include "models/gpt2.hpp"
#include "models/llama.hpp"
#include "stof/stof.hpp"

using namespace stof::testing;
using stof::DType;
using stof::Graph;
using stof::HostTensor;

namespace {

constexpr std::int64_t kBatch = 8;
constexpr std::int64_t kSequence = 512;
constexpr std::int64_t kCompared = 5;  // the sequence that is compared

// Matrices are scaled so that what they give is about as large as what they take.
HostTensors random_weights(const Graph& graph) {
  HostTensors tensors;
  unsigned seed = 1;
  for (const auto& value : graph.ir().values) {
    if (value->role != stof::graph::ValueRole::Weight) {
      continue;
    }
    const Sizes shape = value->shape.sizes();
    const double scale = shape.size() < 2 ? 0.5 : 1.7 / std::sqrt(static_cast<double>(shape[1]));
    tensors.emplace(value->name, random_tensor(shape, seed++, value->dtype, -scale, scale));
  }
  return tensors;
}

template <typename Build>
void check_layer(Build build, stof::NormDeferral norm_deferral = stof::NormDeferral::Never) {
  const stof::Engine engine(
      {.backend = stof::Backend::Gpu, .cache_dir = "", .norm_deferral = norm_deferral});
  for (const DType dtype : {DType::Float16, DType::BFloat16}) {
    const double tolerance = dtype == DType::Float16 ? 5e-3 : 4e-2;
    const Graph whole = build(kBatch, dtype);
    const Graph one = build(1, dtype);
    HostTensors tensors = random_weights(whole);
    const HostTensor ids = random_integers(DType::Int32, {kBatch, kSequence}, 1000);
    tensors.insert_or_assign("ids", ids);
    const Values actual = run_plan(engine, engine.build(whole), tensors).at("last_hidden_state");
    HostTensor one_ids(DType::Int32, {1, kSequence});
    for (std::int64_t i = 0; i < kSequence; ++i) {
      one_ids.set(i, ids.at(kCompared * kSequence + i));
    }
    tensors.insert_or_assign("ids", one_ids);
    const Values expected = run_graph(one, tensors, {.precision = stof::Precision::Float64})
                                .at("last_hidden_state")
                                .values;
    const auto begin = actual.begin() + static_cast<std::ptrdiff_t>(kCompared * expected.size());
    const Values compared(begin, begin + static_cast<std::ptrdiff_t>(expected.size()));
    const double error = relative_norm(compared, expected);
    INFO(stof::name(dtype) << ": " << error);
    CHECK(error < tolerance);
  }
}

}  // namespace

TEST_CASE("a layer of BERT-base with a window") {
  models::BertConfig config = models::kBertBase;
  config.num_hidden_layers = 1;
  config.vocab_size = 1000;
  for (const auto norm_deferral : {stof::NormDeferral::Always, stof::NormDeferral::Never}) {
    const auto build = [&](std::int64_t batch, DType dtype) {
      return models::bert(config, {.batch = batch,
                                   .sequence = kSequence,
                                   .dtype = dtype,
                                   .mask = stof::sliding_window(22, 22)});
    };
    check_layer(build, norm_deferral);
  }
}

TEST_CASE("a layer of GPT-2, whose norms stand ahead of the products") {
  models::Gpt2Config config;
  config.n_layer = 1;
  config.vocab_size = 1000;
  for (const auto norm_deferral : {stof::NormDeferral::Always, stof::NormDeferral::Never}) {
    const auto build = [&](std::int64_t batch, DType dtype) {
      return models::gpt2(config, {.batch = batch, .sequence = kSequence, .dtype = dtype});
    };
    check_layer(build, norm_deferral);
  }
}

TEST_CASE("gains that 16 bits do not hold with the weights leave norms where they are") {
  Graph graph("large");
  const auto x = graph.input("x", {64, 128}, DType::Float16);
  const auto w = graph.weight("w", {64, 128}, DType::Float16);
  graph.output("y", graph.linear(graph.rms_norm(x, graph.weight("g", {128}, DType::Float16)), w));
  std::string told;
  const stof::Engine engine({.backend = stof::Backend::Gpu,
                             .cache_dir = "",
                             .norm_deferral = stof::NormDeferral::Always,
                             .on_event = [&](const stof::Event& event) {
                               told += event.stage == "fallback" ? event.detail : "";
                             }});
  HostTensors tensors;
  tensors["x"] = random_tensor({64, 128}, 1, DType::Float16, -1e-3, 1e-3);
  tensors["w"] = random_tensor({64, 128}, 2, DType::Float16, 1e-6, 1e-5);
  tensors["g"] = random_tensor({128}, 3, DType::Float16);
  const stof::Plan plan = engine.build(graph);
  CHECK(plan.explain().find("norms behind the products that read them: rms_norm") !=
        std::string::npos);
  const Values actual = run_plan(engine, plan, tensors).at("y");
  CHECK(told.find("'g' times 'w' is of the size") == 0);
  CHECK(plan.explain().find("norms ahead of all products: 'g' times 'w'") != std::string::npos);
  const Values expected =
      run_graph(graph, tensors, {.precision = stof::Precision::Float64}).at("y").values;
  CHECK(relative_norm(actual, expected) < 3e-2);  // of float16 without all of its digits
}

TEST_CASE("a layer of LLaMA, with four heads to a key head") {
  models::LlamaConfig config = models::kLlama3Of8B;
  config.num_hidden_layers = 1;
  config.vocab_size = 1000;
  check_layer([&](std::int64_t batch, DType dtype) {
    return models::llama(config, {.batch = batch, .sequence = kSequence, .dtype = dtype});
  });
}
