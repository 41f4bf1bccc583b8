#include "render/value.hpp"

#include <cmath>
#include <limits>
#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "render/formatting.hpp"
#include "render/limits.hpp"
#include "render/number_format.hpp"
#include "render/operators.hpp"

using stof::render::deep_copy;
using stof::render::Dict;
using stof::render::equals;
using stof::render::Failure;
using stof::render::format_real;
using stof::render::from_json;
using stof::render::less;
using stof::render::make_list;
using stof::render::parse_integer;
using stof::render::parse_real;
using stof::render::ParsedInteger;
using stof::render::quote;
using stof::render::repr;
using stof::render::round_real;
using stof::render::Value;

// Expected texts are what Python 3.11 prints.
TEST_CASE("floats print their shortest digits, as in Python") {
  CHECK(format_real(0.1) == "0.1");
  CHECK(format_real(1.0) == "1.0");
  CHECK(format_real(-0.0) == "-0.0");
  CHECK(format_real(1e16) == "1e+16");
  CHECK(format_real(123456789012345680.0) == "1.2345678901234568e+17");
  CHECK(format_real(9999999999999998.0) == "9999999999999998.0");
  CHECK(format_real(0.0001) == "0.0001");
  CHECK(format_real(0.00001) == "1e-05");
  CHECK(format_real(5e-324) == "5e-324");
  CHECK(format_real(std::numeric_limits<double>::infinity()) == "inf");
  CHECK(format_real(std::numeric_limits<double>::quiet_NaN()) == "nan");
}

TEST_CASE("strings print as literals within containers") {
  CHECK(quote("a'b") == "\"a'b\"");
  CHECK(quote("a'b\"c") == "'a\\'b\"c'");
  CHECK(quote("\n\t\\\x01\x7f") == "'\\n\\t\\\\\\x01\\x7f'");
  CHECK(quote("é€😀") == "'é€😀'");
  CHECK(quote("é", true) == "'\\xe9'");
}

TEST_CASE("rounding is half to even of the exact value") {
  CHECK(round_real(2.5, 0) == 2.0);
  CHECK(round_real(3.5, 0) == 4.0);
  CHECK(round_real(2.675, 2) == 2.67);
  CHECK(round_real(1250.0, -2) == 1200.0);
  CHECK(round_real(1350.0, -2) == 1400.0);
  CHECK(round_real(-99.5, -2) == -100.0);
  CHECK(round_real(1e300, 2) == 1e300);
}

TEST_CASE("dicts keep the order of insertion and find equal keys") {
  Dict dict;
  dict.set("b", Value(1));
  dict.set("a", Value(2));
  dict.set("b", Value(3));
  CHECK(dict.size() == 2);
  CHECK(dict.entries()[0].first.text()->bytes == "b");
  CHECK(*dict.find("b")->integer() == 3);
  dict.set(Value(1), Value("one"));
  CHECK(dict.find(Value(1.0))->text()->bytes == "one");
  CHECK(dict.find(Value(true))->text()->bytes == "one");
  CHECK(dict.erase(Value("b")));
  CHECK_FALSE(dict.erase(Value("b")));
  CHECK(*dict.find("a")->integer() == 2);
  CHECK(dict.find(Value(1)) != nullptr);
  CHECK_THROWS_WITH_AS(dict.set(make_list({}), Value(1)), "unhashable type: 'list'", Failure);
}

TEST_CASE("numbers compare by value, beyond what doubles hold") {
  CHECK(equals(Value(1), Value(1.0)));
  CHECK(equals(Value(true), Value(1)));
  CHECK_FALSE(equals(Value(9007199254740993), Value(9007199254740992.0)));
  CHECK(less(Value(9007199254740992.0), Value(9007199254740993)));
  CHECK(less(Value(std::numeric_limits<std::int64_t>::max()), Value(0x1p63)));
  CHECK_FALSE(equals(Value(std::nan("")), Value(std::nan(""))));
  CHECK_THROWS_WITH_AS(less(Value(1), Value("a")), "'int' and 'str' have no order", Failure);
}

TEST_CASE("JSON becomes values") {
  const auto json = nlohmann::ordered_json::parse(R"({"z": [1, 2.5, null, true, "s"], "a": {}})");
  CHECK(repr(from_json(json)) == "{'z': [1, 2.5, None, True, 's'], 'a': {}}");
  CHECK_THROWS_WITH_AS(from_json(nlohmann::json(18446744073709551615ULL)),
                       "context: 18446744073709551615 is beyond 64-bit integers", Failure);
  nlohmann::json deep = 1;
  for (int i = 0; i < 200; ++i) {
    deep = nlohmann::json::array({deep});
  }
  CHECK_THROWS_WITH_AS(from_json(deep), "values nested deeper than 100 levels", Failure);
}

TEST_CASE("a deep copy shares nothing that changes") {
  const Value original = from_json(nlohmann::json{{"l", {1}}});
  const Value copy = deep_copy(original);
  copy.dict()->find("l")->list()->items.emplace_back(2);
  CHECK(repr(original) == "{'l': [1]}");
  CHECK(repr(copy) == "{'l': [1, 2]}");
}

TEST_CASE("integers and floats are read as Python reads them") {
  CHECK(parse_integer(" -1_000 ", 10).number == -1000);
  CHECK(parse_integer("0x1F", 16).number == 31);
  CHECK(parse_integer("-9223372036854775808", 10).number ==
        std::numeric_limits<std::int64_t>::min());
  CHECK(parse_integer("9223372036854775808", 10).status == ParsedInteger::Status::Overflow);
  for (const char* bad : {"", "-", "1__0", "_1", "1_", "0x", "1.5", "a"}) {
    CHECK(parse_integer(bad, 10).status == ParsedInteger::Status::Bad);
    CHECK_FALSE(parse_real(std::string("x") + bad).is_good);
  }
  CHECK(parse_real(" 1_0.5e1 ").number == 105.0);
  CHECK(parse_real("-Infinity").number == -std::numeric_limits<double>::infinity());
}
