#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include "error_of.hpp"
#include "layers.hpp"
#include "random_graph.hpp"
#include "stof/error.hpp"
#include "stof/graph.hpp"

namespace stof::graph {
namespace {

// A graph of every field, then the same with `from` once replaced by `to`.
std::string replaced(std::string_view from, std::string_view to) {
  std::string text = R"({"schema": 1, "name": "g", "dims": {"seq": {"min": 1, "max": 64}},
    "values": [
      {"name": "x", "role": "input", "dtype": "float16", "shape": [2, "seq", 8]},
      {"name": "w", "role": "weight", "dtype": "float16", "shape": [4, 8], "layout": "out_in"},
      {"name": "s", "role": "weight", "dtype": "float32", "shape": [2], "layout": "out_in"},
      {"name": "linear_3", "role": "result", "dtype": "float16", "shape": [2, "seq", 4]},
      {"name": "heads", "role": "result", "dtype": "float16", "shape": [2, "seq", 2, 2]},
      {"name": "q", "role": "result", "dtype": "float16", "shape": [2, 2, "seq", 2]},
      {"name": "y", "role": "result", "dtype": "float16", "shape": [2, 2, "seq", 2]}],
    "operators": [
      {"op": "linear", "inputs": [0, 1], "outputs": [3]},
      {"op": "reshape", "inputs": [3], "outputs": [4], "attributes": {"shape": [2, "seq", 2, 2]}},
      {"op": "transpose", "inputs": [4], "outputs": [5], "attributes": {"permutation": [0, 2, 1, 3]}},
      {"op": "attention", "inputs": [5, 5, 5], "outputs": [6],
       "attributes": {"scale": 0.5, "mask": {"expression": "k_pos <= q_pos"},
         "score": {"expression": "score + s[head]", "captures": {"s": {"dtype": "float32", "rank": 1}}}},
       "captures": {"s": 2}, "segment": 0}],
    "outputs": [{"name": "out", "value": 6}]})";
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

std::string error_of(const std::string& json) {
  return test::error_of([&] { Graph::from_json(json); });
}

std::string error_of(std::string_view from, std::string_view to) {
  return error_of(replaced(from, to));
}

TEST_CASE("json errors: the graph of these tests is sound") {
  CHECK(error_of("", "") == "no error");
}

TEST_CASE("json errors: what is no JSON") {
  CHECK(error_of("") == "json: line 1, column 1: this is no JSON");
  CHECK(error_of("{\n \"schema\": 1,\n x}") == "json: line 3, column 2: this is no JSON");
  CHECK(error_of("\"schema\": 1", "\"schema\": 1, \"schema\": 1") ==
        "json: the field \"schema\" stands twice in one object");
  CHECK(error_of(std::string(100000, '[')) == "json: it nests deeper than 600 levels");
  CHECK(error_of("[1]") == "/: found an array of 1, expected an object");
  CHECK(error_of("0.5", "1e999") == "json: it has a number that no float64 holds");
  CHECK(error_of("\"out\"", "\"\xff\"").starts_with("json: line "));
}

TEST_CASE("json errors: the document") {
  CHECK(error_of("\"schema\": 1", "\"schema\": 2") == "/schema: found 2, expected schema 1");
  CHECK(error_of("\"schema\": 1", "\"schema\": \"1\"") ==
        "/schema: found \"1\", expected an integer of 64 bits");
  CHECK(error_of("\"schema\": 1, ", "") == "/: the field \"schema\" is missing");
  CHECK(error_of("\"name\": \"g\"", "\"name\": \"g\", \"extra\": 1") ==
        "/: found the unknown field \"extra\", expected schema, name, dims, values, operators, "
        "outputs");
  CHECK(error_of("\"name\": \"g\"", "\"name\": \"\"") ==
        "/name: graph: the name \"\" is not 1 to 256 printable ASCII characters");
}

TEST_CASE("json errors: dims") {
  CHECK(error_of("\"max\": 64", "\"max\": 0") ==
        "/dims/seq: dim: seq has range [1, 0], not 0 <= min <= max");
  CHECK(error_of("\"max\": 64", "\"max\": 18446744073709551615") ==
        "/dims/seq/max: found 18446744073709551615, expected an integer of 64 bits");
  CHECK(error_of("\"max\": 64", "\"max\": 6.5") ==
        "/dims/seq/max: found 6.5, expected an integer of 64 bits");
  CHECK(error_of("{\"seq\": {\"min\": 1, \"max\": 64}}", "[]") ==
        "/dims: found an array of 0, expected an object");
}

TEST_CASE("json errors: values") {
  CHECK(error_of("\"role\": \"input\"", "\"role\": \"output\"") ==
        "/values/0/role: found \"output\", expected input, weight or result");
  CHECK(error_of("\"dtype\": \"float16\"", "\"dtype\": \"half\"") ==
        "/values/0/dtype: found \"half\", expected float16, bfloat16, float32, int32, int64, uint8 "
        "or bool");
  CHECK(error_of("[2, \"seq\", 8]", "[2, \"seq\", -8]") ==
        "/values/0: input x [2, seq, -8] has the negative extent -8");
  CHECK(error_of("[2, \"seq\", 8]", "[2, \"len\", 8]") ==
        "/values/0/shape/1: extent \"len\": column 1: expected an integer or a dim of the graph");
  CHECK(error_of("[2, \"seq\", 8]", "[2, \"seq +\", 8]") ==
        "/values/0/shape/1: extent \"seq +\": column 6: expected an integer or a dim of the graph");
  CHECK(error_of("[2, \"seq\", 8]", "[2, 2.0, 8]") ==
        "/values/0/shape/1: found 2.0, expected an integer, or the text of an extent");
  CHECK(error_of("[2, \"seq\", 8]", "[1, 1, 1, 1, 1, 1, 1, 1, 1]") ==
        "/values/0/shape: found an array of 9, expected at most 8 extents");
  CHECK(error_of("\"name\": \"w\"", "\"name\": \"x\"") ==
        "/values/1: weight x: the graph has a tensor of this name already");
  CHECK(error_of("\"out_in\"", "\"rows\"") ==
        "/values/1/layout: found \"rows\", expected out_in or in_out");
  CHECK(error_of("8]},", "8], \"layout\": \"out_in\"},") ==
        "/values/0/layout: found \"out_in\", expected none, of what is no weight");
  CHECK(error_of("\"role\": \"input\", ", "") == "/values/0: the field \"role\" is missing");
  CHECK(error_of("\"values\": [", "\"values\": [7, ") == "/values/0: found 7, expected an object");
}

TEST_CASE("json errors: operators") {
  CHECK(error_of("\"linear\"", "\"convolution\"") ==
        "/operators/0/op: found \"convolution\", expected the name of an operator");
  CHECK(error_of("\"linear\"", "\"liner\"") ==
        "/operators/0/op: found \"liner\", expected the name of an operator; did you mean linear?");
  CHECK(error_of("\"inputs\": [0, 1]", "\"inputs\": [0, -1]") ==
        "/operators/0/inputs/1: found -1, expected an integer from 0 to 6");
  CHECK(error_of("\"inputs\": [0, 1]", "\"inputs\": [0, 7]") ==
        "/operators/0/inputs/1: found 7, expected an integer from 0 to 6");
  CHECK(error_of("\"inputs\": [0, 1]", "\"inputs\": [0, \"1\"]") ==
        "/operators/0/inputs/1: found \"1\", expected an integer from 0 to 6");
  CHECK(error_of("\"inputs\": [0, 1]", "\"inputs\": [4, 1]") ==
        "/operators/0/inputs/0: found 4, expected a value that an earlier operator makes, an input "
        "or a weight");
  CHECK(error_of("\"inputs\": [0, 1]", "\"inputs\": [3, 1]") ==
        "/operators/0/inputs/0: found 3, expected a value that an earlier operator makes, an input "
        "or a weight");
  CHECK(error_of("\"inputs\": [0, 1]", "\"inputs\": [null, 1]") ==
        "/operators/0: linear: x is missing");
  CHECK(error_of("\"inputs\": [0, 1]", "\"inputs\": [0, 1, null]") ==
        "/operators/0: linear: bias is missing");
  CHECK(error_of("\"inputs\": [0, 1]", "\"inputs\": [0]") ==
        "/operators/0: linear: it has 1 inputs, it takes 2 to 3");
  CHECK(error_of("\"outputs\": [3]", "\"outputs\": [0]") ==
        "/operators/0/outputs/0: found 0, expected a result that nothing else makes");
  CHECK(error_of("\"outputs\": [4]", "\"outputs\": [3]") ==
        "/operators/1/outputs/0: found 3, expected a result that nothing else makes");
  CHECK(error_of("\"outputs\": [3]", "\"outputs\": []") ==
        "/operators/0: linear: it has 0 outputs, it gives 1");
  CHECK(error_of("[2, \"seq\", 4]", "[2, \"seq\", 5]") ==
        "/values/3/shape: found [2, seq, 5], expected [2, seq, 4], which /operators/0 gives");
  CHECK(error_of("\"result\", \"dtype\": \"float16\"", "\"result\", \"dtype\": \"float32\"") ==
        "/values/3/dtype: found float32, expected float16, which /operators/0 gives");
}

TEST_CASE("json errors: attributes, captures, segments, outputs") {
  CHECK(error_of("{\"permutation\"", "{\"order\"") ==
        "/operators/2/attributes/order: transpose has no such attribute");
  CHECK(error_of(", \"attributes\": {\"permutation\": [0, 2, 1, 3]}", "") ==
        "/operators/2: transpose: attribute permutation is missing");
  CHECK(error_of("[0, 2, 1, 3]", "[0, 2, 1, 3.5]") ==
        "/operators/2/attributes/permutation/3: found 3.5, expected an integer of 64 bits");
  CHECK(
      error_of("[0, 2, 1, 3]", "[0, 2, 1, 1]") ==
      "/operators/2: transpose: (0, 2, 1, 1) is no permutation of the 4 axes of x [2, seq, 2, 2]");
  CHECK(error_of("0.5", "\"0.5\"") ==
        "/operators/3/attributes/scale: found \"0.5\", expected a number");
  CHECK(error_of("\"k_pos <= q_pos\"", "\"k_pos <= \"")
            .starts_with("/operators/3/attributes/mask/expression: "));
  CHECK(error_of("\"k_pos <= q_pos\"", "\"k_pos + 1\"")
            .starts_with("/operators/3/attributes/mask: "));
  CHECK(error_of("\"captures\": {\"s\": 2}", "\"captures\": {}") ==
        "/operators/3: attention: the score captures s, which is bound to no tensor");
  CHECK(error_of("\"captures\": {\"s\": 2}", "\"captures\": {\"s\": 2, \"t\": 2}") ==
        "/operators/3: attention: neither mask nor score reads the captured t");
  CHECK(error_of("\"captures\": {\"s\": 2}", "\"captures\": {\"s\": 6}") ==
        "/operators/3/captures/s: found 6, expected a value that an earlier operator makes, an "
        "input or a weight");
  CHECK(error_of("\"segment\": 0", "\"segment\": -1") ==
        "/operators/3/segment: found -1, expected an integer from 0 to 2147483647");
  CHECK(error_of("{\"op\": \"linear\",", "{\"op\": \"linear\", \"segment\": 0,") ==
        "/operators: segment 0: operators outside of it stand between its own");
  CHECK(error_of("\"value\": 6", "\"value\": 9") ==
        "/outputs/0/value: found 9, expected an integer from 0 to 6");
  CHECK(error_of("[{\"name\": \"out\"", "[{\"name\": \"out\", \"value\": 0}, {\"name\": \"out\"") ==
        "/outputs/1/name: found \"out\", expected a name that no other output has");
}

TEST_CASE("json errors: a result that nothing makes") {
  CHECK(error_of(R"({"schema": 1, "name": "g", "dims": {}, "values":
      [{"name": "a", "role": "result", "dtype": "bool", "shape": []}], "operators": [],
      "outputs": []})") == "/values/0: no operator makes this result");
  CHECK(error_of(R"({"schema": 1, "name": "g", "dims": {}, "values": [], "operators": [],
      "outputs": [{"name": "y", "value": 0}]})") ==
        "/outputs/0/value: found 0, expected no id, as there are no values");
}

TEST_CASE("json errors: damaged text throws GraphError, or is a graph") {
  std::mt19937_64 random(3);
  const std::string text = Graph::Saved(t5_decoder_layer().to_json()).json;
  constexpr std::string_view kBytes = "0123456789-+.,:[]{}\"eabfx nul";
  int refused = 0;
  for (int round = 0; round < 1500; ++round) {
    std::string damaged = text;
    for (std::uint64_t i = 0; i <= random() % 3; ++i) {
      const std::size_t at = random() % damaged.size();
      switch (random() % 3) {
        case 0:
          damaged[at] = kBytes[random() % kBytes.size()];
          break;
        case 1:
          damaged.erase(at, 1 + random() % 8);
          break;
        default:
          damaged.insert(at, 1, kBytes[random() % kBytes.size()]);
      }
    }
    try {
      const Graph graph = Graph::from_json(damaged);
      CHECK(Graph::from_json(graph.to_json().json).dump() == graph.dump());
    } catch (const GraphError&) {
      ++refused;
    }
  }
  CHECK(refused > 1000);
}

}  // namespace
}  // namespace stof::graph
