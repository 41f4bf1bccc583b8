#include "graph/json.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>

#include <doctest/doctest.h>

#include "graph/canonical.hpp"
#include "graph/dump.hpp"
#include "layers.hpp"
#include "random_graph.hpp"
#include "stof/error.hpp"

namespace stof::graph {
namespace {

TEST_CASE("json: the text of a small graph") {
  Graph graph("small");
  const Dim seq = graph.dim("seq", 1, 64);
  const Tensor x = graph.input("x", {2, seq, 8}, DType::Float16);
  const Tensor w = graph.weight("w", {4, 8}, DType::Float16);
  const Tensor y = graph.slice(graph.linear(x, w), 1, 0, 1);
  graph.output("y", graph.scale(y, 0.1));
  CHECK(graph.to_json().json == R"({
 "schema": 1,
 "name": "small",
 "dims": {"seq":{"min":1,"max":64}},
 "values": [
  {"name":"x","role":"input","dtype":"float16","shape":[2,"seq",8]},
  {"name":"w","role":"weight","dtype":"float16","shape":[4,8],"layout":"out_in"},
  {"name":"linear_2","role":"result","dtype":"float16","shape":[2,"seq",4]},
  {"name":"slice_3","role":"result","dtype":"float16","shape":[2,1,4]},
  {"name":"scale_4","role":"result","dtype":"float16","shape":[2,1,4]}
 ],
 "operators": [
  {"op":"linear","inputs":[0,1],"outputs":[2]},
  {"op":"slice","inputs":[2],"outputs":[3],"attributes":{"axis":1,"start":0,"length":1}},
  {"op":"scale","inputs":[3],"outputs":[4],"attributes":{"factor":0.1}}
 ],
 "outputs": [
  {"name":"y","value":4}
 ]
}
)");
}

TEST_CASE("json: an empty graph") {
  const Graph::Saved saved = Graph("empty").to_json();
  CHECK(saved.data.empty());
  CHECK(Graph::from_json(saved.json).to_json().json == saved.json);
}

TEST_CASE("json: reading what was written gives the same graph") {
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    CAPTURE(seed);
    const Graph graph = RandomGraph(seed).build(12);
    const Graph::Saved saved = graph.to_json();
    const Graph read = Graph::from_json(saved.json, saved.data);
    const Graph::Saved again = read.to_json();
    CHECK(again.json == saved.json);
    CHECK(again.data.size() == saved.data.size());
    CHECK(read.dump() == graph.dump());
    CHECK(read.canonical_digest() == graph.canonical_digest());
  }
}

TEST_CASE("json: layers travel with their masks, scores and captures") {
  for (const Graph& graph :
       {bert_layer(128, longformer(16, 4)), llama_layer(), t5_decoder_layer()}) {
    const Graph::Saved saved = graph.to_json();
    const Graph read = Graph::from_json(saved.json, saved.data);
    CHECK(read.to_json().json == saved.json);
    CHECK(read.dump() == graph.dump());
    CHECK(read.canonical_digest() == graph.canonical_digest());
  }
}

TEST_CASE("json: a graph that was read can grow") {
  const Graph::Saved saved = bert_layer().to_json();
  Graph graph = Graph::from_json(saved.json);
  graph.output("twice", graph.scale(graph.tensor("x"), 2));
  CHECK(graph.ir().outputs.size() == 2);
}

TEST_CASE("json: numbers come back bit for bit") {
  for (const double factor : {0.1, 1e-300, 5e-324, -0.0, 1.0, 1.0 / 3, 1e22, 123456789012345680.0,
                              std::numeric_limits<double>::max()}) {
    Graph graph;
    graph.output("y", graph.scale(graph.input("x", {1}, DType::Float32), factor));
    const Graph read = Graph::from_json(graph.to_json().json);
    CHECK(read.canonical_digest() == graph.canonical_digest());
  }
}

TEST_CASE("json: equal data is stored once") {
  HostTensor keep(DType::Bool, {8, 8});
  for (std::int64_t i = 0; i < 64; i += 3) {
    keep.set(i, 1);
  }
  const Mask mask = Mask::dense(keep.view());
  Graph graph;
  const Tensor x = graph.input("x", {1, 2, 8, 16}, DType::Float16);
  const Tensor y = graph.attention(x, x, x, {.mask = mask});
  graph.output("y", graph.attention(y, x, x, {.mask = mask && causal()}));
  const Graph::Saved saved = graph.to_json();
  CHECK(saved.data.size() == 1);
  CHECK(Graph::from_json(saved.json, saved.data).canonical_digest() == graph.canonical_digest());
  CHECK_THROWS_AS(Graph::from_json(saved.json), GraphError);
  std::map<std::string, HostTensor> damaged = saved.data;
  damaged.begin()->second.set(0, 5);
  CHECK_THROWS_AS(Graph::from_json(saved.json, damaged), GraphError);
}

}  // namespace
}  // namespace stof::graph
