#include "fusion/scheme.hpp"

#include <random>
#include <set>

#include <doctest/doctest.h>

#include "error_of.hpp"
#include "fusion/scheme_testing.hpp"
#include "graph/layers.hpp"
#include "graph/normalise.hpp"
#include "graph/op_info.hpp"
#include "graph/random_graph.hpp"
#include "models/bert.hpp"
#include "models/gpt2.hpp"
#include "models/llama.hpp"
#include "models/t5.hpp"
#include "models/vit.hpp"

using namespace stof;  // NOLINT(google-build-using-namespace)
using namespace stof::fusion;
using namespace stof::testing;
using stof::test::error_of;

namespace {

std::vector<std::string> names(const graph::Ir& ir, const OperatorOrder& order) {
  std::vector<std::string> all;
  for (const SchemeOperator& one : order) {
    all.emplace_back(graph::name(ir.operators[static_cast<std::size_t>(one.op)].kind));
  }
  return all;
}

// What every order of a graph is: one place an operator, edges that lead on, no pinned operators
// apart.
void check_order(const graph::Ir& ir, const OperatorOrder& order) {
  std::set<int> operators;
  for (std::size_t place = 0; place < order.size(); ++place) {
    const SchemeOperator& one = order[place];
    CHECK(operators.insert(one.op).second);
    const auto op_class =
        graph::op_info(ir.operators[static_cast<std::size_t>(one.op)].kind).op_class;
    CHECK(op_class != graph::OpClass::View);
    for (const int source : one.reads) {
      CHECK(source < static_cast<int>(place));
      const auto& readers = order[static_cast<std::size_t>(source)].readers;
      CHECK(std::count(readers.begin(), readers.end(), static_cast<int>(place)) == 1);
    }
  }
  std::map<int, std::pair<int, int>> pinned;  // the first place and how many
  for (std::size_t place = 0; place < order.size(); ++place) {
    if (order[place].pinned >= 0) {
      auto& [first, count] =
          pinned.try_emplace(order[place].pinned, static_cast<int>(place), 0).first->second;
      CHECK(static_cast<int>(place) == first + count);
      ++count;
    }
  }
}

}  // namespace

TEST_CASE("figure 7 of the paper: digits, code and segments") {
  const Scheme scheme = Scheme::from_text("0 1 00000 111 000 11");
  CHECK(scheme.hex() == "20e3");
  CHECK(scheme.text() == "0 1 00000 111 000 11");
  CHECK(scheme.segments() ==
        std::vector<Segment>{{0, 1}, {1, 2}, {2, 7}, {7, 10}, {10, 13}, {13, 15}});
  CHECK(Scheme::from_hex("20e3", 15) == scheme);
  CHECK(Scheme::from_text("1 0 11111 000 111 00") == scheme);
  CHECK(Scheme::of_segments(scheme.segments()) == scheme);
  CHECK(is_legal(bert_layer_of_the_paper(), scheme, no_escape));
}

TEST_CASE("every scheme is its segments, its code and its text") {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    std::vector<bool> digits(1 + random() % 70);
    for (std::size_t i = 0; i < digits.size(); ++i) {
      digits[i] = random() % 2 != 0;
    }
    const Scheme scheme(digits);
    CHECK_FALSE(scheme.digits().front());
    digits.flip();
    CHECK(Scheme(digits) == scheme);
    CHECK(Scheme::from_hex(scheme.hex(), digits.size()) == scheme);
    CHECK(Scheme::from_text(scheme.text()) == scheme);
    CHECK(Scheme::of_segments(scheme.segments()) == scheme);
    int next = 0;
    for (const Segment& segment : scheme.segments()) {
      CHECK(segment.begin == next);
      CHECK(segment.size() > 0);
      next = segment.end;
    }
    CHECK(next == static_cast<int>(digits.size()));
  }
  CHECK(Scheme({}).hex().empty());
  CHECK(Scheme({}).segments().empty());
}

TEST_CASE("codes that are none are refused") {
  CHECK(error_of<GraphError>([] { Scheme::from_hex("20e", 15); }) ==
        "scheme: '20e' has 3 hex digits, 15 operators take 4");
  CHECK(error_of<GraphError>([] { Scheme::from_hex("20x3", 15); }) ==
        "scheme: 'x' in '20x3' is no hex digit");
  CHECK(error_of<GraphError>([] { Scheme::from_hex("60e3", 15); }) ==
        "scheme: '60e3' does not start with the digit 0 for 15 operators");
  CHECK(error_of<GraphError>([] { Scheme::from_text("0 2"); }) ==
        "scheme: '2' in '0 2' is no binary digit");
  CHECK_THROWS_AS(Scheme::of_segments({{0, 2}, {3, 4}}), InternalError);
}

