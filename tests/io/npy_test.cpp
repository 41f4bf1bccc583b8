#include "io/npy.hpp"

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <unistd.h>

#include "base/files.hpp"
#include "error_of.hpp"
#include "stof/error.hpp"

using stof::DType;
using stof::GraphError;
using stof::HostTensor;
using stof::TensorView;
using stof::io::npy_header;
using stof::io::parse_npy;

namespace {

std::string file(int major, const std::string& header, const std::string& data) {
  std::string bytes = "\x93NUMPY";
  bytes += {static_cast<char>(major), 0};
  for (int i = 0; i < (major == 1 ? 2 : 4); ++i) {
    bytes += static_cast<char>(header.size() >> (8 * i));
  }
  return bytes + header + data;
}

HostTensor parse(const std::string& bytes) {
  return parse_npy(std::as_bytes(std::span(bytes)), "a.npy");
}

std::string parse_error(const std::string& bytes) {
  return stof::test::error_of([&] { parse(bytes); });
}

std::string header_error(const std::string& header, const std::string& data = "") {
  return parse_error(file(1, header, data));
}

std::vector<double> values(const HostTensor& tensor) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) {
    values.push_back(tensor.at(i));
  }
  return values;
}

const std::string kBytes = {0, 1, 2, 3, 4, 5};

}  // namespace

TEST_CASE("each version has its own length of header") {
  for (const int major : {1, 2, 3}) {
    const HostTensor tensor =
        parse(file(major, "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3), }\n", kBytes));
    CHECK(tensor.dtype() == DType::UInt8);
    CHECK(tensor.shape() == std::vector<std::int64_t>{2, 3});
    CHECK(values(tensor) == std::vector<double>{0, 1, 2, 3, 4, 5});
  }
}

TEST_CASE("Fortran order is turned into C order") {
  const HostTensor tensor =
      parse(file(1, "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3)}", kBytes));
  CHECK(values(tensor) == std::vector<double>{0, 2, 4, 1, 3, 5});
  CHECK(parse(file(1,
                   "{'descr': '|u1', 'fortran_order': True, 'shape': (4611686018427387904, "
                   "4611686018427387904, 0)}",
                   ""))
            .element_count() == 0);
}

TEST_CASE("a header is a Python dict, however it is written") {
  CHECK(parse(file(1, "{\"shape\":(6,),'descr':\"|u1\",\n\t'fortran_order':False} ", kBytes))
            .shape() == std::vector<std::int64_t>{6});
  CHECK(parse(file(1, "{'descr': '|u1', 'fortran_order': False, 'shape': ()}", "\x07"))
            .shape()
            .empty());
}

TEST_CASE("what is no .npy file is refused") {
  CHECK(parse_error("") == "npy: a.npy: does not begin as an .npy file does");
  CHECK(parse_error("\x93NUMPY\x01") == "npy: a.npy: does not begin as an .npy file does");
  CHECK(parse_error("PK\x03\x04 a zip file") == "npy: a.npy: does not begin as an .npy file does");
  CHECK(parse_error(file(4, "", "")) == "npy: a.npy: has version 4.0, not 1.0, 2.0 or 3.0");
  CHECK(parse_error(std::string("\x93NUMPY\x02\x00\x05\x00", 10)) ==
        "npy: a.npy: ends inside the length of its header");
  CHECK(parse_error(std::string("\x93NUMPY\x01\x00\x05\x00{}", 12)) ==
        "npy: a.npy: has a header of 5 bytes, 2 of them there");
  CHECK(parse_error(std::string("\x93NUMPY\x02\x00\xff\xff\xff\xff{}", 14)) ==
        "npy: a.npy: has a header of 4294967295 bytes, over the limit of 65535");
}

TEST_CASE("a dtype that is not ours says how to convert") {
  const auto error = [](const std::string& descr) {
    return header_error("{'descr': '" + descr + "', 'fortran_order': False, 'shape': (1,)}");
  };
  CHECK(error("<f8") ==
        "npy: a.npy: dtype \"<f8\" is none of float16, float32, int32, int64, uint8, bool; in "
        "Python, a.astype(\"float32\") converts it");
  CHECK(error("<u4") ==
        "npy: a.npy: dtype \"<u4\" is none of float16, float32, int32, int64, uint8, bool; in "
        "Python, a.astype(\"int64\") converts it");
  CHECK(error("|i1").ends_with("in Python, a.astype(\"int64\") converts it"));
  CHECK(error(">f4") ==
        "npy: a.npy: dtype \">f4\" is big-endian; in Python, a.astype(\"<f4\") converts it");
  CHECK(error("<c8") ==
        "npy: a.npy: dtype \"<c8\" is none of float16, float32, int32, int64, uint8, bool");
  CHECK(error("|O").ends_with("none of float16, float32, int32, int64, uint8, bool"));
  CHECK(header_error("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}") ==
        "npy: a.npy: has a structured dtype; save each of its fields as an array of its own");
}

