#include "graph/dim_text.hpp"

#include <cstdint>
#include <limits>
#include <map>
#include <string>

#include <doctest/doctest.h>

#include "stof/error.hpp"

namespace stof::graph {
namespace {

const Dim kA = Dim::symbol("a", 1, 8);
const Dim kB = Dim::symbol("b", 0, 9);
const std::map<std::string, Dim> kSymbols = {{"a", kA}, {"b", kB}};

TEST_CASE("dim_text: what text() writes is read") {
  for (const Dim& dim : {Dim(0), Dim(-7), kA, kA * kB, kA * kA * 3 - kB + 1, Dim(0) - kA, kB - 5,
                         Dim(std::numeric_limits<std::int64_t>::min()) * kA,
                         Dim(std::numeric_limits<std::int64_t>::max())}) {
    CHECK(parse_dim(dim.text(), kSymbols) == dim);
  }
  CHECK(parse_dim(" a*2+ b - 3*a ", kSymbols) == kB - kA);
}

TEST_CASE("dim_text: what is no extent") {
  const auto parse = [](const std::string& text) { return parse_dim(text, kSymbols); };
  CHECK_THROWS_WITH(parse(""), "extent \"\": column 1: expected an integer or a dim of the graph");
  CHECK_THROWS_WITH(parse("a +"),
                    "extent \"a +\": column 4: expected an integer or a dim of the graph");
  CHECK_THROWS_WITH(parse("a c"), "extent \"a c\": column 3: expected '+', '-' or '*'");
  CHECK_THROWS_WITH(parse("2 * c"),
                    "extent \"2 * c\": column 5: expected an integer or a dim of the graph");
  CHECK_THROWS_WITH(parse("9223372036854775808"),
                    "extent \"9223372036854775808\": column 1: expected an integer of 64 bits");
  CHECK_THROWS_WITH(parse("2a"), "extent \"2a\": column 1: expected an integer of 64 bits");
  CHECK_THROWS_WITH(parse("(a)"),
                    "extent \"(a)\": column 1: expected an integer or a dim of the graph");
  CHECK_THROWS_WITH(parse(std::string(513, ' ')),
                    "extent: 513 characters are over the limit of 512");
}

}  // namespace
}  // namespace stof::graph
