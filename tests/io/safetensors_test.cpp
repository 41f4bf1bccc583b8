#include "io/safetensors.hpp"

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "error_of.hpp"
#include "stof/error.hpp"

using stof::DType;
using stof::GraphError;
using stof::HostTensor;
using stof::TensorView;
using stof::io::SafetensorsFile;

namespace {

std::string file(const std::string& header, const std::string& data = "") {
  std::string bytes;
  for (int i = 0; i < 8; ++i) {
    bytes += static_cast<char>(header.size() >> (8 * i));
  }
  return bytes + header + data;
}

SafetensorsFile parse(const std::string& bytes) {
  return SafetensorsFile::parse(std::as_bytes(std::span(bytes)), "m");
}

std::string parse_error(const std::string& bytes) {
  return stof::test::error_of([&] { parse(bytes); });
}

std::string header_error(const std::string& header, const std::string& data = "") {
  return parse_error(file(header, data));
}

// The description of one tensor.
std::string entry(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
}

std::vector<double> values(const TensorView& view) {
  const HostTensor tensor(view);
  std::vector<double> values;
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) {
    values.push_back(tensor.at(i));
  }
  return values;
}

}  // namespace

TEST_CASE("tensors are found by name, with dtype, shape and bytes") {
  const std::string bytes =
      file(R"({"b":)" + entry("U8", "[2,2]", "[2,6]") + R"(,"a":)" + entry("F16", "[]", "[0,2]") +
               R"(,"empty":)" + entry("I64", "[0,3]", "[2,2]") + "}  ",
           {0, 0x3c, 1, 2, 3, 4});
  const SafetensorsFile tensors = parse(bytes);
  CHECK(tensors.names() == std::vector<std::string>{"a", "b", "empty"});
  CHECK(tensors.contains("a"));
  CHECK_FALSE(tensors.contains("c"));
  CHECK(tensors.view("a").dtype == DType::Float16);
  CHECK(tensors.view("a").shape.empty());
  CHECK(values(tensors.view("a")) == std::vector<double>{1});
  CHECK(values(tensors.view("b")) == std::vector<double>{1, 2, 3, 4});
  CHECK(tensors.view("b").data == bytes.data() + bytes.size() - 4);
  CHECK(tensors.view("empty").shape == std::vector<std::int64_t>{0, 3});
  CHECK_THROWS_WITH_AS(tensors.view("c"), "safetensors: m: there is no tensor \"c\"", GraphError);
}

TEST_CASE("every dtype has its name") {
  const std::pair<const char*, DType> dtypes[] = {
      {"F16", DType::Float16}, {"BF16", DType::BFloat16}, {"F32", DType::Float32},
      {"I32", DType::Int32},   {"I64", DType::Int64},     {"U8", DType::UInt8},
      {"BOOL", DType::Bool}};
  for (const auto& [name, dtype] : dtypes) {
    const int size = size_bytes(dtype);
    const SafetensorsFile tensors =
        parse(file(R"({"a":)" + entry(name, "[1]", "[0," + std::to_string(size) + "]") + "}",
                   std::string(static_cast<std::size_t>(size), '\0')));
    CHECK(tensors.names().size() == 1);
  }
}

TEST_CASE("metadata is a map of texts") {
  const std::string bytes = file(R"({"__metadata__":{"format":"pt","k":"ö"}})");
  const SafetensorsFile tensors = parse(bytes);
  CHECK(tensors.names().empty());
  CHECK(tensors.metadata().size() == 2);
  CHECK(tensors.metadata().at("format") == "pt");
}

TEST_CASE("a foreign dtype is an error only when its tensor is asked for") {
  const std::string bytes =
      file(R"({"a":)" + entry("F64", "[1]", "[0,8]") + R"(,"b":)" +
               entry("F8_E4M3", "[1]", "[8,9]") + R"(,"c":)" + entry("U8", "[1]", "[9,10]") + "}",
           std::string(10, '\7'));
  const SafetensorsFile tensors = parse(bytes);
  CHECK(values(tensors.view("c")) == std::vector<double>{7});
  CHECK_THROWS_WITH_AS(tensors.view("a"),
                       "safetensors: m: \"a\" is of dtype \"F64\", none of F16, BF16, F32, I32, "
                       "I64, U8, BOOL; convert it first",
                       GraphError);
  CHECK_THROWS_AS(tensors.view("b"), GraphError);
}

TEST_CASE("a misaligned tensor is copied once, also for many threads") {
  const std::string header =
      R"({"a":)" + entry("U8", "[1]", "[0,1]") + R"(,"b":)" + entry("F32", "[2]", "[1,9]") + "}";
  // Whatever the address of the bytes, b is off by one from some multiple of 4 in one of these.
  for (const std::size_t padding : {0, 1, 2, 3}) {
    const std::string bytes = file(header + std::string(padding, ' '),
                                   {7, 0, 0, static_cast<char>(0x80), 0x3f, 0, 0, 0, 0x40});
    const SafetensorsFile tensors = parse(bytes);
    std::vector<void*> data(4);
    {
      std::vector<std::jthread> threads(4);
      for (std::size_t i = 0; i < 4; ++i) {
        threads[i] = std::jthread([&, i] { data[i] = tensors.view("b").data; });
      }
    }
    CHECK(data == std::vector<void*>(4, data[0]));
    CHECK(reinterpret_cast<std::uintptr_t>(data[0]) % 4 == 0);
    CHECK(values(tensors.view("b")) == std::vector<double>{1, 2});
  }
}

