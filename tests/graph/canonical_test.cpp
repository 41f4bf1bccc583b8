#include "graph/canonical.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "graph/normalise.hpp"
#include "graph/op_info.hpp"
#include "layers.hpp"
#include "random_graph.hpp"

namespace stof::graph {
namespace {

std::vector<std::string> names(const Ir& ir, const std::vector<int>& operators) {
  std::vector<std::string> result;
  result.reserve(operators.size());
  for (const int index : operators) {
    result.emplace_back(name(ir.operators[static_cast<std::size_t>(index)].kind));
  }
  return result;
}

TEST_CASE("canonical: the order is topological and keeps segments together") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    const Ir ir = normalise(RandomGraph(seed).build(15).ir());
    const Canonical canonical = canonicalise(ir);
    std::vector<bool> is_made(ir.values.size());
    std::vector<int> segments;
    for (const int index : canonical.operators) {
      const Operator& op = ir.operators[static_cast<std::size_t>(index)];
      for (const int id : operand_ids(op)) {
        const bool is_leaf = ir.values[static_cast<std::size_t>(id)]->producer < 0;
        CHECK((is_leaf || is_made[static_cast<std::size_t>(id)]));
      }
      for (const int id : op.outputs) {
        is_made[static_cast<std::size_t>(id)] = true;
      }
      if (op.segment >= 0 && (segments.empty() || segments.back() != op.segment)) {
        CHECK(std::ranges::find(segments, op.segment) == segments.end());
        segments.push_back(op.segment);
      } else if (op.segment < 0) {
        segments.push_back(-1);
      }
    }
    for (const Output& output : ir.outputs) {
      const Value& value = *ir.values[static_cast<std::size_t>(output.value)];
      CHECK((value.producer < 0 || is_made[static_cast<std::size_t>(output.value)]));
    }
  }
}

TEST_CASE("canonical: neither names nor the order of building matter, and positions correspond") {
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    CAPTURE(seed);
    const Graph graph = RandomGraph(seed).build(14);
    const Ir ir = seed % 2 == 0 ? graph.ir() : normalise(graph.ir());
    const Canonical canonical = canonicalise(ir);
    const Shuffled shuffled = shuffle(ir, seed);
    const Canonical other = canonicalise(shuffled.ir);
    CHECK(other.digest == canonical.digest);
    CHECK(names(shuffled.ir, other.operators) == names(ir, canonical.operators));
    REQUIRE(other.inputs.size() == canonical.inputs.size());
    for (std::size_t i = 0; i < canonical.inputs.size(); ++i) {
      CHECK(shuffled.ir.values[static_cast<std::size_t>(other.inputs[i])]->shape ==
            ir.values[static_cast<std::size_t>(canonical.inputs[i])]->shape);
    }
    CHECK(other.weights.size() == canonical.weights.size());
    CHECK(other.dims == canonical.dims);
  }
}

TEST_CASE("canonical: what stands at one position plays one part") {
  // Every input and weight has a shape or a reader of its own, so each has one place that it can
  // be.
  for (const Ir& ir : {bert_layer().ir(), llama_layer().ir(), t5_decoder_layer().ir()}) {
    const Canonical canonical = canonicalise(ir);
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const Shuffled shuffled = shuffle(ir, seed);
      const Canonical other = canonicalise(shuffled.ir);
      const auto renumbered = [&](const std::vector<int>& ids) {
        std::vector<int> result;
        std::ranges::transform(ids, std::back_inserter(result), [&](int id) {
          return shuffled.new_ids[static_cast<std::size_t>(id)];
        });
        return result;
      };
      CHECK(other.digest == canonical.digest);
      CHECK(other.inputs == renumbered(canonical.inputs));
      CHECK(other.weights == renumbered(canonical.weights));
      for (std::size_t i = 0; i < canonical.outputs.size(); ++i) {
        CHECK(other.outputs[i] ==
              shuffled.new_outputs[static_cast<std::size_t>(canonical.outputs[i])]);
      }
    }
  }
}

