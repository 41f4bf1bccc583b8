#include "kernel/kernel_key.hpp"

#include <doctest/doctest.h>

#include "stof/error.hpp"

using stof::kernel::KernelIdentity;
using stof::kernel::make_kernel_key;

namespace {

KernelIdentity example() {
  return {
      .source = "#include <b.cuh>\n#include <a.cuh>\n",
      .headers = {{"a.cuh", stof::base::hash("int a;\n")}, {"b.cuh", stof::base::hash("")}},
      .options = {"-std=c++17", "-default-device", "--minimal"},
      .name_expressions = {"scale<float>", "add<int>"},
      .architecture = "sm_80",
      .compiler = "65be+08d1",
  };
}

std::string digest_of(const KernelIdentity& identity) {
  return make_kernel_key(identity).digest().hex();
}

}  // namespace

// Made from the definition with Python's struct and libxxhash. They may never change: a release
// that changed one would find none of the kernels that are on its users' disks.
TEST_CASE("keys are the same for ever") {
  CHECK(digest_of({}) == "e1b6dfa84be656aacdc06417b3e5a68a");
  CHECK(digest_of({.source = "extern \"C\" __global__ void k() {}\n",
                   .headers = {},
                   .options = {"-std=c++17", "--minimal"},
                   .name_expressions = {},
                   .architecture = "sm_90a",
                   .compiler = "0123abcd"}) == "7c388f961d3347ff5d85ad7481ce2cd1");
  CHECK(digest_of(example()) == "d7c62872e02d41c293024cb09c4e595a");
}

TEST_CASE("the order of headers and options is no part of a key") {
  KernelIdentity other = example();
  std::swap(other.headers[0], other.headers[1]);
  std::swap(other.options[0], other.options[2]);
  CHECK(make_kernel_key(other) == make_kernel_key(example()));
}

TEST_CASE("whatever decides the cubin is part of the key") {
  const auto changed = [](auto change) {
    KernelIdentity identity = example();
    change(identity);
    return !(make_kernel_key(identity) == make_kernel_key(example()));
  };
  CHECK(changed([](KernelIdentity& i) { i.source = "#include <b.cuh>\n#include <a.cuh>\n "; }));
  CHECK(changed([](KernelIdentity& i) { i.headers[1].name = "c.cuh"; }));
  CHECK(changed([](KernelIdentity& i) { i.headers[1].digest = stof::base::hash("b"); }));
  CHECK(changed([](KernelIdentity& i) { i.headers.pop_back(); }));
  CHECK(changed([](KernelIdentity& i) { i.options.emplace_back("--ptxas-options=-v"); }));
  CHECK(changed([](KernelIdentity& i) { i.name_expressions.pop_back(); }));
  CHECK(
      changed([](KernelIdentity& i) { std::swap(i.name_expressions[0], i.name_expressions[1]); }));
  CHECK(changed([](KernelIdentity& i) { i.architecture = "sm_86"; }));
  CHECK(changed([](KernelIdentity& i) { i.compiler = "65be+08d2"; }));
}

TEST_CASE("an option that reaches outside of the key is refused") {
  for (const char* option : {"-I/usr/include", "-I", "--include-path=/a", "-include=x.h", "-pch",
                             "--pch-dir=/tmp", "--use-pch=a", "-lineinfo", "--time=t.csv", "-G"}) {
    KernelIdentity identity = example();
    identity.options.emplace_back(option);
    const std::string message = std::string("option '") + option + "' depends on what is not in";
    CHECK_THROWS_WITH_AS(make_kernel_key(identity), doctest::Contains(message.c_str()),
                         stof::InternalError);
  }
  KernelIdentity identity = example();
  identity.options = {"-Xptxas", "v"};
  CHECK_THROWS_WITH_AS(make_kernel_key(identity),
                       doctest::Contains("option 'v' does not start with '-'"),
                       stof::InternalError);
}

TEST_CASE("a header has one content") {
  KernelIdentity identity = example();
  identity.headers[1].name = identity.headers[0].name;
  CHECK_THROWS_WITH_AS(make_kernel_key(identity),
                       doctest::Contains("header name stands for two contents"),
                       stof::InternalError);
}
