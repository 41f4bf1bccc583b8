#include "kernel/key.hpp"

#include <doctest/doctest.h>

using stof::kernel::Key;
using stof::kernel::KeyWriter;
using namespace std::string_literals;

TEST_CASE("a field is its tag, its length and its bytes, lowest byte first") {
  CHECK(KeyWriter().key().material().empty());
  CHECK(KeyWriter().field(0x0201, "abc").field(7, "").key().material() ==
        "\x01\x02\x03\x00\x00\x00"
        "abc\x07\x00\x00\x00\x00\x00"s);
  const std::string long_text(0x010203, 'x');
  CHECK(KeyWriter().field(1, long_text).key().material() ==
        "\x01\x00\x03\x02\x01\x00"s + long_text);
}

TEST_CASE("a key is its material, and its digest is that of its material") {
  const Key key("material");
  CHECK(key.digest() == stof::base::hash("material"));
  CHECK(key == Key("material"));
  CHECK_FALSE(key == Key("Material"));
}

TEST_CASE("where fields end matters") {
  CHECK_FALSE(KeyWriter().field(1, "ab").field(1, "c").key() ==
              KeyWriter().field(1, "a").field(1, "bc").key());
  CHECK_FALSE(KeyWriter().field(1, "a").key() == KeyWriter().field(1, "a").field(1, "").key());
}
