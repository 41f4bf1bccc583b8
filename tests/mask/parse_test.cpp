#include "mask/parse.hpp"

#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "error_of.hpp"

namespace stof::mask {
namespace {

TEST_CASE("parse: ready-made masks by name") {
  const std::vector<std::pair<std::string, Mask>> cases = {
      {"causal", causal()},
      {"causal()", causal()},
      {"causal_bottom_right", causal_bottom_right()},
      {"sliding_window(64, 32)", sliding_window(64, 32)},
      {"dilated( 4,2 , 3 )", dilated(4, 2, 3)},
      {"strided(7)", strided(7)},
      {"global_tokens(4)", global_tokens(4)},
      {"random_tokens(0.25, 9)", random_tokens(0.25, 9)},
      {"random_blocks(64, 2, 5)", random_blocks(64, 2, 5)},
      {"longformer(64, 32)", longformer(64, 32)},
      {"bigbird(64, 3, 1, 2, 5)", bigbird(64, 3, 1, 2, 5)},
      {"prefix(10)", prefix(10)},
      {"documents(0, 30, 100)", documents({0, 30, 100})},
      {"share_question(0, 30, 100)", share_question(std::vector<std::int32_t>{0, 30, 100})},
      {"block_causal(16)", block_causal(16)},
      {"window_2d(8, 1)", window_2d(8, 1)},
      {"key_padding(5, 9)", key_padding(std::vector<std::int64_t>{5, 9})},
  };
  for (const auto& one : cases) {
    CHECK_MESSAGE(parse_mask(one.first).digest() == one.second.digest(), one.first);
  }
  CHECK(ready_made_masks().size() == cases.size() - 1);
}

TEST_CASE("parse: expressions, and ready-made masks in them") {
  CHECK(parse_mask("k_pos <= q_pos || k_pos < 4").text() == "k_pos <= q_pos || k_pos < 4");
  const Mask mixed = parse_mask("!strided(7) && (causal || k_pos == head)");
  CHECK(mixed.digest() ==
        (!strided(7) && (causal() || Mask(key_position() == head_index()))).digest());
  // Two tables.
  const Mask packed = parse_mask("documents(0, 3, 8) || documents(0, 5, 8)");
  CHECK(packed.digest() == (documents({0, 3, 8}) || documents({0, 5, 8})).digest());
}

TEST_CASE("parse: errors say where") {
  const auto error = [](const char* text) { return test::error_of([&] { parse_mask(text); }); };
  CHECK(error("k_pos <") == "expression, column 8: expected an operand before the end");
  CHECK(error("sliding_window(1, 2") ==
        "mask: column 20: expected ',' or ')' in the arguments of sliding_window");
  CHECK(error("causal && strided(x)") == "mask: column 19: expected an integer of 32 bits");
  CHECK(error("strided(99999999999)") == "mask: column 9: expected an integer of 32 bits");
  CHECK(error("random_tokens(a, 1)") == "mask: column 15: expected a number");
  CHECK(error("strided(1, 2)") == "mask: column 8: strided(stride) takes 1 arguments, has 2");
  CHECK(error("documents()") ==
        "mask: column 10: documents(starts…) takes at least 1 arguments, has 0");
  CHECK(error("sliding_window(-1, 2)").starts_with("mask: sliding_window: left -1 is not in 0"));
  CHECK(
      error("causl").starts_with("expression, column 1: causl is not defined; known are batch, "));
  CHECK(error("causl").find("; ready-made are causal, causal_bottom_right, sliding_window, ") !=
        std::string::npos);
  CHECK(error("causa(1)").find("; ready-made are causal, ") != std::string::npos);
  CHECK(error("causal && x")
            .starts_with("expression, column 21: x is not defined; known are batch, head, k_pos, "
                         "kv_len, q_len, q_pos; ready-made are causal, "));
  CHECK(error("causal && x").ends_with("key_padding; written out it is \"(k_pos <= q_pos) && x\""));
}

}  // namespace
}  // namespace stof::mask
