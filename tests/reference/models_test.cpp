#include "mask/evaluate.hpp"
#include "model_cases.hpp"

using namespace stof::testing;
using stof::Dim;
using stof::DType;
using stof::Graph;
using stof::HostTensor;
using stof::Mask;
using stof::Precision;

namespace {

Comparison run_case(const ModelCase& of, const Graph& graph, Precision precision) {
  HostTensors tensors = tensors_for(graph, open(of.file), of.name);
  return compare(
      of, run_graph(graph, tensors, {.precision = precision}).at("last_hidden_state").values);
}

void check_same_mask(const std::string& family, const Mask& mask) {
  const SafetensorsFile file = open(family);
  const HostTensor stored(file.view("window.in.mask"));
  const auto bits = stof::mask::evaluate_all(mask, {.q_len = kSequence, .kv_len = kSequence});
  for (std::int64_t i = 0; i < kSequence * kSequence; ++i) {
    CHECK(bits.at(0, 0, i / kSequence, i % kSequence) == (stored.at(i) != 0));
  }
}

}  // namespace

TEST_CASE("the stored masks are windows") {
  check_same_mask("bert", window());
  check_same_mask("gpt2", window() && stof::causal());
  check_same_mask("llama", window() && stof::causal());
}

TEST_CASE("every case in every precision, as it is built and normalised") {
  for (const ModelCase& of : model_cases()) {
    const Graph graph = of.build(DType::Float32);
    const double exact = run_case(of, graph, Precision::Float64).largest();
    const double primitive = run_case(of, normalised(graph), Precision::Float64).largest();
    const double fast = run_case(of, graph, Precision::Float32).largest();
    const double half = run_case(of, of.build(DType::Float16), Precision::Model).relative_norm();
    const double brain = run_case(of, of.build(DType::BFloat16), Precision::Model).relative_norm();
    INFO(of.file << " " << of.name << ": float64 " << exact << ", normalised " << primitive
                 << ", float32 " << fast << ", float16 " << half << ", bfloat16 " << brain);
    CHECK(exact < of.tolerance);
    CHECK(primitive < of.tolerance);
    CHECK(fast < 1e-5);
    CHECK(half < 4e-3);
    CHECK(brain < 4e-2);
  }
}

TEST_CASE("a model with symbolic batch and sequence gives what a fixed one gives") {
  const Graph graph = models::bert(kTinyBert, {.batch = Dim::symbol("batch", 1, 8),
                                               .sequence = Dim::symbol("seq", 1, 64),
                                               .dtype = DType::Float32,
                                               .mask = window()});
  CHECK(run_case({"bert", "window"}, graph, Precision::Float64).largest() < kLayerNormTolerance);
}

TEST_CASE("models of real sizes can be built") {
  CHECK(models::bert(models::kBertLarge, {.sequence = 512}).ir().outputs.size() == 1);
  CHECK(models::gpt2(models::kGpt2Medium, {.sequence = 1024}).ir().outputs.size() == 1);
  CHECK(models::llama(models::kLlama7B, {.sequence = 4096}).ir().outputs.size() == 1);
  CHECK(models::llama(models::kLlama3Of8B, {.sequence = 4096}).ir().outputs.size() == 1);
  CHECK(models::t5(models::kFlanT5Base, {.sequence = 512}).ir().outputs.size() == 1);
  CHECK(models::vit(models::kVitLarge, {}).ir().outputs.size() == 1);
  CHECK(models::kVitBase.tokens() == 197);
}
