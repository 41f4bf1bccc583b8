#include "fusion/attention_use.hpp"

#include <doctest/doctest.h>

using namespace stof;  // NOLINT(google-build-using-namespace)

TEST_CASE("whatever a template takes of windows with global tokens, it is for these alone") {
  contract::TemplateContract contract;
  contract.launch.arguments = {{.kind = contract::ArgumentKind::Mask, .name = "order"}};
  contract.scalars_read = {"dim.global_heads", "mask.long_tiles"};
  CHECK_FALSE(fusion::takes_global_tokens(contract));
  contract.scalars_read.insert("mask.global_tiles");
  CHECK(fusion::takes_global_tokens(contract));
  contract.scalars_read = {};
  contract.launch.arguments[0].name = "local_bits";
  CHECK(fusion::takes_global_tokens(contract));
}

TEST_CASE("a template that takes a bitmap of every tile") {
  contract::TemplateContract contract;
  contract.launch.arguments = {{.kind = contract::ArgumentKind::Mask, .name = "bitmaps"}};
  CHECK_FALSE(fusion::takes_all_bitmaps(contract));
  contract.launch.arguments[0].name = "all_bitmaps";
  CHECK(fusion::takes_all_bitmaps(contract));
}
