// The models of the fixtures on a GPU, in float16 and bfloat16, against outputs in float64.
#include "reference/model_cases.hpp"
#include "stof/engine.hpp"

using namespace stof::testing;
using stof::Bindings;
using stof::Buffer;
using stof::DType;
using stof::Engine;
using stof::NamedTensor;
using stof::Plan;
using stof::TensorInfo;

namespace {

Values run_on_gpu(const Engine& engine, const stof::Graph& graph, HostTensors& tensors) {
  const Plan plan = engine.build(graph);
  std::vector<NamedTensor> weights;
  for (const TensorInfo& info : plan.weights()) {
    weights.push_back({info.name, tensors.at(info.name).view()});
  }
  std::vector<Buffer> buffers;
  Bindings bindings;
  for (const TensorInfo& info : plan.inputs()) {
    buffers.push_back(engine.allocate(info));
    buffers.back().upload(tensors.at(info.name).view());
    bindings.emplace(info.name, buffers.back());
  }
  Buffer output = engine.allocate(plan.output("last_hidden_state"));
  bindings.emplace("last_hidden_state", output);
  stof::Execution run = plan.bind(engine.load_weights(plan, weights), bindings);
  run.launch();
  return values_of(output.download());
}

}  // namespace

TEST_CASE("every case in float16 and bfloat16") {
  const Engine engine({.backend = stof::Backend::Gpu, .cache_dir = ""});
  for (const ModelCase& of : model_cases()) {
    for (const auto& [dtype, tolerance] :
         {std::pair(DType::Float16, 4e-3), std::pair(DType::BFloat16, 4e-2)}) {
      const stof::Graph graph = of.build(dtype);
      HostTensors tensors = tensors_for(graph, open(of.file), of.name);
      const double error = compare(of, run_on_gpu(engine, graph, tensors)).relative_norm();
      INFO(of.file << " " << of.name << " " << stof::name(dtype) << ": " << error);
      CHECK(error < tolerance);
    }
  }
}
