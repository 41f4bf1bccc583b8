#include "graph/bind_dims.hpp"

#include <cstdint>

#include <doctest/doctest.h>

#include "graph/dump.hpp"
#include "layers.hpp"
#include "random_graph.hpp"
#include "stof/error.hpp"

namespace stof::graph {
namespace {

TEST_CASE("bind_dims: a symbolic graph becomes the static one") {
  Graph symbolic;
  const Dim seq = symbolic.dim("seq", 1, 512);
  Graph bound = bert_layer(seq, causal());
  CHECK(dump(bind_dims(bound.ir(), {{"seq", 96}})) == bert_layer(96, causal()).dump());
}

TEST_CASE("bind_dims: every shape and attribute is a number") {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const Graph graph = RandomGraph(seed).build(10);
    DimValues values;
    for (const auto& [name, dim] : graph.ir().dims) {
      values.emplace(name, 8);
    }
    const Ir ir = bind_dims(graph.ir(), values);
    CHECK(ir.dims.empty());
    for (const auto& value : ir.values) {
      CHECK(value->shape.is_static());
    }
    CHECK(dump(ir).find("seq") == std::string::npos);
  }
}

TEST_CASE("bind_dims: values that do not fit") {
  const Graph graph = llama_layer();
  CHECK_THROWS_WITH(bind_dims(graph.ir(), {}),
                    "bind: dim seq has no value, dims must give one in [1, 4096]");
  CHECK_THROWS_WITH(bind_dims(graph.ir(), {{"seq", 4097}}),
                    "bind: dim seq is 4097, not in [1, 4096]");
  CHECK_THROWS_WITH(bind_dims(graph.ir(), {{"seq", 4}, {"sq", 4}}),
                    "bind: the graph llama_layer has no dim sq");
}

}  // namespace
}  // namespace stof::graph