TEST_CASE("canonical: chains with one reader are not parted") {
  // q, k and v are built first, and in an order that parts each of them from its bias.
  Graph graph;
  const Tensor x = graph.input("x", {1, 8, 32}, DType::Float16);
  const auto weight = [&](const std::string& weight_name, const Shape& shape) {
    return graph.weight(weight_name, shape, DType::Float16);
  };
  const Tensor q = graph.matmul(x, weight("wq", {32, 32}));
  const Tensor k = graph.matmul(x, weight("wk", {32, 32}));
  const Tensor v = graph.matmul(x, weight("wv", {32, 32}));
  const Tensor q_bias = graph.add(q, weight("bq", {32}));
  const Tensor k_bias = graph.gelu(k);
  const Tensor v_bias = graph.silu(v);
  const Tensor y = graph.attention(graph.split_heads(q_bias, 2), graph.split_heads(k_bias, 2),
                                   graph.split_heads(v_bias, 2));
  graph.output("y", graph.add(graph.relu(graph.merge_heads(y)), x));
  const Ir ir = normalise(graph.ir());
  CHECK(names(ir, canonicalise(ir).operators) ==
        std::vector<std::string>{
            "matmul",    "add",     "reshape", "transpose", "matmul",    "gelu",   "reshape",
            "transpose", "matmul",  "silu",    "reshape",   "transpose", "matmul", "scale",
            "mask",      "softmax", "matmul",  "transpose", "reshape",   "relu",   "add"});
}

TEST_CASE("canonical: what no output needs is left out") {
  Graph graph = bert_layer();
  const std::string digest = graph.canonical_digest();
  graph.relu(graph.input("unused", {3}, DType::Float16));
  CHECK(graph.canonical_digest() == digest);
  CHECK(canonicalise(graph.ir()).inputs.size() == 1);
  CHECK(digest.size() == 32);
}

TEST_CASE("canonical: names of dims, captures and tables do not matter") {
  const auto build = [](const std::string& dim, const std::string& capture,
                        const std::string& table) {
    Graph graph;
    const Dim seq = graph.dim(dim, 1, 64);
    const Tensor q = graph.input("q", {2, 4, seq, 16}, DType::Float16);
    const Tensor slope = graph.weight(capture, {4}, DType::Float32);
    const Table limits(table, std::vector<std::int64_t>{1, 5, 2});
    graph.output("y",
                 graph.attention(q, q, q,
                                 {.mask = key_position() < limits[query_position() % 3] || causal(),
                                  .score = score() + graph.capture(slope)(head_index())}));
    return graph.canonical_digest();
  };
  CHECK(build("seq", "slope", "limits") == build("n", "bias", "ends"));
}

using Mutation = std::function<void(Ir&)>;

Operator& find(Ir& ir, OpKind kind) {
  return *std::ranges::find(ir.operators, kind, &Operator::kind);
}

Mutation set(OpKind kind, const std::string& attribute_name, const Attribute& value) {
  return [=](Ir& ir) { find(ir, kind).attributes.insert_or_assign(attribute_name, value); };
}

Mutation change_value(int id, const std::function<void(Value&)>& change) {
  return [=](Ir& ir) {
    auto& value = ir.values[static_cast<std::size_t>(id)];
    Value changed = *value;
    change(changed);
    value = std::make_shared<const Value>(std::move(changed));
  };
}

Graph everything() {
  Graph graph;
  const Dim seq = graph.dim("seq", 1, 64);
  const Tensor x = graph.input("x", {2, seq, 32}, DType::Float16);
  const Tensor w = graph.weight("w", {32, 32}, DType::Float16);
  const Tensor a = graph.weight("a", {4}, DType::Float32);
  const Tensor b = graph.weight("b", {4}, DType::Float32);
  const Tensor lengths = graph.input("lengths", {2}, DType::Int32);
  const Table table("t", std::vector<std::int64_t>{1, 5, 2});
  const Capture ca = graph.capture(a);
  const Capture cb = graph.capture(b);
  const Tensor y = graph.split_heads(graph.scale(graph.linear(x, w), 0.5), 4);
  const Tensor z = graph.merge_heads(
      graph.attention(graph.rotary(y), y, y,
                      {.mask = key_position() < table[query_position() % 3] || causal(),
                       .score = score() * ca(head_index()) + cb(head_index()),
                       .kv_lengths = lengths}));
  graph.output("y", graph.subtract(z, graph.slice(graph.concat({x, z}, 2), 2, 8, 32)));
  graph.output("z", z);
  graph.output("a", a);  // so that a and b are not each other's image
  return graph;
}

