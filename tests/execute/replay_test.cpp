#include "execute/replay.hpp"

#include <cmath>
#include <cstring>

#include <doctest/doctest.h>

#include "compile/nvrtc_compiler.hpp"
#include "cuda/read_device_profile.hpp"
#include "tune/race.hpp"

namespace {

using stof::execute::DeviceProgram;
using stof::execute::Replay;
using stof::execute::TensorContents;
using stof::execute::TensorCopies;
using stof::kernel::Location;
using stof::kernel::MemorySpace;
using stof::kernel::Program;
namespace compile = stof::compile;

// y = x + w, after `turns` rounds of arithmetic that change nothing.
constexpr const char* kAdd = R"(
extern "C" __global__ void add(const float* x, const float* w, float* y, int count, int turns) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  float value = x[i];
  for (int turn = 0; turn < turns; ++turn) value = sqrtf(value * value);
  y[i] = value + w[i];
}
)";

constexpr int kElements = 1 << 16;

std::shared_ptr<const DeviceProgram> make_program(int turns) {
  compile::CompileTask task;
  task.source.text = kAdd;
  task.target = stof::base::parse_gpu_target(stof::cuda::read_device_profile(0).target);
  const compile::CompiledKernel compiled = compile::NvrtcCompiler().compile(task, {});
  Program program;
  program.kernels = {"add"};
  program.launches = {
      {.kernel = 0,
       .grid = {kElements / 256, 1, 1},
       .block = {256, 1, 1},
       .arguments = {Location{.space = MemorySpace::Input}, Location{.space = MemorySpace::Weight},
                     Location{.space = MemorySpace::Output}, std::int32_t{kElements},
                     std::int32_t{turns}},
       .label = "add"}};
  const std::vector<std::span<const std::byte>> cubins = {compiled.cubin};
  return std::make_shared<const DeviceProgram>(0, program, cubins);
}

struct Tensors {
  std::vector<float> x = std::vector<float>(kElements, 2.0F);
  std::vector<float> w = std::vector<float>(kElements, 3.0F);

  TensorContents contents() const {
    return {.inputs = {std::as_bytes(std::span(x))},
            .weights = {std::as_bytes(std::span(w))},
            .output_bytes = {x.size() * sizeof(float)}};
  }
};

std::vector<float> read(const TensorCopies& copies, std::size_t first, std::size_t count) {
  std::vector<float> values(count);
  copies.read_output(0, first * sizeof(float), std::as_writable_bytes(std::span(values)));
  return values;
}

}  // namespace

TEST_CASE("as many copies as pass a cache") {
  const Tensors tensors;  // three tensors of 256 KiB
  CHECK(TensorCopies::count_for(tensors.contents(), std::size_t{100} << 20, 1000) == 134);
  CHECK(TensorCopies::count_for(tensors.contents(), std::size_t{100} << 20, 96) == 96);
  CHECK(TensorCopies::count_for(tensors.contents(), 0, 96) == 1);
  CHECK(TensorCopies::count_for({}, 1024, 8) == 8);
}

TEST_CASE("outputs are spoilt, then right, in any piece") {
  const Tensors tensors;
  const TensorCopies copies(0, tensors.contents(), 3);
  const Replay replay(make_program(1), copies, 5);
  copies.spoil_outputs();
  CHECK(std::isnan(read(copies, 7, 1)[0]));
  replay.run_once();
  CHECK(read(copies, 0, 4) == std::vector<float>(4, 5.0F));
  CHECK(read(copies, kElements - 2, 2) == std::vector<float>(2, 5.0F));
}

TEST_CASE("a replay runs on every copy") {
  const Tensors tensors;
  const TensorCopies copies(0, tensors.contents(), 4);
  const Replay replay(make_program(1), copies, 4);
  std::vector<const Replay*> one = {&replay};
  stof::execute::time_in_turn(one, 1);
  for (int copy = 0; copy < 4; ++copy) {
    float value = 0;
    STOF_CUDA(cudaMemcpy(&value, copies.pointers(copy).outputs[0], sizeof(value),
                         cudaMemcpyDeviceToHost));
    CHECK(value == 5.0F);
  }
}

TEST_CASE("what takes longer is timed longer, again and again") {
  const Tensors tensors;
  const TensorCopies copies(0, tensors.contents(), 16);
  const Replay fast(make_program(10), copies, 32);
  const Replay slow(make_program(4000), copies, 32);
  const std::vector<const Replay*> both = {&fast, &slow};
  const auto first = stof::execute::time_in_turn(both, 9);
  const auto second = stof::execute::time_in_turn(both, 9);
  REQUIRE(first.size() == 2);
  CHECK(first[0].size() == 9);
  const double fast_us = stof::tune::median(first[0]);
  const double slow_us = stof::tune::median(first[1]);
  MESSAGE(fast_us, " us and ", slow_us, " us");
  CHECK(fast_us > 0.5);
  CHECK(slow_us > 3 * fast_us);
  CHECK(stof::tune::median(second[1]) > 3 * stof::tune::median(second[0]));
}
