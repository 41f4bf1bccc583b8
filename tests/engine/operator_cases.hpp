#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "stof/stof.hpp"

// Small graphs around each operator, and what is fused with it.
namespace stof::testing {

struct OperatorCase {
  std::string name;
  std::function<Graph(DType)> build;
};

// Attention whose Q and K, parts of a product with V, are turned; positions have so many axes.
inline Graph rotated_product(DType dtype, std::int64_t sequence, std::int64_t head_dim,
                             RotaryOptions rotary, int positions, bool has_bias) {
  Graph graph("rotated");
  const auto x = graph.scale(graph.input("x", {2, sequence, 136}, dtype), 0.2);
  const Tensor at = positions == 0   ? Tensor()
                    : positions == 1 ? graph.input("at", {sequence}, DType::Int32)
                                     : graph.input("at", {2, sequence}, DType::Int32);
  const auto heads = [&](const std::string& name, std::int64_t count) {
    const auto w = graph.weight("w" + name, {count * head_dim, 136}, dtype);
    const auto y = has_bias
                       ? graph.linear(x, w, graph.weight("b" + name, {count * head_dim}, dtype))
                       : graph.linear(x, w);
    return graph.split_heads(y, count);
  };
  const auto q = graph.rotary(heads("q", 3), rotary, at);
  const auto k = graph.rotary(heads("k", 3), rotary, at);
  const auto v = heads("v", 3);
  graph.output("y", graph.attention(q, k, v, {.mask = causal()}));
  return graph;
}

inline std::vector<OperatorCase> rotated_product_cases() {
  std::vector<OperatorCase> cases;
  for (const std::int64_t sequence : {20, 150}) {
    const auto add = [&](const char* name, std::int64_t head_dim, const RotaryOptions& rotary,
                         int positions, bool has_bias) {
      cases.push_back({fmt::format("{} of {}", name, sequence), [=](DType dtype) {
                         return rotated_product(dtype, sequence, head_dim, rotary, positions,
                                                has_bias);
                       }});
    };
    add("halves", 64, {.position = 5000}, 0, false);
    add("large heads with a bias", 128, {}, 1, true);
    add("neighbours", 64, {.style = RotaryStyle::Interleaved}, 2, true);
    add("a part of the channels", 64, {.rotary_dim = 32}, 2, false);
    add("neighbours among others", 128, {.style = RotaryStyle::Interleaved, .rotary_dim = 48}, 0,
        false);
  }
  return cases;
}

// Weights and inputs of matrix products are scaled so that results stay near 1.
inline std::vector<OperatorCase> matmul_cases() {
  std::vector<OperatorCase> cases;
  for (const auto layout : {WeightLayout::OutIn, WeightLayout::InOut}) {
    for (const auto& [m, n, k] : std::vector<std::array<std::int64_t, 3>>{{1, 64, 64},
                                                                          {3, 1000, 776},
                                                                          {4, 96, 4096},
                                                                          {17, 65, 40},
                                                                          {16, 200, 776},
                                                                          {61, 512, 2048},
                                                                          {130, 129, 72},
                                                                          {333, 770, 1000},
                                                                          {64, 7, 13},
                                                                          {1024, 256, 128},
                                                                          {4500, 1000, 64}}) {
      const std::string name = fmt::format("linear {}x{}x{} {}", m, n, k,
                                           layout == WeightLayout::OutIn ? "out_in" : "in_out");
      const Shape shape = layout == WeightLayout::OutIn ? Shape{n, k} : Shape{k, n};
      cases.push_back({name, [=, m = m, k = k](DType dtype) {
                         Graph graph("linear");
                         const auto x = graph.input("x", {m, k}, dtype);
                         const auto w = graph.weight("w", shape, dtype, {.layout = layout});
                         graph.output("y", graph.linear(x, w));
                         return graph;
                       }});
      cases.push_back({name + " bias gelu residual", [=, m = m, n = n, k = k](DType dtype) {
                         Graph graph("linear");
                         const auto x = graph.input("x", {2, m, k}, dtype);
                         const auto r = graph.input("r", {2, m, n}, dtype);
                         const auto w = graph.weight("w", shape, dtype, {.layout = layout});
                         const auto b = graph.weight("b", {n}, dtype);
                         const auto y = graph.linear(graph.scale(x, 0.1), w, b);
                         graph.output("y", graph.add(graph.gelu(y), r));
                         return graph;
                       }});
    }
  }
  cases.push_back({"batched matmul", [](DType dtype) {
                     Graph graph("matmul");
                     const auto a = graph.input("a", {3, 4, 70, 48}, dtype);
                     const auto b = graph.input("b", {3, 4, 48, 33}, dtype);
                     const auto c = graph.input("c", {33, 33}, dtype);
                     graph.output("y", graph.matmul(graph.matmul(a, b), c));
                     return graph;
                   }});
  cases.push_back({"transposed matmul", [](DType dtype) {
                     Graph graph("matmul");
                     const auto a = graph.input("a", {5, 48, 72}, dtype);
                     const auto b = graph.input("b", {5, 40, 48}, dtype);
                     graph.output("y", graph.matmul(a, b, true, true));
                     return graph;
                   }});
  return cases;
}

// activation(x g + b) * (x u + c), some with a residual behind.
inline std::vector<OperatorCase> gated_cases() {
  using Activation = Tensor (Graph::*)(const Tensor&);
  struct Size {
    std::int64_t m, n, k;
    Activation activation;
    bool has_bias, has_residual;
  };
  const std::vector<Size> sizes = {{50, 160, 64, &Graph::silu, false, false},
                                   {1, 96, 1024, &Graph::silu, false, false},
                                   {17, 65, 40, &Graph::relu, true, false},
                                   {130, 200, 72, &Graph::gelu, true, true},
                                   {333, 1000, 776, &Graph::gelu_tanh, true, false},
                                   {65, 127, 1000, &Graph::sigmoid, false, true},
                                   {700, 1376, 512, &Graph::silu, false, false},
                                   {2048, 640, 136, &Graph::gelu_tanh, false, true}};
  std::vector<OperatorCase> cases;
  for (const Size& of : sizes) {
    cases.push_back(
        {fmt::format("gated {}x{}x{}", of.m, of.n, of.k), [of](DType dtype) {
           Graph graph("gated");
           const auto x = graph.scale(graph.input("x", {2, of.m, of.k}, dtype), 0.1);
           const auto linear = [&](const std::string& name) {
             const auto w = graph.weight("w_" + name, {of.n, of.k}, dtype);
             return of.has_bias ? graph.linear(x, w, graph.weight("b_" + name, {of.n}, dtype))
                                : graph.linear(x, w);
           };
           const Tensor gate = (graph.*of.activation)(linear("gate"));
           const Tensor up = linear("up");
           const Tensor y = of.has_bias ? graph.multiply(up, gate) : graph.multiply(gate, up);
           graph.output("y",
                        of.has_residual ? graph.add(y, graph.input("r", y.shape(), dtype)) : y);
           return graph;
         }});
  }
  return cases;
}

// A norm ahead of a product, with others who read it: y = gelu(norm(x) w + b), norm(x) + y v + c.
inline std::vector<OperatorCase> normed_input_cases() {
  struct Size {
    std::int64_t m, n, k;
    bool has_bias, is_centred, has_residual;
    WeightLayout layout;
  };
  const std::vector<Size> sizes = {{64, 3072, 768, true, true, true, WeightLayout::OutIn},
                                   {333, 2304, 768, true, true, false, WeightLayout::InOut},
                                   {1, 1000, 512, false, false, true, WeightLayout::OutIn},
                                   {700, 1376, 1024, false, false, false, WeightLayout::OutIn},
                                   {3000, 256, 128, true, true, true, WeightLayout::InOut},
                                   {2048, 768, 320, false, true, true, WeightLayout::OutIn},
                                   {65, 72, 64, true, true, true, WeightLayout::OutIn},
                                   {50, 160, 72, true, true, true, WeightLayout::OutIn}};
  std::vector<OperatorCase> cases;
  for (const Size& of : sizes) {
    cases.push_back(
        {fmt::format("normed input {}x{}x{}", of.m, of.n, of.k), [of](DType dtype) {
           Graph graph("normed");
           const auto linear = [&](const Tensor& x, const std::string& name, std::int64_t n,
                                   std::int64_t k) {
             const bool is_turned = of.layout == WeightLayout::OutIn;
             const auto w = graph.weight("w_" + name, is_turned ? Shape{n, k} : Shape{k, n}, dtype,
                                         {.layout = of.layout});
             return of.has_bias ? graph.linear(x, w, graph.weight("b_" + name, {n}, dtype))
                                : graph.linear(x, w);
           };
           const auto x = graph.input("x", {2, of.m, of.k}, dtype);
           const auto gain = graph.weight("g", {of.k}, dtype);
           const auto normed = of.is_centred
                                   ? graph.layer_norm(x, gain, graph.weight("s", {of.k}, dtype))
                                   : graph.rms_norm(x, gain);
           const auto y = graph.gelu(graph.scale(linear(normed, "first", of.n, of.k), 0.1));
           graph.output("y",
                        of.has_residual
                            ? graph.add(normed, graph.scale(linear(y, "second", of.k, of.n), 0.1))
                            : y);
           return graph;
         }});
  }
  return cases;
}

// activation(x w + b) v + c + r, and the same with a gated layer in front, for few rows.
inline std::vector<OperatorCase> chained_product_cases() {
  using Activation = Tensor (Graph::*)(const Tensor&);
  struct Size {
    std::int64_t m, k, inner, n;
    Activation activation;
    bool is_gated, has_bias;
    WeightLayout layout;
  };
  const std::vector<Size> sizes = {
      {8, 768, 3072, 768, &Graph::gelu, false, true, WeightLayout::OutIn},
      {8, 1024, 4096, 1024, &Graph::gelu, false, true, WeightLayout::OutIn},
      {5, 768, 3072, 768, &Graph::gelu_tanh, false, true, WeightLayout::InOut},
      {16, 776, 2056, 520, &Graph::relu, false, false, WeightLayout::OutIn},
      {9, 1032, 1544, 1000, &Graph::silu, false, true, WeightLayout::InOut},
      {4, 1024, 2816, 1024, &Graph::silu, true, false, WeightLayout::OutIn},
      {7, 776, 2056, 520, &Graph::gelu, true, true, WeightLayout::InOut}};
  std::vector<OperatorCase> cases;
  for (const Size& of : sizes) {
    cases.push_back(
        {fmt::format("chained {}x{}x{}x{}", of.m, of.k, of.inner, of.n), [of](DType dtype) {
           Graph graph("chained");
           const auto linear = [&](const Tensor& x, const std::string& name, std::int64_t n) {
             const std::int64_t k = x.shape()[-1].value();
             const Shape shape = of.layout == WeightLayout::OutIn ? Shape{n, k} : Shape{k, n};
             const auto w = graph.weight("w_" + name, shape, dtype, {.layout = of.layout});
             return of.has_bias ? graph.linear(x, w, graph.weight("b_" + name, {n}, dtype))
                                : graph.linear(x, w);
           };
           const auto x = graph.scale(graph.input("x", {2, of.m, of.k}, dtype), 0.1);
           Tensor inner = (graph.*of.activation)(linear(x, "inner", of.inner));
           if (of.is_gated) {
             inner = graph.multiply(inner, linear(x, "up", of.inner));
           }
           const Tensor y = linear(inner, "outer", of.n);
           graph.output("y", graph.add(y, graph.input("r", y.shape(), dtype)));
           return graph;
         }});
  }
  return cases;
}

// norm(x w + b + r), and the sum where it is asked for.
inline std::vector<OperatorCase> normed_product_cases() {
  struct Size {
    std::int64_t m, n, k;
    bool has_bias, is_centred, gives_sum;
    WeightLayout layout;
  };
  const std::vector<Size> sizes = {{64, 768, 768, true, true, false, WeightLayout::OutIn},
                                   {333, 768, 72, true, true, true, WeightLayout::InOut},
                                   {1, 1024, 512, false, false, true, WeightLayout::OutIn},
                                   {700, 512, 1000, true, false, false, WeightLayout::OutIn},
                                   {3000, 256, 136, true, true, true, WeightLayout::InOut},
                                   {2048, 1024, 328, false, true, false, WeightLayout::OutIn},
                                   {65, 128, 64, true, true, true, WeightLayout::OutIn},
                                   {400, 2048, 256, true, false, true, WeightLayout::InOut}};
  std::vector<OperatorCase> cases;
  for (const Size& of : sizes) {
    cases.push_back(
        {fmt::format("normed product {}x{}x{}", of.m, of.n, of.k), [of](DType dtype) {
           Graph graph("normed");
           const auto x = graph.scale(graph.input("x", {2, of.m, of.k}, dtype), 0.1);
           const Shape shape =
               of.layout == WeightLayout::OutIn ? Shape{of.n, of.k} : Shape{of.k, of.n};
           const auto w = graph.weight("w", shape, dtype, {.layout = of.layout});
           const auto product = of.has_bias ? graph.linear(x, w, graph.weight("b", {of.n}, dtype))
                                            : graph.linear(x, w);
           const auto sum = graph.add(graph.input("r", {2, of.m, of.n}, dtype), product);
           const auto gain = graph.weight("g", {of.n}, dtype);
           graph.output("y", of.is_centred
                                 ? graph.layer_norm(sum, gain, graph.weight("s", {of.n}, dtype))
                                 : graph.rms_norm(sum, gain));
           if (of.gives_sum) {
             graph.output("sum", sum);
           }
           return graph;
         }});
  }
  return cases;
}

inline std::vector<OperatorCase> row_cases() {
  std::vector<OperatorCase> cases;
  for (const std::int64_t hidden : {1, 7, 8, 63, 768, 1000, 4096}) {
    const Shape shape = {3, 11, hidden};
    cases.push_back({fmt::format("layer_norm {}", hidden), [=](DType dtype) {
                       Graph graph("norm");
                       const auto x = graph.input("x", shape, dtype);
                       const auto r = graph.input("r", shape, dtype);
                       const auto g = graph.weight("g", {hidden}, dtype);
                       const auto b = graph.weight("b", {hidden}, dtype);
                       const auto sum = graph.add(x, r);
                       graph.output("y", graph.layer_norm(sum, g, b));
                       graph.output("sum", sum);
                       return graph;
                     }});
    cases.push_back({fmt::format("rms_norm {}", hidden), [=](DType dtype) {
                       Graph graph("norm");
                       const auto x = graph.input("x", shape, dtype);
                       const auto g = graph.weight("g", {hidden}, dtype);
                       graph.output("y", graph.gelu_tanh(graph.rms_norm(x, g)));
                       return graph;
                     }});
    cases.push_back({fmt::format("softmax {}", hidden), [=](DType dtype) {
                       Graph graph("softmax");
                       graph.output("y", graph.softmax(graph.input("x", shape, dtype)));
                       return graph;
                     }});
    cases.push_back({fmt::format("reductions {}", hidden), [=](DType dtype) {
                       Graph graph("reduce");
                       const auto x = graph.input("x", shape, dtype);
                       graph.output("sum", graph.reduce_sum(x, 2));
                       graph.output("mean", graph.reduce_mean(x, 1, true));
                       graph.output("max", graph.reduce_max(x, 0));
                       return graph;
                     }});
  }
  return cases;
}

inline std::vector<OperatorCase> other_cases() {
  return {
      {"elementwise chain",
       [](DType dtype) {
         Graph graph("chain");
         const auto x = graph.input("x", {3, 17, 40}, dtype);
         const auto row = graph.input("row", {40}, dtype);
         const auto column = graph.input("column", {17, 1}, dtype);
         auto y = graph.maximum(graph.multiply(x, row), graph.subtract(column, x));
         y = graph.tanh(graph.shift(graph.scale(y, 0.3), 0.2));
         y = graph.divide(graph.sigmoid(y), graph.shift(graph.exp(graph.minimum(x, row)), 1.0));
         graph.output("y", graph.relu(graph.sqrt(graph.reciprocal(graph.shift(y, 1.5)))));
         return graph;
       }},
      {"cast, transpose, slice, concat",
       [](DType dtype) {
         Graph graph("views");
         const auto x = graph.input("x", {4, 6, 10}, dtype);
         const auto t = graph.transpose(x, {2, 0, 1});
         const auto s = graph.slice(t, 0, 3, 5);
         const auto c = graph.concat({s, graph.slice(t, 0, 0, 2)}, 0);
         graph.output("y", graph.reshape(c, {7, 24}));
         graph.output("f", graph.cast(s, DType::Float32));
         return graph;
       }},
      {"transposed copy",
       [](DType dtype) {
         Graph graph("transposed");
         const auto x = graph.input("x", {2, 96, 160}, dtype);
         graph.output("y", graph.relu(graph.transpose(x, {0, 2, 1})));
         return graph;
       }},
      {"embedding",
       [](DType dtype) {
         Graph graph("embedding");
         const auto table = graph.weight("table", {9, 72}, dtype);
         const auto ids = graph.input("ids", {3, 5}, DType::Int32);
         const auto position = graph.weight("position", {5, 72}, dtype);
         graph.output("y", graph.add(graph.embedding(table, ids), position));
         return graph;
       }},
      {"rotary",
       [](DType dtype) {
         Graph graph("rotary");
         const auto x = graph.input("x", {2, 3, 20, 32}, dtype);
         const auto p = graph.input("p", {2, 20}, DType::Int32);
         const auto s = graph.input("s", {20}, DType::Int32);
         graph.output("half", graph.rotary(x, {.position = 5000}));
         graph.output("interleaved",
                      graph.rotary(x, {.style = RotaryStyle::Interleaved, .rotary_dim = 16}, p));
         graph.output("shared", graph.rotary(x, {}, s));
         return graph;
       }},
      {"patches",
       [](DType dtype) {
         Graph graph("patches");
         graph.output("y", graph.patches(graph.input("x", {2, 3, 12, 20}, dtype), 4));
         return graph;
       }},
      {"a sum that its norm and an epilogue read",
       [](DType dtype) {
         Graph graph("norm");
         const auto sum =
             graph.add(graph.input("x", {3, 64}, dtype), graph.input("r", {3, 64}, dtype));
         const auto norm = graph.layer_norm(sum, graph.weight("g", {64}, dtype), {});
         graph.output("y", graph.add(norm, sum));
         return graph;
       }},
      {"casts to integers",
       [](DType dtype) {
         Graph graph("casts");
         const auto x = graph.scale(graph.input("x", {5, 24}, dtype), 64.0);
         const auto ids = graph.input("ids", {5, 24}, DType::Int64);
         graph.output("int32", graph.cast(x, DType::Int32));
         graph.output("bool", graph.cast(graph.cast(ids, DType::Bool), dtype));
         graph.output("uint8", graph.cast(graph.relu(x), DType::UInt8));
         graph.output("narrow", graph.cast(ids, DType::Int32));
         graph.output("floor", graph.scale(graph.cast(graph.cast(x, DType::Int64), dtype), 0.5));
         const auto w = graph.weight("w", {24, 8}, dtype);
         graph.output("product", graph.cast(graph.matmul(x, w), DType::Int32));
         return graph;
       }},
      {"numbers that floats do not reach",
       [](DType dtype) {
         Graph graph("numbers");
         const auto x = graph.input("x", {5, 64}, dtype);
         const auto limit = graph.weight("limit", {64}, dtype);
         const auto y = graph.shift(graph.scale(x, 1e-300), 0.5);
         graph.output("y", graph.add(y, graph.minimum(graph.exp(graph.scale(y, 1e39)), limit)));
         graph.output("n", graph.layer_norm(x, limit, {}, 1e-50));
         return graph;
       }},
      {"products that share operands along some axes",
       [](DType dtype) {
         Graph graph("products");
         const auto a = graph.scale(graph.input("a", {2, 3, 40, 24}, dtype), 0.2);
         const auto b = graph.input("b", {3, 24, 33}, dtype);
         const auto c = graph.input("c", {2, 1, 16, 24}, dtype);
         graph.output("ab", graph.matmul(a, b));
         graph.output("ac", graph.relu(graph.matmul(a, c, false, true)));
         graph.output("cb", graph.matmul(c, b));
         return graph;
       }},
      {"attention that is read with channels apart",
       [](DType dtype) {
         Graph graph("attention");
         const auto q = graph.input("q", {2, 2, 40, 32}, dtype);
         const auto context = graph.attention(q, q, q, {.mask = causal()});
         graph.output("y", graph.transpose(graph.merge_heads(context), {0, 2, 1}));
         return graph;
       }},
      {"more axes than kernels take",
       [](DType dtype) {
         Graph graph("axes");
         const auto x = graph.input("x", {2, 3, 4, 5, 6}, dtype);
         const auto z = graph.input("z", {2, 1, 4, 1, 6}, dtype);
         const auto s = graph.input("s", {2, 3, 2, 3, 2, 3}, dtype);
         graph.output("reversed", graph.transpose(x, {4, 3, 2, 1, 0}));
         graph.output("sum", graph.add(x, z));
         graph.output("turned", graph.relu(graph.transpose(s, {1, 0, 3, 2, 5, 4})));
         graph.output("joined", graph.concat({graph.transpose(x, {4, 1, 2, 3, 0}),
                                              graph.transpose(x, {4, 1, 2, 3, 0})},
                                             4));
         return graph;
       }},
      {"tensors without elements",
       [](DType dtype) {
         Graph graph("empty");
         const auto x = graph.input("x", {0, 16}, dtype);
         const auto w = graph.weight("w", {24, 16}, dtype);
         const auto q = graph.reshape(x, {0, 1, 2, 8});
         const auto wide = graph.input("wide", {3, 0}, dtype);
         graph.output("y", graph.softmax(graph.gelu(graph.linear(x, w))));
         graph.output("o", graph.attention(q, q, q, {.mask = causal()}));
         graph.output("c", graph.concat({x, graph.rms_norm(x, graph.weight("g", {16}, dtype))}, 0));
         graph.output("s", graph.softmax(wide));
         graph.output("sum", graph.shift(graph.reduce_sum(wide, 1), 2.0));
         graph.output("product", graph.matmul(wide, graph.input("n", {0, 7}, dtype)));
         return graph;
       }},
      {"attention from a strided projection",
       [](DType dtype) {
         Graph graph("attention");
         const auto x = graph.scale(graph.input("x", {2, 70, 64}, dtype), 0.3);
         const auto w = graph.weight("w", {(4 + 2 * 2) * 16, 64}, dtype);
         const auto heads = graph.split_qkv(graph.linear(x, w), {.heads = 4, .kv_heads = 2});
         graph.output("y", graph.merge_heads(graph.attention(heads.q, heads.k, heads.v,
                                                             {.mask = sliding_window(9, 9)})));
         return graph;
       }},
  };
}

inline AttentionOptions with_score(const Score& score) {
  return {.mask = causal(), .score = score};
}

// Score modifiers and run-time masks. 34 heads are enough to fill a GPU.
inline std::vector<OperatorCase> attention_cases(std::int64_t heads = 4) {
  const auto with = [heads](const std::string& name,
                            const std::function<AttentionOptions(Graph&, DType)>& options,
                            std::int64_t length = 90, std::int64_t queries = 0) {
    return OperatorCase{fmt::format("{}, {} heads", name, heads), [=](DType dtype) {
                          Graph graph("attention");
                          const Shape shape = {2, heads, length, 32};
                          const Shape of_queries = {2, heads, queries == 0 ? length : queries, 32};
                          const auto q = graph.input("q", of_queries, dtype);
                          const auto k = graph.input("k", shape, dtype);
                          const auto v = graph.input("v", shape, dtype);
                          const auto result =
                              graph.attention_with_lse(q, k, v, options(graph, dtype));
                          graph.output("y", result.output);
                          graph.output("lse", result.lse);
                          return graph;
                        }};
  };
  return {
      with("alibi",
           [](Graph&, DType) {
             return with_score(score() + 0.125 * to_float(key_position() - query_position()));
           }),
      with("soft cap", [](Graph&, DType) { return with_score(5.0 * tanh(score() / 5.0)); }),
      with("relative bias",
           [heads](Graph& graph, DType dtype) {
             const auto bias = graph.capture(graph.weight("bias", {heads, 200}, dtype));
             return with_score(score() +
                               bias(head_index(), key_position() - query_position() + 100));
           }),
      with("additive bias",
           [heads](Graph& graph, DType dtype) {
             const auto bias = graph.capture(graph.input("bias", {1, heads, 90, 90}, dtype));
             return with_score(score() +
                               bias(batch_index(), head_index(), query_position(), key_position()));
           }),
      with("table",
           [heads](Graph&, DType) {
             std::vector<double> values;
             for (std::int64_t head = 0; head < heads; ++head) {
               values.push_back(1.0 / static_cast<double>(head + 2));
             }
             const Table slopes("slopes", values);
             return with_score(score() +
                               slopes[head_index()] * to_float(key_position() - query_position()));
           }),
      with("few keys",
           [](Graph&, DType) { return AttentionOptions{.mask = random_tokens(0.01, 3)}; }),
      with(
          "few keys of many",
          [](Graph&, DType) { return AttentionOptions{.mask = random_tokens(0.003, 3)}; }, 1500),
      with(
          "some keys of many",
          [](Graph&, DType) { return AttentionOptions{.mask = random_tokens(0.01, 3)}; }, 1000),
      with(
          "few queries, soft cap",
          [](Graph&, DType) {
            return AttentionOptions{.mask = sliding_window(600, 3),
                                    .score = 5.0 * tanh(score() / 5.0)};
          },
          700, 5),
      with(
          "few queries, run-time key lengths",
          [](Graph& graph, DType) {
            return AttentionOptions{.mask_input =
                                        graph.mask_input("m", {2}, {.form = MaskForm::KeyLengths})};
          },
          700, 16),
      with(
          "few queries, run-time dense mask",
          [](Graph& graph, DType) {
            return AttentionOptions{
                .mask_input = graph.mask_input("m", {2, 1, 3, 700}, {.form = MaskForm::Dense})};
          },
          700, 3),
      with("key lengths",
           [](Graph& graph, DType) {
             return AttentionOptions{.kv_lengths = graph.input("lengths", {2}, DType::Int32)};
           }),
      with("key padding",
           [](Graph& graph, DType) {
             const auto keep = graph.capture(graph.input("keep", {2, 90}, DType::Bool));
             return AttentionOptions{.mask = key_padding(keep) && sliding_window(30, 30)};
           }),
      with("run-time key lengths",
           [](Graph& graph, DType) {
             return AttentionOptions{
                 .mask_input = graph.mask_input("m", {2}, {.form = MaskForm::KeyLengths})};
           }),
      with("run-time dense mask",
           [](Graph& graph, DType) {
             return AttentionOptions{
                 .mask = causal(),
                 .mask_input = graph.mask_input("m", {2, 1, 90, 90}, {.form = MaskForm::Dense})};
           }),
  };
}

}  // namespace stof::testing
