// stof run: a graph from files to files.
#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "command.hpp"
#include "io/npy.hpp"

namespace stof::command {

namespace {

constexpr const char* kRunExamples = R"(Examples:
  stof run graph.json --weights w.safetensors --input x=x.npy --output y=y.npy
  stof run graph.json --backend reference --input ids=ids.npy --dim seq=317

An array gets the dtype of its input; bfloat16 travels as float32. A symbolic dim that is an extent
of an input needs no --dim. Without --output, a line an output tells what came out.)";

struct RunOptions {
  GraphOptions graph;
  EngineChoice engine;
  DimOptions dims;
  std::string weights;
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
};

using Paths = std::map<std::string, std::string>;

Paths paths_of(std::string_view option, const std::vector<std::string>& assignments) {
  Paths paths;
  for (const std::string& assignment : assignments) {
    const auto [name, path] = split_assignment(option, assignment);
    if (!paths.emplace(name, path).second) {
      throw CLI::ValidationError(fmt::format("{} {} is given twice", option, name));
    }
  }
  return paths;
}

// Adds the dims that stand alone as an extent of an array.
void add_dims(const TensorInfo& info, const HostTensor& array, DimValues& dims) {
  if (static_cast<std::size_t>(info.shape.rank()) != array.shape().size()) {
    throw GraphError(fmt::format("input '{}': the array is {}{}, the graph takes {}{}", info.name,
                                 stof::name(array.dtype()), Shape::of(array.shape()).text(),
                                 stof::name(info.dtype), info.shape.text()));
  }
  for (int axis = 0; axis < info.shape.rank(); ++axis) {
    const Dim& dim = info.shape[axis];
    if (dim.symbols().contains(dim.text())) {
      dims.emplace(dim.text(), array.shape()[static_cast<std::size_t>(axis)]);
    }
  }
}

void describe_output(const std::string& name, const HostTensor& values) {
  double least = 0, most = 0, sum = 0;
  std::int64_t finite = 0;
  for (std::int64_t i = 0; i < values.element_count(); ++i) {
    const double value = values.at(i);
    if (std::isfinite(value)) {
      least = finite == 0 ? value : std::min(least, value);
      most = finite == 0 ? value : std::max(most, value);
      sum += value;
      ++finite;
    }
  }
  const std::int64_t others = values.element_count() - finite;
  print(fmt::format("{}: {}{}, mean {:.6g}, least {:.6g}, most {:.6g}{}", name,
                    stof::name(values.dtype()), Shape::of(values.shape()).text(),
                    finite == 0 ? 0 : sum / static_cast<double>(finite), least, most,
                    others == 0 ? "" : fmt::format("; {} are infinite or NaN", others)));
}

void run(const RunOptions& options) {
  const Paths inputs = paths_of("--input", options.inputs);
  const Paths outputs = paths_of("--output", options.outputs);
  const Graph graph = options.graph.read();
  DimValues dims = options.dims.values(graph);
  const Engine engine(options.engine.options());
  const Plan plan = engine.build(graph);
  for (const auto& [name, path] : outputs) {
    plan.output(name);  // throws before anything runs
  }

  std::map<std::string, HostTensor> arrays;
  for (const auto& [name, path] : inputs) {
    add_dims(plan.input(name), arrays.emplace(name, io::read_npy(path)).first->second, dims);
  }
  for (const TensorInfo& input : plan.inputs()) {
    if (!arrays.contains(input.name)) {
      throw GraphError(fmt::format("input '{}' {}{} is missing: --input {}=FILE.npy", input.name,
                                   stof::name(input.dtype), input.shape.text(), input.name));
    }
  }
  if (options.weights.empty() && !plan.weights().empty()) {
    throw GraphError(fmt::format("the graph has weights, such as '{}': --weights FILE.safetensors",
                                 plan.weights().front().name));
  }
  const Weights weights = options.weights.empty()
                              ? engine.load_weights(plan, std::span<const NamedTensor>())
                              : engine.load_weights(plan, options.weights);
  std::deque<std::pair<std::string, Buffer>> buffers;
  Bindings bindings;
  for (auto& [name, array] : arrays) {
    try {
      Buffer& buffer = buffers.emplace_back(name, engine.allocate(plan.input(name), dims)).second;
      buffer.upload(array.view());
      bindings.emplace(name, buffer.view());
    } catch (const GraphError& error) {
      throw GraphError(fmt::format("input '{}': {}", name, error.what()));
    }
  }
  const std::size_t first_output = buffers.size();
  for (const TensorInfo& output : plan.outputs()) {
    const Buffer& buffer = buffers.emplace_back(output.name, engine.allocate(output, dims)).second;
    bindings.emplace(output.name, buffer.view());
  }
  plan.bind(weights, bindings, {.dims = dims}).launch();

  for (std::size_t i = first_output; i < buffers.size(); ++i) {
    const auto& [name, buffer] = buffers[i];
    const auto path = outputs.find(name);
    if (path != outputs.end()) {
      io::write_npy(path->second, buffer.download().view());
    } else if (outputs.empty()) {
      describe_output(name, buffer.download());
    }
  }
}

}  // namespace

void add_run(CLI::App& stof) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* app = stof.add_subcommand("run", "Run a graph on arrays from files");
  options->graph.add_to(*app);
  app->add_option("--weights", options->weights, "The weights, by name")
      ->type_name("FILE.safetensors");
  app->add_option("--input", options->inputs, "An input; once for each")
      ->type_name("NAME=FILE.npy")
      ->allow_extra_args(false);
  app->add_option("--output", options->outputs, "An output to write; once for each")
      ->type_name("NAME=FILE.npy")
      ->allow_extra_args(false);
  options->dims.add_to(*app);
  options->engine.add_backend_to(*app);
  options->engine.add_kernels_to(*app);
  app->footer(kRunExamples);
  app->callback([options] { run(*options); });
}

}  // namespace stof::command