TEST_CASE("a file that is too short is refused") {
  CHECK(parse_error("") == "safetensors: m: has 0 bytes, the length of a header takes 8");
  CHECK(parse_error("1234567") == "safetensors: m: has 7 bytes, the length of a header takes 8");
  CHECK(parse_error(std::string("\x05\0\0\0\0\0\0\0{}", 10)) ==
        "safetensors: m: has a header of 5 bytes, 2 of them there");
  CHECK(parse_error("\xff\xff\xff\xff\xff\xff\xff\xff{}") ==
        "safetensors: m: has a header of 18446744073709551615 bytes, over the limit of 33554432");
}

TEST_CASE("a file of another kind is told by its first bytes") {
  const auto ends_in = [](const std::string& bytes, const std::string& hint) {
    return parse_error(bytes).ends_with("; it begins like " + hint);
  };
  CHECK(parse_error(std::string("PK\x03\x04\x14\0\0\0\x08\0", 10)) ==
        "safetensors: m: has a header of 85966670672 bytes, over the limit of 33554432; it begins "
        "like a zip archive, such as PyTorch's .pt and .bin or NumPy's .npz");
  CHECK(ends_in("\x80\x02\x8A\nl\xFC\x9C\x46\xF9 j\xA8P",
                "a Python pickle, such as older .pt and .bin of PyTorch"));
  CHECK(ends_in(std::string("GGUF\x03\0\0\0\x23", 9), "a GGUF file"));
  CHECK(ends_in("\x89HDF\r\n\x1a\n", "an HDF5 file, such as .h5 of Keras"));
  CHECK(ends_in("\x93NUMPY\x01", "a NumPy array"));
  CHECK(ends_in("\x1F\x8B\x08", "a gzip archive"));
  CHECK(ends_in("version https://git-lfs.github.com/spec/v1\noid sha256:0\n",
                "a pointer of Git LFS, which does not hold the file itself"));
  CHECK(ends_in("<!DOCTYPE html>", "a web page"));
  CHECK(ends_in("{\n  \"metadata\": {}}",
                "JSON text, such as the index of a model in several files"));
}

TEST_CASE("a header that is no JSON object is refused") {
  CHECK(header_error("") == "safetensors: m: header does not begin with {");
  CHECK(header_error(" {}") == "safetensors: m: header does not begin with {");
  CHECK(header_error("[]") == "safetensors: m: header does not begin with {");
  CHECK(header_error("{") == "safetensors: m: header is no JSON at byte 2");
  CHECK(header_error("{} x") == "safetensors: m: header is no JSON at byte 4");
  CHECK(header_error("{\"\xff\":1}") == "safetensors: m: header is no JSON at byte 3");
  CHECK(header_error(R"({"a":{"shape":[1e999]}})") ==
        "safetensors: m: header is no JSON at byte 20");
}

TEST_CASE("nesting is refused where it begins, however deep it goes") {
  CHECK(header_error(R"({"a":)" + std::string(1000000, '[')) ==
        "safetensors: m: \"a\" is a list, not an object");
  std::string objects;
  for (int i = 0; i < 100000; ++i) {
    objects += R"({"dtype":)";
  }
  CHECK(header_error(R"({"a":)" + objects) ==
        "safetensors: m: \"a\": an object is not expected in \"dtype\"");
  CHECK(header_error(R"({"a":{"shape":)" + std::string(1000000, '[')) ==
        "safetensors: m: \"a\": a list is not expected in \"shape\"");
}

