#include "compile/kernel_parameters.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "compile/nvrtc_compiler.hpp"

namespace stof::compile {
namespace {

using Sizes = std::vector<std::int64_t>;

std::vector<std::byte> cubin() {
  kernel::KernelSource source;
  source.text = R"(
struct __align__(64) Map { char bytes[128]; };
extern "C" __global__ void two(const float* x, float* y) { y[0] = x[0]; }
extern "C" __global__ void many(bool a, int b, long long c, float d, const __grid_constant__ Map e,
                                short unused) {
  if (a) { printf("%d %lld %f %d", b, c, d, e.bytes[c]); }
}
struct Large { int words[3000]; };
extern "C" __global__ void large(const __grid_constant__ Large a, const int* b) {}
extern "C" __global__ void none() {})";
  return NvrtcCompiler{}
      .compile({.source = std::move(source), .target = base::parse_gpu_target("sm_90a")}, {})
      .cubin;
}

TEST_CASE("parameter_bytes: every parameter in its order, read or not") {
  const std::vector<std::byte> bytes = cubin();
  CHECK(parameter_bytes(bytes, "two") == Sizes{8, 8});
  CHECK(parameter_bytes(bytes, "many") == Sizes{1, 4, 8, 4, 128, 2});
  CHECK(parameter_bytes(bytes, "large") == Sizes{12000, 8});
  CHECK(parameter_bytes(bytes, "none").empty());
  CHECK(parameter_bytes(bytes, "tw").empty());
}

TEST_CASE("parameter_bytes: cut off anywhere, or no cubin at all") {
  const std::vector<std::byte> bytes = cubin();
  for (std::size_t size = 0; size < bytes.size(); size += 7) {
    const Sizes sizes = parameter_bytes(std::span(bytes).first(size), "two");
    CHECK(sizes.size() <= 2);
  }
  CHECK(parameter_bytes(std::vector<std::byte>(1000, std::byte{0xff}), "two").empty());
}

}  // namespace
}  // namespace stof::compile
