#include "models/zoo.hpp"

#include <map>
#include <string>

#include <doctest/doctest.h>

#include "error_of.hpp"
#include "graph/ir.hpp"

using models::by_name;
using stof::DType;

namespace {

std::int64_t parameters(const stof::Graph& graph) {
  std::int64_t count = 0;
  for (const auto& value : graph.ir().values) {
    if (value->role == stof::graph::ValueRole::Weight) {
      count += value->shape.element_count().value();
    }
  }
  return count;
}

}  // namespace

TEST_CASE("models have as many parameters as those of Hugging Face") {
  // sum(p.numel() for p in model.parameters()) of bert-base-uncased and bert-large-uncased without
  // pooler, gpt2, Llama-2-7b without its head, the encoder of t5-base, vit-base without pooler
  const std::map<std::string, std::int64_t> expected = {
      {"bert-base", 108'891'648},  {"bert-large", 334'092'288}, {"gpt2", 124'439'808},
      {"llama-7b", 6'607'343'616}, {"t5-base", 109'628'544},    {"vit-base", 85'798'656},
  };
  CHECK(expected.size() == models::kNames.size());
  for (const std::string_view name : models::kNames) {
    CAPTURE(name);
    CHECK(parameters(by_name(name, {.sequence = 197}, DType::Float16)) ==
          expected.at(std::string(name)));
  }
}

TEST_CASE("a model has the layers, size and dtype that are asked for") {
  const stof::Graph graph =
      by_name("gpt2", {.batch = 3, .sequence = 2048, .layers = 2}, DType::BFloat16);
  const auto& ir = graph.ir();
  CHECK(ir.ids.contains("h.1.mlp.c_fc.weight"));
  CHECK_FALSE(ir.ids.contains("h.2.mlp.c_fc.weight"));
  const auto& output = *ir.values[static_cast<std::size_t>(ir.outputs.front().value)];
  CHECK(output.shape.text() == "[3, 2048, 768]");
  CHECK(output.dtype == DType::BFloat16);
}

TEST_CASE("a model that is none is an error") {
  const auto error = [](std::string_view name, const models::Size& size) {
    return stof::test::error_of<stof::GraphError>([&] { by_name(name, size, DType::Float16); });
  };
  CHECK(error("bert", {}) ==
        "model: none is called 'bert', there is bert-base, bert-large, gpt2, llama-7b, t5-base, "
        "vit-base");
  CHECK(error("gpt2", {.batch = 0}) == "model: batch is 0, at least 1 is needed");
  CHECK(error("gpt2", {.sequence = -1}) == "model: sequence is -1, at least 1 is needed");
  CHECK(error("gpt2", {.layers = -1}) == "model: layers is -1, at least 0 is needed");
  CHECK(error("gpt2", {.layers = 13}) == "model: layers is 13, gpt2 has 12");
  CHECK(error("llama-7b", {.layers = 33}) == "model: layers is 33, llama-7b has 32");
  CHECK(error("vit-base", {.sequence = 128}) ==
        "vit-base: 128 tokens are not a class token and a square of patches, such as 197");
}