TEST_CASE("what no kernel can run") {
  const OperatorOrder order = bert_layer_of_the_paper();
  const auto why = [&](int begin, int end) {
    return illegality(order, {begin, end}, no_escape).value_or("");
  };
  CHECK(why(0, 2) == "");
  CHECK(why(2, 7) == "");
  CHECK(why(3, 7) == "it cuts pinned operators apart at 3");
  CHECK(why(2, 6) == "it cuts pinned operators apart at 6");
  CHECK(why(1, 7) == "");
  CHECK(why(0, 7) == "an attention stands with another compute-intensive operator");
  CHECK(why(7, 12) == "the result of operator 9 is read outside");
  CHECK(why(7, 13) == "it has 3 compute-intensive operators, the most is 2");
  CHECK(why(9, 13) == "the result of operator 9 is read outside");
  CHECK_FALSE(illegality(order, {9, 13}, [](const Segment&, int place) { return place == 9; }));
}

TEST_CASE("a BERT layer in canonical order") {
  const graph::Ir apart = graph::normalise(graph::bert_layer().ir());
  const OperatorOrder order = operator_order(apart);
  check_order(apart, order);
  CHECK(names(apart, order) == std::vector<std::string>{"matmul", "add", "matmul", "scale", "mask",
                                                        "softmax", "matmul", "matmul", "add", "add",
                                                        "layer_norm", "matmul", "add", "gelu",
                                                        "matmul", "add", "add", "layer_norm"});
  CHECK(is_legal(order, Scheme::from_text("00 11111 000 1 000 111 0"), no_escape));
  CHECK_FALSE(is_legal(order, Scheme::from_text("00 1111 0000 1 000 111 0"), no_escape));

  const graph::Ir whole = graph::normalise_but_attention(graph::bert_layer().ir());
  CHECK(operator_order(whole).size() == order.size() - 4);
}

TEST_CASE("the five models have an order, and two operators an attention at most") {
  const std::vector<Graph> graphs = {
      models::bert({.num_hidden_layers = 2}, {}), models::gpt2({.n_layer = 2}, {}),
      models::t5({.num_layers = 2}, {}), models::vit({.num_hidden_layers = 2}, {}),
      models::llama({.num_hidden_layers = 2}, {})};
  for (const Graph& graph : graphs) {
    for (const graph::Ir& ir :
         {graph::normalise(graph.ir()), graph::normalise_but_attention(graph.ir())}) {
      INFO(graph.ir().name);
      const OperatorOrder order = operator_order(ir);
      check_order(ir, order);
      CHECK(order.size() > 20);
      // Each operator alone, but for pinned ones, is always legal.
      std::vector<bool> digits;
      for (std::size_t place = 0; place < order.size(); ++place) {
        const bool is_pinned_on =
            place > 0 && order[place].pinned >= 0 && order[place].pinned == order[place - 1].pinned;
        digits.push_back(place > 0 && (digits.back() != !is_pinned_on));
      }
      CHECK(is_legal(order, Scheme(digits), no_escape));
    }
  }
}

TEST_CASE("random graphs: no circle leads through a segment") {
  std::mt19937 random(11);
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const Graph graph = graph::RandomGraph(seed).build(20);
    const graph::Ir ir = graph::normalise(graph.ir());
    const OperatorOrder order = operator_order(ir);
    check_order(ir, order);
    for (int round = 0; round < 10; ++round) {
      std::vector<bool> digits(order.size());
      for (std::size_t i = 0; i < digits.size(); ++i) {
        digits[i] = random() % 2 != 0;
      }
      const Scheme scheme(digits);
      std::vector<int> segment_of;
      for (const Segment& segment : scheme.segments()) {
        segment_of.insert(segment_of.end(), static_cast<std::size_t>(segment.size()),
                          segment.begin);
      }
      for (std::size_t place = 0; place < order.size(); ++place) {
        for (const int source : order[place].reads) {
          CHECK(segment_of[static_cast<std::size_t>(source)] <= segment_of[place]);
        }
      }
    }
  }
}
