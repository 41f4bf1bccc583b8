// The models of the fixtures on a GPU, in float16 and bfloat16, against outputs in float64.
#include "gpu_testing.hpp"
#include "reference/model_cases.hpp"

using namespace stof::testing;
using stof::DType;
using stof::Engine;

namespace {

void check(stof::NormDeferral norm_deferral) {
  const Engine engine(
      {.backend = stof::Backend::Gpu, .cache_dir = "", .norm_deferral = norm_deferral});
  for (const ModelCase& of : model_cases()) {
    for (const DType dtype : {DType::Float16, DType::BFloat16}) {
      const double tolerance = dtype == DType::Float16 ? 4e-3 : 4e-2;
      const stof::Graph graph = of.build(dtype);
      HostTensors tensors = tensors_for(graph, open(of.file), of.name);
      const double error =
          compare(of, run_plan(engine, engine.build(graph), tensors).at("last_hidden_state"))
              .relative_norm();
      INFO(of.file << " " << of.name << " " << stof::name(dtype) << ": " << error);
      CHECK(error < tolerance);
    }
  }
}

}  // namespace

TEST_CASE("every case in float16 and bfloat16") {
  check(stof::NormDeferral::Never);
}

TEST_CASE("every case with all norms put off until behind the products that read them") {
  check(stof::NormDeferral::Always);
}