TEST_CASE("canonical: every change of meaning changes the digest") {
  const Table other_table("t", std::vector<std::int64_t>{1, 6, 2});
  const Expr old_mask = key_position() < 3;
  const std::vector<Mutation> mutations = {
      set(OpKind::Scale, "factor", 0.25),
      set(OpKind::Rotary, "theta", 500.0),
      set(OpKind::Rotary, "style", std::string("interleaved")),
      set(OpKind::Rotary, "rotary_dim", std::int64_t{4}),
      set(OpKind::Rotary, "position", std::int64_t{1}),
      set(OpKind::Slice, "start", Dim(9)),
      set(OpKind::Slice, "length", Dim(31)),
      set(OpKind::Concat, "axis", std::int64_t{1}),
      set(OpKind::Reshape, "shape", Shape{2, Dim::symbol("seq", 1, 64), 8, 4}),
      set(OpKind::Transpose, "permutation", std::vector<std::int64_t>{0, 2, 3, 1}),
      set(OpKind::Attention, "mask", Mask(old_mask)),
      set(OpKind::Attention, "mask",
          Mask(key_position() < other_table[query_position() % 3] ||
               key_position() <= query_position())),
      set(OpKind::Attention, "score", score() * 2.0),
      set(OpKind::Attention, "scale", 1.0),
      set(OpKind::Attention, "mask_form", std::string("dense")),
      set(OpKind::MatMul, "group", std::int64_t{2}),
      [](Ir& ir) { find(ir, OpKind::Attention).attributes.erase("mask"); },
      [](Ir& ir) { find(ir, OpKind::Attention).attributes.erase("score"); },
      [](Ir& ir) { find(ir, OpKind::Attention).inputs.pop_back(); },
      [](Ir& ir) {
        std::swap(find(ir, OpKind::Attention).captures.at("a"),
                  find(ir, OpKind::Attention).captures.at("b"));
      },
      [](Ir& ir) { std::ranges::reverse(find(ir, OpKind::Subtract).inputs); },
      [](Ir& ir) { find(ir, OpKind::Subtract).kind = OpKind::Add; },
      [](Ir& ir) { find(ir, OpKind::Concat).inputs.push_back(0); },
      [](Ir& ir) { find(ir, OpKind::Scale).segment = 3; },
      [](Ir& ir) { ir.outputs.pop_back(); },
      [](Ir& ir) { ir.outputs.push_back({.name = "w", .value = 0}); },
      [](Ir& ir) { ir.outputs[1].value = find(ir, OpKind::Scale).outputs[0]; },
      change_value(0, [](Value& value) { value.dtype = DType::BFloat16; }),
      change_value(0,
                   [](Value& value) {
                     value.shape = Shape{3, Dim::symbol("seq", 1, 64), 32};
                   }),
      change_value(0,
                   [](Value& value) {
                     value.shape = Shape{2, 64, 32};
                   }),
      change_value(1, [](Value& value) { value.layout = WeightLayout::InOut; }),
      change_value(1, [](Value& value) { value.role = ValueRole::Input; }),
      [](Ir& ir) { ir.dims.at("seq") = Dim::symbol("seq", 1, 63); },
  };
  Ir base = everything().ir();
  // A matmul beside the rest, so that its attributes can change too.
  Graph with_matmul{base};
  with_matmul.output("product",
                     with_matmul.matmul(with_matmul.tensor("x"), with_matmul.tensor("w")));
  base = with_matmul.ir();
  std::vector<std::string> digests = {canonicalise(base).digest.hex()};
  for (std::size_t i = 0; i < mutations.size(); ++i) {
    CAPTURE(i);
    Ir changed = base;
    mutations[i](changed);
    const std::string digest = canonicalise(changed).digest.hex();
    CHECK(std::ranges::find(digests, digest) == digests.end());
    digests.push_back(digest);
  }
}

TEST_CASE("canonical: a long chain does not exhaust the stack") {
  Graph graph;
  Tensor x = graph.input("x", {4}, DType::Float16);
  for (int i = 0; i < 20000; ++i) {
    x = graph.relu(x);
  }
  graph.output("y", x);
  CHECK(canonicalise(graph.ir()).operators.size() == 20000);
}

}  // namespace
}  // namespace stof::graph
