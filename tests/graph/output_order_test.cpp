#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "graph/canonical.hpp"
#include "graph/normalise.hpp"
#include "layers.hpp"
#include "random_graph.hpp"

namespace stof::graph {
namespace {

using Pair = std::pair<int, int>;

// Inputs, and the sum of each pair of them as an output.
Graph sums(int inputs, const std::vector<Pair>& pairs) {
  Graph graph;
  std::vector<Tensor> x;
  for (int i = 0; i < inputs; ++i) {
    x.push_back(graph.input("x" + std::to_string(i), {4}, DType::Float16));
  }
  for (const auto& [a, b] : pairs) {
    graph.output("sum" + std::to_string(a) + "_" + std::to_string(b),
                 graph.add(x[static_cast<std::size_t>(a)], x[static_cast<std::size_t>(b)]));
  }
  return graph;
}

// Rings of these lengths, one after the other.
std::vector<Pair> rings(const std::vector<int>& lengths) {
  std::vector<Pair> pairs;
  int first = 0;
  for (const int length : lengths) {
    for (int i = 0; i < length; ++i) {
      pairs.emplace_back(first + i, first + (i + 1) % length);
    }
    first += length;
  }
  return pairs;
}

std::vector<Pair> both_ways(std::vector<Pair> pairs) {
  const std::size_t count = pairs.size();
  for (std::size_t i = 0; i < count; ++i) {
    pairs.emplace_back(pairs[i].second, pairs[i].first);
  }
  return pairs;
}

// Two rails and rungs; where it is twisted, the rails are one ring.
std::vector<Pair> ladder(int rungs, bool is_twisted) {
  std::vector<Pair> pairs =
      rings(is_twisted ? std::vector<int>{2 * rungs} : std::vector<int>{rungs, rungs});
  for (int i = 0; i < rungs; ++i) {
    pairs.emplace_back(i, i + rungs);
  }
  return both_ways(pairs);
}

// The digest, which must be the same in other orders of building.
std::string digest_in_any_order(const Graph& graph, std::uint64_t shuffles = 12) {
  std::string digest = graph.canonical_digest();
  for (std::uint64_t seed = 0; seed < shuffles; ++seed) {
    CAPTURE(seed);
    CHECK(canonicalise(shuffle(graph.ir(), seed).ir).digest.hex() == digest);
  }
  return digest;
}

TEST_CASE("output order: rings") {
  std::set<std::string> digests;
  for (int length = 3; length <= 12; ++length) {
    CAPTURE(length);
    digests.insert(digest_in_any_order(sums(length, rings({length}))));
    digests.insert(digest_in_any_order(sums(length, both_ways(rings({length})))));
  }
  CHECK(digests.size() == 20);
}

TEST_CASE("output order: alike around each output, yet not the same") {
  const std::vector<std::vector<int>> lengths = {{12},   {6, 6},    {4, 4, 4}, {3, 3, 3, 3},
                                                 {3, 9}, {3, 3, 6}, {5, 7},    {4, 8}};
  std::set<std::string> digests;
  for (const std::vector<int>& lengths_of_one : lengths) {
    digests.insert(digest_in_any_order(sums(12, rings(lengths_of_one))));
  }
  CHECK(digests.size() == lengths.size());
  CHECK(sums(6, rings({3, 3})).canonical_digest() != sums(6, rings({6})).canonical_digest());
}

TEST_CASE("output order: ladders, straight and twisted") {
  for (const int rungs : {3, 4, 6}) {
    CHECK(digest_in_any_order(sums(2 * rungs, ladder(rungs, false))) !=
          digest_in_any_order(sums(2 * rungs, ladder(rungs, true))));
  }
}

TEST_CASE("output order: all pairs") {
  for (const int inputs : {3, 5, 8}) {
    std::vector<Pair> pairs;
    for (int a = 0; a < inputs; ++a) {
      for (int b = 0; b < inputs; ++b) {
        pairs.emplace_back(a, b);
      }
    }
    digest_in_any_order(sums(inputs, pairs));
  }
}

// Whether some renumbering of the inputs turns one set of pairs into the other.
bool are_same(int inputs, const std::vector<Pair>& a, const std::vector<Pair>& b) {
  std::vector<int> to(static_cast<std::size_t>(inputs));
  std::iota(to.begin(), to.end(), 0);
  const std::set<Pair> wanted(b.begin(), b.end());
  do {
    std::set<Pair> moved;
    for (const auto& [from, end] : a) {
      moved.emplace(to[static_cast<std::size_t>(from)], to[static_cast<std::size_t>(end)]);
    }
    if (moved == wanted) {
      return true;
    }
  } while (std::ranges::next_permutation(to).found);
  return false;
}

TEST_CASE("output order: equal digests are those of graphs that are the same") {
  constexpr int kInputs = 5;
  constexpr std::uint64_t kSeed = 7;
  std::mt19937_64 random(kSeed);
  std::vector<Pair> all;
  for (int a = 0; a < kInputs; ++a) {
    for (int b = 0; b < kInputs; ++b) {
      all.emplace_back(a, b);
    }
  }
  for (const int count : {3, 5, 7}) {
    std::map<std::string, std::vector<Pair>> found;
    for (int i = 0; i < 120; ++i) {
      std::ranges::shuffle(all, random);
      std::vector<Pair> pairs(all.begin(), all.begin() + count);
      const std::string digest = sums(kInputs, pairs).canonical_digest();
      const auto [same, is_new] = found.emplace(digest, pairs);
      CHECK((is_new || are_same(kInputs, same->second, pairs)));
    }
    for (auto a = found.begin(); a != found.end(); ++a) {
      for (auto b = found.begin(); b != a; ++b) {
        CHECK_FALSE(are_same(kInputs, a->second, b->second));
      }
    }
  }
}

// The products of inputs and weights, by their numbers.
Graph products(const std::vector<Pair>& pairs) {
  Graph graph;
  std::map<int, Tensor> x;
  std::map<int, Tensor> w;
  for (const auto& [a, b] : pairs) {
    if (!x.contains(a)) {
      x.emplace(a, graph.input("x" + std::to_string(a), {4, 8}, DType::Float16));
    }
    if (!w.contains(b)) {
      w.emplace(b, graph.weight("w" + std::to_string(b), {8, 8}, DType::Float16));
    }
    graph.output("y" + std::to_string(a) + "_" + std::to_string(b),
                 graph.relu(graph.linear(x.at(a), w.at(b))));
  }
  return graph;
}

TEST_CASE("output order: equal components, tied inputs and tied weights") {
  const std::vector<std::vector<Pair>> wirings = {
      {{0, 0}, {1, 1}, {2, 2}, {3, 3}, {4, 4}, {5, 5}},  // six towers
      {{0, 0}, {1, 0}, {2, 0}, {3, 0}, {4, 0}, {5, 0}},  // with one weight
      {{0, 0}, {0, 1}, {0, 2}, {0, 3}, {0, 4}, {0, 5}},  // with one input
      {{0, 0}, {1, 0}, {2, 0}, {3, 1}, {4, 1}, {5, 1}},  // with a weight for three
      {{0, 0}, {0, 1}, {0, 2}, {1, 3}, {1, 4}, {1, 5}},  // with an input for three
      {{0, 0}, {0, 1}, {0, 2}, {1, 0}, {1, 1}, {1, 2}},  // two inputs, three weights
      {{0, 0}, {0, 1}, {1, 1}, {1, 2}, {2, 2}, {2, 0}},  // in a ring
      {{0, 0}, {0, 1}, {1, 0}, {1, 1}, {2, 2}, {2, 3}},  // two, and one apart
  };
  std::set<std::string> digests;
  for (const std::vector<Pair>& wiring : wirings) {
    digests.insert(digest_in_any_order(products(wiring)));
  }
  CHECK(digests.size() == wirings.size());
  std::vector<Pair> experts;
  for (int i = 0; i < 64; ++i) {
    experts.emplace_back(0, i);
  }
  digest_in_any_order(products(experts), 3);
}

TEST_CASE("output order: one value as several outputs") {
  Graph graph = sums(4, rings({4}));
  for (const std::string name : {"again", "and again"}) {
    graph.output(name, graph.tensor("add_4"));
  }
  digest_in_any_order(graph);
}

TEST_CASE("output order: which extents are one symbol counts") {
  const auto build = [](const std::vector<std::string>& symbols) {
    Graph graph;
    for (std::size_t i = 0; i < symbols.size(); ++i) {
      const std::string number = std::to_string(i);
      const Dim dim = graph.dim(symbols[i], 1, 64);
      graph.output("y" + number, graph.relu(graph.input("x" + number, {dim}, DType::Float16)));
    }
    return digest_in_any_order(graph);
  };
  CHECK(build({"a", "a", "b"}) == build({"c", "a", "a"}));
  CHECK(build({"a", "a", "b", "b"}) == build({"a", "b", "a", "b"}));
  CHECK(build({"a", "a", "b", "b"}) != build({"a", "a", "a", "b"}));
}

TEST_CASE("output order: which operators are one segment counts") {
  const auto build = [](const std::vector<int>& segments) {
    Graph graph;
    const Tensor x = graph.input("x", {4}, DType::Float16);
    for (std::size_t i = 0; i < segments.size(); ++i) {
      graph.output("y" + std::to_string(i), graph.relu(x));
    }
    Ir ir = graph.ir();
    for (std::size_t i = 0; i < segments.size(); ++i) {
      ir.operators[i].segment = segments[i];
    }
    return digest_in_any_order(Graph(std::move(ir)));
  };
  CHECK(build({0, 0, 1, -1}) == build({-1, 3, 1, 3}));
  CHECK(build({0, 0, 1, 1}) == build({0, 1, 1, 0}));
  CHECK(build({0, 0, 1, 1}) != build({0, 0, 0, 1}));
}

TEST_CASE("output order: what no output needs does not count") {
  Graph graph = sums(3, {{0, 1}, {1, 2}, {2, 0}, {0, 2}});
  const std::string digest = graph.canonical_digest();
  graph.exp(graph.tensor("x1"));
  graph.relu(graph.tensor("add_5"));
  CHECK(digest_in_any_order(graph) == digest);
}

TEST_CASE("output order: operators of a segment below several outputs") {
  // Whichever output is reached first, the rest of the segment comes along, in an order that must
  // not be that of building.
  Graph graph;
  const Tensor x = graph.relu(graph.input("x", {4}, DType::Float16));
  graph.output("exp", graph.shift(graph.exp(x), 1));
  graph.output("tanh", graph.shift(graph.tanh(x), 2));
  graph.output("sqrt", graph.shift(graph.sqrt(x), 3));
  Ir ir = graph.ir();
  for (Operator& op : ir.operators) {
    op.segment = op.kind == OpKind::Shift ? -1 : 0;
  }
  digest_in_any_order(Graph(std::move(ir)));
}

TEST_CASE("output order: models") {
  for (const Graph& layer : {bert_layer(), llama_layer(), t5_decoder_layer()}) {
    digest_in_any_order(layer, 4);
    digest_in_any_order(Graph(normalise(layer.ir())), 4);
  }
}

TEST_CASE("output order: the search is bounded") {
  // The cells of a Latin square, paired where they share a row, a column or a symbol: any two pairs
  // look the same from close by.
  constexpr int kSize = 12;
  std::vector<Pair> pairs;
  for (int a = 0; a < kSize * kSize; ++a) {
    for (int b = 0; b < kSize * kSize; ++b) {
      const Pair cell_a(a / kSize, a % kSize);
      const Pair cell_b(b / kSize, b % kSize);
      const bool shares_symbol =
          (cell_a.first + cell_a.second) % kSize == (cell_b.first + cell_b.second) % kSize;
      if (a != b &&
          (cell_a.first == cell_b.first || cell_a.second == cell_b.second || shares_symbol)) {
        pairs.emplace_back(a, b);
      }
    }
  }
  const auto start = std::chrono::steady_clock::now();
  CHECK(sums(kSize * kSize, pairs).canonical_digest().size() == 32);
  CHECK(sums(20000, rings({20000})).canonical_digest().size() == 32);
  // Far above what it takes, far below what it took without the bound.
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::minutes(1));
}

}  // namespace
}  // namespace stof::graph