TEST_CASE("a broken header is refused where it breaks") {
  CHECK(header_error("") == "npy: a.npy: header, byte 0: '{' is expected");
  CHECK(header_error("{") == "npy: a.npy: header, byte 1: '\"' is expected");
  CHECK(header_error("{'descr") == "npy: a.npy: header, byte 2: a plain string is expected");
  CHECK(header_error("{'de\\scr': 1}") == "npy: a.npy: header, byte 2: a plain string is expected");
  CHECK(header_error("{'descr' '<f4'}") == "npy: a.npy: header, byte 9: ':' is expected");
  CHECK(header_error("{'fortran_order': 0}") ==
        "npy: a.npy: header, byte 18: True or False is expected");
  CHECK(header_error("{'shape': 4}") == "npy: a.npy: header, byte 10: '(' is expected");
  CHECK(header_error("{'shape': (-4,)}") ==
        "npy: a.npy: header, byte 11: an extent of 0 or more is expected");
  CHECK(header_error("{'shape': (9223372036854775808,)}") ==
        "npy: a.npy: header, byte 11: an extent of 0 or more is expected");
  CHECK(header_error("{'shape': (4") == "npy: a.npy: header, byte 12: ')' is expected");
  CHECK(header_error("{'shape': (4,), 'shape': (4,)}") == "npy: a.npy: header has \"shape\" twice");
  CHECK(header_error("{'author': 'me'}") == "npy: a.npy: header has an unknown key \"author\"");
  CHECK(header_error("{'shape': ()}") == "npy: a.npy: header has no \"descr\"");
  CHECK(header_error("{'shape': ()} x") == "npy: a.npy: header, byte 14: the end is expected");
}

TEST_CASE("the data is as long as the shape says") {
  const std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}";
  CHECK(header_error(header, std::string(23, 'x')) ==
        "npy: a.npy: [2, 3] of float32 takes 24 bytes, 23 follow the header");
  CHECK(header_error(header, std::string(25, 'x')) ==
        "npy: a.npy: [2, 3] of float32 takes 24 bytes, 25 follow the header");
  CHECK(
      header_error("{'descr': '<f4', 'fortran_order': True, 'shape': (9223372036854775807, 3)}") ==
      "npy: a.npy: tensor: [9223372036854775807, 3] of float32 is over 64 bits of bytes");
  std::string ones;
  for (int i = 0; i < 33; ++i) {
    ones += "1, ";
  }
  CHECK(header_error("{'descr': '<f4', 'fortran_order': False, 'shape': (" + ones + ")}") ==
        "npy: a.npy: has rank 33, over the limit of 32");
}

TEST_CASE("a header of ours is aligned and is read back") {
  for (const std::vector<std::int64_t>& shape :
       {std::vector<std::int64_t>{}, {7}, {2, 3}, std::vector<std::int64_t>(32, 1)}) {
    const std::string header = npy_header(DType::UInt8, shape);
    CHECK(header.size() % 64 == 0);
    CHECK(header.back() == '\n');
    std::int64_t count = 1;
    for (const std::int64_t extent : shape) {
      count *= extent;
    }
    const HostTensor tensor = parse(header + std::string(static_cast<std::size_t>(count), 'x'));
    CHECK(tensor.shape() == shape);
  }
  CHECK_THROWS_WITH_AS(npy_header(DType::BFloat16, {}), "npy: NumPy has no bfloat16", GraphError);
  CHECK_THROWS_WITH_AS(npy_header(DType::Bool, std::vector<std::int64_t>(33, 1)),
                       "npy: rank 33 is over the limit of 32", GraphError);
}

TEST_CASE("a written file is read back; bfloat16 comes back as float32") {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("stof_npy_test." + std::to_string(getpid()));
  for (const DType dtype : {DType::Float16, DType::BFloat16, DType::Float32, DType::Int32,
                            DType::Int64, DType::UInt8, DType::Bool}) {
    HostTensor tensor(dtype, {2, 3});
    for (std::int64_t i = 0; i < 6; ++i) {
      tensor.set(i, static_cast<double>(i % 2));
    }
    stof::io::write_npy(path, tensor.view());
    const HostTensor back = stof::io::read_npy(path);
    CHECK(back.dtype() == (dtype == DType::BFloat16 ? DType::Float32 : dtype));
    CHECK(back.shape() == tensor.shape());
    CHECK(values(back) == values(tensor));
  }
  HostTensor tensor(DType::Float32, {2, 3});
  TensorView transposed = tensor.view();
  transposed.shape = {3, 2};
  transposed.strides = {1, 3};
  tensor.set(1, 1);
  stof::io::write_npy(path, transposed);
  CHECK(values(stof::io::read_npy(path)) == std::vector<double>{0, 0, 1, 0, 0, 0});
  stof::base::write_file_atomically(path, "text");
  const std::string message = "npy: " + path.string() + ": does not begin as an .npy file does";
  CHECK_THROWS_WITH_AS(stof::io::read_npy(path), message.c_str(), GraphError);
  std::filesystem::remove(path);
}