TEST_CASE("each field has its form") {
  CHECK(header_error(R"({"a":1})") == "safetensors: m: \"a\" is 1, not an object");
  CHECK(header_error(R"({"a":null})") == "safetensors: m: \"a\" is null, not an object");
  CHECK(header_error(R"({"a":"x"})") == "safetensors: m: \"a\" is a string, not an object");
  CHECK(header_error(R"({"a":{"dtype":4}})") ==
        "safetensors: m: \"a\": 4 is not expected in \"dtype\"");
  CHECK(header_error(R"({"a":{"dtype":["F16"]}})") ==
        "safetensors: m: \"a\": a list is not expected in \"dtype\"");
  CHECK(header_error(R"({"a":{"shape":[-1]}})") ==
        "safetensors: m: \"a\": -1 is not expected in \"shape\"");
  CHECK(header_error(R"({"a":{"shape":[1.5]}})") ==
        "safetensors: m: \"a\": 1.5 is not expected in \"shape\"");
  CHECK(header_error(R"({"a":{"shape":[true]}})") ==
        "safetensors: m: \"a\": true is not expected in \"shape\"");
  CHECK(header_error(R"({"a":{"shape":[9223372036854775808]}})") ==
        "safetensors: m: \"a\": 9223372036854775808 is not expected in \"shape\"");
  CHECK(header_error(R"({"a":{"shape":"x"}})") ==
        "safetensors: m: \"a\": a string is not expected in \"shape\"");
  CHECK(header_error(R"({"a":{"data_offsets":[0]}})") ==
        "safetensors: m: \"a\" has \"data_offsets\" [0], not [begin, end]");
  CHECK(header_error(R"({"a":{"data_offsets":[4,0]}})") ==
        "safetensors: m: \"a\" has \"data_offsets\" [4, 0], not [begin, end]");
  CHECK(header_error(R"({"a":{"data_offsets":[0,1,2]}})") ==
        "safetensors: m: \"a\" has more than 2 numbers in \"data_offsets\"");
  CHECK(header_error(R"({"a":{"layout":"x"}})") ==
        "safetensors: m: \"a\" has an unknown field \"layout\"");
  CHECK(header_error(R"({"a":{"dtype":"U8","shape":[]}})") ==
        "safetensors: m: \"a\" has no \"data_offsets\"");
  CHECK(header_error(R"({"__metadata__":{"a":1}})") ==
        "safetensors: m: \"__metadata__\": 1 is not expected in \"a\"");
  std::string ones = "1";
  for (int i = 0; i < 32; ++i) {
    ones += ",1";
  }
  CHECK(header_error(R"({"a":{"shape":[)" + ones + "]}}") ==
        "safetensors: m: \"a\" has more than 32 numbers in \"shape\"");
}

TEST_CASE("no name stands twice") {
  const std::string empty = entry("U8", "[0]", "[0,0]");
  CHECK(header_error(R"({"a":)" + empty + R"(,"a":)" + empty + "}") ==
        "safetensors: m: header has \"a\" twice");
  CHECK(header_error(R"({"__metadata__":{},"__metadata__":{}})") ==
        "safetensors: m: header has \"__metadata__\" twice");
  CHECK(header_error(R"({"a":{"dtype":"U8","dtype":"U8"}})") ==
        "safetensors: m: \"a\" has \"dtype\" twice");
  CHECK(header_error(R"({"__metadata__":{"k":"1","k":"2"}})") ==
        "safetensors: m: \"__metadata__\" has \"k\" twice");
}

TEST_CASE("a range is as long as dtype and shape say") {
  CHECK(header_error(R"({"a":)" + entry("F16", "[2]", "[0,3]") + "}", "abc") ==
        "safetensors: m: \"a\": [2] of F16 takes 4 bytes, its \"data_offsets\" hold 3");
  CHECK(header_error(R"({"a":)" + entry("I64", "[4294967296,4294967296]", "[0,3]") + "}", "abc") ==
        "safetensors: m: tensor: [4294967296, 4294967296] of int64 is over 64 bits of bytes");
}

TEST_CASE("the ranges cover the data without overlap or hole") {
  const auto error = [](const std::string& first, const std::string& second, const char* data) {
    const auto sized = [](const std::string& offsets) {
      const auto comma = offsets.find(',');
      const int size = std::stoi(offsets.substr(comma + 1)) - std::stoi(offsets.substr(1));
      return entry("U8", "[" + std::to_string(size) + "]", offsets);
    };
    return header_error(R"({"a":)" + sized(first) + R"(,"b":)" + sized(second) + "}", data);
  };
  CHECK(error("[0,2]", "[2,4]", "abcd") == "no error");
  CHECK(error("[2,4]", "[0,2]", "abcd") == "no error");
  CHECK(error("[0,2]", "[1,4]", "abcd") ==
        "safetensors: m: \"b\" begins at byte 1 of the data, inside another tensor");
  CHECK(error("[0,4]", "[0,4]", "abcd") ==
        "safetensors: m: \"b\" begins at byte 0 of the data, inside another tensor");
  CHECK(error("[0,2]", "[2,5]", "abcd") ==
        "safetensors: m: \"b\" ends at byte 5 of the data, which has 4");
  CHECK(error("[0,1]", "[3,4]", "abcd") ==
        "safetensors: m: bytes 1 to 3 of the data belong to no tensor");
  CHECK(error("[1,2]", "[2,4]", "abcd") ==
        "safetensors: m: bytes 0 to 1 of the data belong to no tensor");
  CHECK(error("[0,1]", "[1,3]", "abcd") ==
        "safetensors: m: bytes 3 to 4 of the data belong to no tensor");
  CHECK(header_error("{}", "abcd") ==
        "safetensors: m: bytes 0 to 4 of the data belong to no tensor");
  const std::string huge = entry("F64", "[1]", "[0,9223372036854775807]");
  CHECK(header_error(R"({"a":)" + huge + "}", "abcd") ==
        "safetensors: m: \"a\" ends at byte 9223372036854775807 of the data, which has 4");
}
