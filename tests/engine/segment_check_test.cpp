#include "engine/segment_check.hpp"

#include <algorithm>
#include <limits>

#include <doctest/doctest.h>

#include "base/device_profile.hpp"
#include "fusion/lowering_testing.hpp"
#include "fusion/prepare.hpp"
#include "graph/normalise.hpp"
#include "reference/testing.hpp"
#include "stof/error.hpp"
#include "stof/stof.hpp"

namespace {

using stof::DType;
using stof::Graph;
using stof::engine::checked_rows;
using stof::engine::Expectation;
using stof::engine::ExpectedRows;
using stof::engine::HostTensors;
namespace engine = stof::engine;
namespace graph = stof::graph;

// x w^T + bias, GELU, and a sum with r: rows that depend on nothing but themselves.
graph::Ir rows_graph(std::int64_t rows) {
  Graph built("rows");
  const auto f16 = DType::Float16;
  auto x = built.input("x", {1, rows, 32}, f16);
  auto r = built.input("r", {1, rows, 48}, f16);
  auto y = built.linear(x, built.weight("w", {48, 32}, f16), built.weight("b", {48}, f16));
  y = built.add(built.activation(y, stof::Activation::Gelu), r);
  built.output(
      "y", built.layer_norm(y, built.weight("gamma", {48}, f16), built.weight("beta", {48}, f16)));
  return graph::normalise_but_attention(built.ir());
}

graph::Ir attention_graph(std::int64_t length) {
  Graph built("attention");
  const auto f16 = DType::Float16;
  auto q = built.input("q", {1, 2, length, 64}, f16);
  auto k = built.input("k", {1, 2, length, 64}, f16);
  auto v = built.input("v", {1, 2, length, 64}, f16);
  built.output("o", built.attention(q, k, v, {.mask = stof::causal()}));
  return graph::normalise_but_attention(built.ir());
}

// Views are of tensors that may be written, which these are not.
std::vector<double> whole(const graph::Ir& ir, const HostTensors& given) {
  HostTensors tensors = given;
  return stof::testing::run_exactly(Graph(ir), tensors).begin()->second.values;
}

void check_against_whole(const graph::Ir& ir) {
  const HostTensors tensors = engine::random_tensors(ir);
  const Expectation expectation = engine::expect(ir, tensors);
  REQUIRE(expectation.outputs.size() == 1);
  const ExpectedRows& rows = expectation.outputs.front();
  const std::vector<double> all = whole(ir, tensors);
  for (std::size_t i = 0; i < rows.rows.size(); ++i) {
    for (std::int64_t column = 0; column < rows.row_elements; ++column) {
      const auto at = static_cast<std::size_t>(rows.rows[i] * rows.row_elements + column);
      const auto here =
          i * static_cast<std::size_t>(rows.row_elements) + static_cast<std::size_t>(column);
      REQUIRE(rows.values[here] == doctest::Approx(all[at]).epsilon(1e-12));
    }
  }
}

}  // namespace

TEST_CASE("at most 64 rows are looked at: the first, the last and the ragged tail among them") {
  CHECK(checked_rows(3) == std::vector<std::int64_t>{0, 1, 2});
  CHECK(checked_rows(64).size() == 64);
  for (const std::int64_t count : {65, 100, 129, 1000, 4096, 32768}) {
    const std::vector<std::int64_t> rows = checked_rows(count);
    CHECK(rows.size() <= 64);
    CHECK(rows.size() >= 50);
    CHECK(rows.front() == 0);
    CHECK(rows.back() == count - 1);
    CHECK(std::ranges::count(rows, (count - 1) / 64 * 64) == 1);
    CHECK(std::ranges::is_sorted(rows));
  }
}

TEST_CASE("rows that depend on themselves alone are computed alone, and are those of the whole") {
  check_against_whole(rows_graph(30));
  check_against_whole(rows_graph(777));
}

TEST_CASE("others are computed whole, or skipped with a reason where that takes too long") {
  check_against_whole(attention_graph(100));
  const graph::Ir large = attention_graph(16384);
  const Expectation expectation = engine::expect(large, {});
  CHECK(expectation.outputs.empty());
  CHECK(expectation.skipped.find("operations on the host") != std::string::npos);
}

TEST_CASE("random data is the same each time, and of the size of normal numbers") {
  const graph::Ir ir = rows_graph(500);
  HostTensors first = engine::random_tensors(ir);
  HostTensors second = engine::random_tensors(ir);
  for (auto& [name, tensor] : first) {
    CHECK(std::ranges::equal(tensor.bytes(), second.at(name).bytes()));
  }
  double squares = 0;
  const stof::HostTensor& x = first.at("x");
  for (std::int64_t i = 0; i < x.element_count(); ++i) {
    squares += x.at(i) * x.at(i);
  }
  CHECK(squares / static_cast<double>(x.element_count()) == doctest::Approx(1).epsilon(0.05));
}

TEST_CASE("ids are rows of their table") {
  Graph built("ids");
  auto ids = built.input("ids", {1, 300}, DType::Int32);
  built.output("y", built.embedding(built.weight("table", {17, 8}, DType::Float16), ids));
  const graph::Ir ir = graph::normalise_but_attention(built.ir());
  const HostTensors tensors = engine::random_tensors(ir);
  for (std::int64_t i = 0; i < 300; ++i) {
    CHECK(tensors.at("ids").at(i) >= 0);
    CHECK(tensors.at("ids").at(i) < 17);
  }
}

TEST_CASE("masks in scores show all keys") {
  Graph built("attention");
  const auto q = built.input("q", {1, 2, 64, 64}, DType::Float16);
  const stof::MaskInput mask = built.mask_input("m", {1, 1, 64, 64}, {});
  built.output("y", built.attention(q, q, q, {.mask_input = mask}));
  stof::fusion::MaskArraysByMask masks;
  const HostTensors tensors = engine::random_tensors(stof::fusion::prepare(
      graph::normalise_but_attention(built.ir()), stof::testing::shipped_templates(),
      stof::base::shipped_profile("h200"), masks));
  const stof::HostTensor& seen = tensors.at("m");
  for (std::int64_t i = 0; i < seen.element_count(); ++i) {
    CHECK(seen.at(i) == 1);
  }
}

TEST_CASE("wrong rows are found, however few") {
  const graph::Ir ir = rows_graph(200);
  const Expectation expectation = engine::expect(ir, engine::random_tensors(ir));
  const ExpectedRows& rows = expectation.outputs.front();
  std::vector<double> actual = rows.values;
  CHECK_FALSE(engine::mismatch(rows, actual));
  for (double& value : actual) {
    value *= 1 + 1e-4;  // as float16 would round
  }
  CHECK_FALSE(engine::mismatch(rows, actual));
  SUBCASE("the last row is missing") {
    std::fill(actual.end() - rows.row_elements, actual.end(), 0.0);
    CHECK(engine::mismatch(rows, actual)->starts_with("row 199 is off by 1 of its length"));
  }
  SUBCASE("one number was not written") {
    actual[70] = std::numeric_limits<double>::quiet_NaN();
    CHECK(engine::mismatch(rows, actual).has_value());
  }
  SUBCASE("a row has the epsilon or the residual of another") {
    std::swap_ranges(actual.begin(), actual.begin() + rows.row_elements,
                     actual.begin() + rows.row_elements);
    CHECK(engine::mismatch(rows, actual)->starts_with("row 0 "));
  }
}
