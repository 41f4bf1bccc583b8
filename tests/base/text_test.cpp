#include "base/text.hpp"

#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

using stof::base::counted;
using stof::base::nearest;
using stof::base::quote;

TEST_CASE("a name is quoted, and what a terminal would obey is spelt out") {
  CHECK(quote("w_qkv") == "\"w_qkv\"");
  CHECK(quote("") == "\"\"");
  CHECK(quote("\x1b[31m\n\x7f") == "\"\\x1b[31m\\x0a\\x7f\"");
  CHECK(quote("größe") == "\"größe\"");
}

TEST_CASE("a long name is cut between characters") {
  CHECK(quote(std::string(64, 'a')) == fmt::format("\"{:a<64}\"", ""));
  CHECK(quote(std::string(65, 'a')) == fmt::format("\"{:a<64}…\"", ""));
  CHECK(quote(std::string(63, 'a') + "öö") == fmt::format("\"{:a<63}…\"", ""));
}

TEST_CASE("a misspelt name is near the one that is meant") {
  const std::vector<std::string> names = {"attention", "add", "linear"};
  CHECK(nearest("atention", names) == "attention");
  CHECK(nearest("attension", names) == "attention");
  CHECK(nearest("linaer", names) == "linear");
  CHECK(nearest("convolution", names).empty());
  CHECK(nearest("xyz", names).empty());  // as far as "add" is long
  CHECK(nearest(std::string(65, 'a'), names).empty());
  CHECK(nearest("add", {}).empty());
}

TEST_CASE("one is counted in the singular, all other numbers in the plural") {
  CHECK(counted(1, "launch", "launches") == "1 launch");
  CHECK(counted(0, "launch", "launches") == "0 launches");
  CHECK(counted(12, "launch", "launches") == "12 launches");
}
