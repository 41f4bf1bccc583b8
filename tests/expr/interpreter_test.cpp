#include "expr/interpreter.hpp"

#include <vector>

#include <doctest/doctest.h>

#include "expr/semantics.hpp"

using stof::Expr;
using stof::expr::compile;
using stof::expr::Interpreter;

TEST_CASE("a listed scalar has a word of its own at each point, beside one that counts") {
  const Expr score = Expr::scalar("score", stof::ScalarType::Float);
  const Expr k_pos = Expr::scalar("k_pos");
  Interpreter interpreter(compile(score * score + stof::to_float(k_pos)));
  std::vector<std::int64_t> words;
  words.reserve(Interpreter::kLanes);
  for (int i = 0; i < Interpreter::kLanes; ++i) {
    words.push_back(stof::expr::word_of(i * 0.5));
  }
  const auto& program = interpreter.program();
  std::vector<std::int64_t> scalars(2);
  scalars[static_cast<std::size_t>(*program.scalar("k_pos"))] = 100;
  for (const int count : {1, 7, Interpreter::kLanes}) {
    const auto results = interpreter.run(scalars, program.scalar("k_pos"), count,
                                         {.scalar = program.scalar("score"), .words = words});
    REQUIRE(results.size() == static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) {
      CHECK(stof::expr::float_of(results[static_cast<std::size_t>(i)]) == i * i * 0.25 + 100 + i);
    }
  }
}
