#include <array>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "compile/nvrtc_compiler.hpp"
#include "cuda/device_array.hpp"
#include "cuda/library.hpp"
#include "cuda/read_device_profile.hpp"
#include "cuda/stream.hpp"
#include "stof/error.hpp"

using namespace stof;  // NOLINT(google-build-using-namespace)

namespace {

// Doubles what dynamic shared memory holds in reverse.
constexpr const char* kSource = R"(
extern "C" __global__ void double_reversed(int* data, int scale) {
  extern __shared__ int tile[];
  tile[threadIdx.x] = data[blockIdx.x * blockDim.x + threadIdx.x];
  __syncthreads();
  data[blockIdx.x * blockDim.x + threadIdx.x] = scale * tile[blockDim.x - 1 - threadIdx.x];
}
)";

compile::CompiledKernel compile_for_this_gpu(const std::string& text) {
  compile::CompileTask task;
  task.source.text = text;
  task.target = base::parse_gpu_target(cuda::read_device_profile(0).target);
  return compile::NvrtcCompiler().compile(task, {});
}

}  // namespace

TEST_CASE("a compiled kernel is loaded, launched and right") {
  const compile::CompiledKernel compiled = compile_for_this_gpu(kSource);
  const cuda::Library library(compiled.cubin);
  const cuda::Kernel kernel = library.kernel("double_reversed");
  CHECK(kernel.attributes().numRegs == compiled.entry("double_reversed").registers);
  CHECK(kernel.load() != nullptr);
  constexpr std::size_t kSharedBytes = 64 * 1024;
  kernel.allow_dynamic_shared_bytes(kSharedBytes);

  constexpr unsigned kThreads = 256;
  constexpr unsigned kBlocks = 4;
  std::vector<int> host(kThreads * kBlocks);
  std::iota(host.begin(), host.end(), 0);
  const cuda::DeviceArray<int> device{std::span<const int>(host)};
  const cuda::Stream stream;
  int* data = device.data();
  int scale = 2;
  const std::array<void*, 2> arguments = {&data, &scale};
  const cuda::LaunchConfig config = {
      .grid = {kBlocks, 1, 1}, .block = {kThreads, 1, 1}, .dynamic_shared_bytes = kSharedBytes};
  kernel.launch(config, arguments, stream.get());
  stream.synchronize();

  std::vector<int> expected(host.size());
  for (unsigned block = 0; block < kBlocks; ++block) {
    for (unsigned thread = 0; thread < kThreads; ++thread) {
      expected[block * kThreads + thread] = 2 * host[block * kThreads + kThreads - 1 - thread];
    }
  }
  CHECK(device.to_host() == expected);
}

TEST_CASE("a kernel that is not in the library, and bytes that are none, are errors") {
  const compile::CompiledKernel compiled = compile_for_this_gpu(kSource);
  const cuda::Library library(compiled.cubin);
  CHECK_THROWS_AS(library.kernel("no_such_kernel"), CudaError);
  const std::vector<std::byte> zeros(1000);
  CHECK_THROWS_AS(cuda::Library(zeros).kernel("scale"), CudaError);  // the driver may look late
}
