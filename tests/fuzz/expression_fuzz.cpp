// Whatever the text, reading it ends in an expression or in a stof::Error. What is read prints and
// parses back to itself, is worth the same when folded, and keeps to its bounds.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "expr/cuda_text.hpp"
#include "expr/evaluate.hpp"
#include "expr/interval.hpp"
#include "expr/node.hpp"
#include "expr/skeleton.hpp"
#include "expr/transform.hpp"
#include "stof/error.hpp"

using stof::Expr;
using stof::ScalarType;
using stof::expr::Interval;

namespace {

void require(bool holds) {
  if (!holds) {
    std::abort();
  }
}

stof::ExprNames known_names() {
  stof::ExprNames names;
  for (const char* name : {"q_pos", "k_pos", "q_len", "kv_len", "head", "dim.n"}) {
    names.scalars.emplace(name, ScalarType::Int);
  }
  names.scalars.emplace("score", ScalarType::Float);
  names.scalars.emplace("flag", ScalarType::Bool);
  names.tables.emplace("t", stof::Table("t", std::vector<std::int64_t>{0, 3, -9, 512}));
  names.tables.emplace("f", stof::Table("f", std::vector<double>{0.5, -0.25}));
  names.captures.emplace("c", stof::Capture("c", stof::DType::Int32, 2));
  return names;
}

bool is_same_value(const stof::expr::Value& a, const stof::expr::Value& b) {
  const double* x = std::get_if<double>(&a);
  const double* y = std::get_if<double>(&b);
  return a == b || (x != nullptr && y != nullptr && std::isnan(*x) && std::isnan(*y));
}

void check(const Expr& expr, const stof::ExprNames& names) {
  require(stof::expr::same(expr, parse_expression(expr.text(), names)));
  const stof::expr::Bindings bindings = {{"q_pos", std::int64_t{77}},
                                         {"k_pos", std::int64_t{-5}},
                                         {"q_len", std::int64_t{0}},
                                         {"kv_len", stof::expr::kIntMin},
                                         {"head", std::int64_t{63}},
                                         {"dim.n", std::int64_t{4096}},
                                         {"score", -1.5},
                                         {"flag", true}};
  const stof::expr::Ranges ranges = {{"q_pos", Interval::integers(64, 127)},
                                     {"k_pos", Interval::integers(-64, 0)},
                                     {"q_len", Interval::integers(0, 0)},
                                     {"score", Interval::floats(-2, 2)}};
  const auto read = [](int, std::span<const std::int64_t> indices) {
    return indices[0] ^ indices[1];
  };
  const stof::expr::Value value = stof::expr::evaluate(expr, bindings, read);
  require(bounds(expr, ranges).contains(stof::expr::word_of(value)));
  require(is_same_value(value, stof::expr::evaluate(stof::expr::fold(expr), bindings, read)));
  stof::expr::digest(expr);
  stof::expr::skeleton(expr);
  stof::expr::CudaNames texts = {{"t", "t"}, {"f", "f"}, {"c", "c"}};
  for (const auto& entry : names.scalars) {
    texts[entry.first] = "x";
  }
  cuda_text(expr, texts, ranges);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const stof::ExprNames names = known_names();
  try {
    check(parse_expression({reinterpret_cast<const char*>(data), size}, names), names);
  } catch (const stof::Error&) {
  }
  return 0;
}
