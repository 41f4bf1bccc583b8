#include "base/text.hpp"

#include <string>

#include <doctest/doctest.h>

using stof::base::quote;

TEST_CASE("a name is quoted, and what a terminal would obey is spelt out") {
  CHECK(quote("w_qkv") == "\"w_qkv\"");
  CHECK(quote("") == "\"\"");
  CHECK(quote("\x1b[31m\n\x7f") == "\"\\x1b[31m\\x0a\\x7f\"");
  CHECK(quote("größe") == "\"größe\"");
}

TEST_CASE("a long name is cut between characters") {
  CHECK(quote(std::string(64, 'a')) == "\"" + std::string(64, 'a') + "\"");
  CHECK(quote(std::string(65, 'a')) == "\"" + std::string(64, 'a') + "…\"");
  CHECK(quote(std::string(63, 'a') + "öö") == "\"" + std::string(63, 'a') + "…\"");
}
