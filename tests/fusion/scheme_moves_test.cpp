#include "fusion/scheme_moves.hpp"

#include <algorithm>
#include <random>

#include <doctest/doctest.h>

#include "fusion/scheme_testing.hpp"
#include "graph/normalise.hpp"
#include "graph/random_graph.hpp"

using namespace stof;  // NOLINT(google-build-using-namespace)
using namespace stof::fusion;
using namespace stof::testing;

namespace {

bool contains(const std::vector<Scheme>& schemes, const Scheme& scheme) {
  return std::find(schemes.begin(), schemes.end(), scheme) != schemes.end();
}

}  // namespace

TEST_CASE("figure 8 of the paper: expand, seize, compete") {
  const OperatorOrder order = bert_layer_of_the_paper();
  const Scheme s0 = Scheme::from_text("0 1 00000 11 0 111 00");
  const Scheme s1 = Scheme::from_text("00 11111 00 1 000 11");
  const Scheme s2 = Scheme::from_text("00 11111 00 1 0000 1");
  const Scheme s3 = Scheme::from_text("00 11111 000 1111 0");
  CHECK(s0.hex() == "20dc");
  CHECK(s1.hex() == "1f23");
  CHECK(s2.hex() == "1f21");
  CHECK(s3.hex() == "1f1e");
  for (const Scheme& scheme : {s0, s1, s2, s3}) {
    CHECK(is_legal(order, scheme, no_escape));
  }
  CHECK(expand(order, s0, no_escape).front() == s1);
  CHECK(contains(seize(order, s1, no_escape), s2));
  // The LayerNorm goes to the output product rather than to the two products behind it.
  CHECK(compete(order, s2, no_escape).front() == s3);
}

TEST_CASE("moves give legal schemes that differ by one boundary") {
  std::mt19937 random(5);
  int found = 0;
  for (std::uint64_t seed = 0; seed < 80; ++seed) {
    const graph::Ir ir = graph::normalise(graph::RandomGraph(seed).build(24).ir());
    const OperatorOrder order = operator_order(ir);
    const bool lets_all = seed % 2 == 0;
    const MayEscape may_escape = [&](const Segment&, int) { return lets_all; };
    // A legal scheme: boundaries wherever one is needed, and at random.
    std::vector<Segment> segments;
    for (int place = 0; place < static_cast<int>(order.size()); ++place) {
      if (!segments.empty()) {
        const Segment longer{segments.back().begin, place + 1};
        const bool is_pinned_on = order[static_cast<std::size_t>(place)].pinned >= 0 &&
                                  order[static_cast<std::size_t>(place)].pinned ==
                                      order[static_cast<std::size_t>(place) - 1].pinned;
        if (is_pinned_on || (random() % 2 == 0 && !illegality(order, longer, may_escape))) {
          segments.back() = longer;
          continue;
        }
      }
      segments.push_back({place, place + 1});
    }
    const Scheme scheme = Scheme::of_segments(segments);
    const std::size_t count = segments.size();
    if (!is_legal(order, scheme, may_escape)) {
      continue;  // pinned operators joined what stood before them
    }
    const auto check = [&](const std::vector<Scheme>& moved, std::size_t fewest, std::size_t most) {
      for (const Scheme& one : moved) {
        CHECK(is_legal(order, one, may_escape));
        CHECK_FALSE(one == scheme);
        CHECK(one.segments().size() >= fewest);
        CHECK(one.segments().size() <= most);
        CHECK(std::count(moved.begin(), moved.end(), one) == 1);
        ++found;
      }
    };
    check(expand(order, scheme, may_escape), count - 1, count - 1);
    check(seize(order, scheme, may_escape), count - 1, count);
    check(compete(order, scheme, may_escape), count - 1, count - 1);
  }
  CHECK(found > 200);
}

TEST_CASE("who has fewer products gets a contested operator first") {
  const OperatorOrder order = bert_layer_of_the_paper();
  // 9 stands between one product in front and two behind, 11 between one and one.
  const std::vector<Scheme> moved =
      compete(order, Scheme::from_text("00 11111 00 1 0 1 0 11"), no_escape);
  REQUIRE(moved.size() >= 2);
  CHECK(moved[0] == Scheme::from_text("00 11111 000 1 0 1 00"));
}
