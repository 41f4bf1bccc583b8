#include "execute/bound_program.hpp"

#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "compile/nvrtc_compiler.hpp"
#include "cuda/read_device_profile.hpp"
#include "cuda/stream.hpp"
#include "execute/device_memory.hpp"
#include "stof/error.hpp"

namespace {

using stof::execute::BoundProgram;
using stof::execute::DeviceMemory;
using stof::execute::DeviceProgram;
using stof::execute::Pointers;
using stof::kernel::Location;
using stof::kernel::MemorySpace;
using stof::kernel::Program;
namespace compile = stof::compile;
namespace cuda = stof::cuda;

constexpr int kCount = 1000;
constexpr int kBlock = 128;
constexpr int kBlocks = (kCount + kBlock - 1) / kBlock;

// y = factor * x + table
constexpr const char* kScale = R"(
extern "C" __global__ void scale(const float* x, const float* table, float* y, float factor,
                                 int count, const float* nothing) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count && nothing == nullptr) y[i] = factor * x[i] + table[i];
}
)";

// Reverses within a block, through more shared memory than a kernel has without asking, and tells
// how many blocks there were; that needs a counter that starts at 0, and leaves it there.
constexpr const char* kReverse = R"(
extern "C" __global__ void reverse(const float* y, unsigned* counter, float* z, float* blocks,
                                   long long count, bool is_reversed) {
  extern __shared__ float tile[];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  tile[16000 + threadIdx.x] = i < count ? y[i] : 0.0f;
  __syncthreads();
  int other = is_reversed ? blockDim.x - 1 - threadIdx.x : threadIdx.x;
  if (i < count) z[i] = tile[16000 + other];
  if (threadIdx.x == 0) {
    unsigned before = atomicAdd(counter, 1u);
    if (before == gridDim.x - 1) {
      *blocks = before + 1;
      *counter = 0;
    }
  }
}
)";

// out = weight * z + blocks; waits for the kernel ahead of it by itself
constexpr const char* kFinish = R"(
extern "C" __global__ void finish(const float* z, const float* blocks, const float* weight,
                                  float* out, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float w = i < count ? weight[i] : 0.0f;
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
  if (i < count) out[i] = w * z[i] + *blocks;
}
)";

std::vector<float> numbers(int start) {
  std::vector<float> values(kCount);
  for (int i = 0; i < kCount; ++i) {
    values[static_cast<std::size_t>(i)] = static_cast<float>((start + 7 * i) % 31);
  }
  return values;
}

std::vector<std::byte> bytes_of(const std::vector<float>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

// An array of floats on the GPU.
class Array {
 public:
  explicit Array(const std::vector<float>& values) : memory_(0, values.size() * sizeof(float)) {
    memory_.write(bytes_of(values));
  }

  void* data() const { return memory_.data(); }
  std::vector<float> values() const {
    std::vector<float> values(kCount);
    memory_.read(std::as_writable_bytes(std::span(values)));
    return values;
  }

 private:
  DeviceMemory memory_;
};

Location at(MemorySpace space, int index = 0, std::int64_t offset_bytes = 0) {
  return {.space = space, .index = index, .offset_bytes = offset_bytes};
}

// x (input 0) to out (output 0) with weight 0, which begins 4 bytes behind its pointer.
Program three_launches() {
  Program program;
  program.kernels = {"scale", "reverse", "finish"};
  program.constants = {std::make_shared<const std::vector<std::byte>>(3),
                       std::make_shared<const std::vector<std::byte>>(bytes_of(numbers(5)))};
  const std::int64_t size_bytes = kCount * 4;
  program.arena = {{.size_bytes = size_bytes, .first_launch = 0, .last_launch = 1},
                   {.size_bytes = size_bytes, .first_launch = 1, .last_launch = 2},
                   {.size_bytes = 4, .first_launch = 1, .last_launch = 1, .must_be_zero = true},
                   {.size_bytes = 4, .first_launch = 1, .last_launch = 2}};
  program.launches = {
      {.kernel = 0,
       .grid = {kBlocks, 1, 1},
       .block = {kBlock, 1, 1},
       .arguments = {at(MemorySpace::Input), at(MemorySpace::Constant, 1),
                     at(MemorySpace::Arena, 0), 2.0F, std::int32_t{kCount}, nullptr},
       .label = "scale"},
      {.kernel = 1,
       .grid = {kBlocks, 1, 1},
       .block = {kBlock, 1, 1},
       .shared_bytes = (16000 + kBlock) * 4,
       .arguments = {at(MemorySpace::Arena, 0), at(MemorySpace::Arena, 2),
                     at(MemorySpace::Arena, 1), at(MemorySpace::Arena, 3), std::int64_t{kCount},
                     true},
       .label = "reverse"},
      {.kernel = 2,
       .grid = {kBlocks, 1, 1},
       .block = {kBlock, 1, 1},
       .is_programmatic = true,
       .arguments = {at(MemorySpace::Arena, 1), at(MemorySpace::Arena, 3),
                     at(MemorySpace::Weight, 0, 4), at(MemorySpace::Output), std::int32_t{kCount}},
       .label = "finish"}};
  return program;
}

// The same on the host; `weight` as the kernel sees it.
std::vector<float> expected(const std::vector<float>& x, const std::vector<float>& weight) {
  const std::vector<float> table = numbers(5);
  std::vector<float> out(kCount);
  for (int i = 0; i < kCount; ++i) {
    const int reversed = i / kBlock * kBlock + kBlock - 1 - i % kBlock;
    const auto from = static_cast<std::size_t>(reversed);
    const float z = reversed < kCount ? 2.0F * x[from] + table[from] : 0.0F;
    out[static_cast<std::size_t>(i)] = weight[static_cast<std::size_t>(i)] * z + kBlocks;
  }
  return out;
}

std::vector<float> behind_first(const std::vector<float>& values) {
  std::vector<float> result = {-1000.0F};
  result.insert(result.end(), values.begin(), values.end());
  return result;
}

std::shared_ptr<const DeviceProgram> load(const Program& program) {
  std::vector<compile::CompiledKernel> compiled;
  for (const char* source : {kScale, kReverse, kFinish}) {
    compile::CompileTask task;
    task.source.text = source;
    task.target = stof::base::parse_gpu_target(cuda::read_device_profile(0).target);
    compiled.push_back(compile::NvrtcCompiler().compile(task, {}));
  }
  std::vector<std::span<const std::byte>> cubins;
  for (const compile::CompiledKernel& kernel : compiled) {
    cubins.emplace_back(kernel.cubin);
  }
  return std::make_shared<const DeviceProgram>(0, program, cubins);
}

std::string fault(const Program& program) {
  try {
    load(program);
  } catch (const stof::InternalError& error) {
    return error.what();
  }
  return "none";
}

// A program of three launches with all that it needs.
struct Bound {
  explicit Bound(void* workspace = nullptr)
      : program(load(three_launches()), pointers.all(), workspace) {}

  struct Tensors {
    Array x{numbers(1)};
    Array weight{behind_first(numbers(2))};
    Array out{std::vector<float>(kCount)};
    std::vector<void*> inputs{x.data()};
    std::vector<void*> weights{weight.data()};
    std::vector<void*> outputs{out.data()};

    Pointers all() const { return {.inputs = inputs, .outputs = outputs, .weights = weights}; }
  };

  Tensors pointers;
  BoundProgram program;
  cuda::Stream stream;
};

}  // namespace

TEST_CASE("three launches give what they give on the host, again and again") {
  const Bound bound;
  for (int i = 0; i < 3; ++i) {
    bound.program.launch(bound.stream.get());
  }
  bound.stream.synchronize();
  CHECK(bound.pointers.out.values() == expected(numbers(1), numbers(2)));
}

TEST_CASE("other pointers take the place of the bound ones") {
  Bound bound;
  bound.program.launch(bound.stream.get());
  const Array x(numbers(3));
  const Array weight(behind_first(numbers(4)));
  const Array out{std::vector<float>(kCount)};
  bound.program.set(MemorySpace::Input, 0, x.data());
  bound.program.set(MemorySpace::Weight, 0, weight.data());
  bound.program.set(MemorySpace::Output, 0, out.data());
  bound.program.launch(bound.stream.get());
  bound.stream.synchronize();
  CHECK(out.values() == expected(numbers(3), numbers(4)));
  CHECK(bound.pointers.out.values() == expected(numbers(1), numbers(2)));
}

TEST_CASE("a launch into a stream that is being captured becomes part of that graph") {
  Bound bound;
  const Array x(numbers(6));
  bound.program.set(MemorySpace::Input, 0, x.data());
  STOF_CUDA(cudaStreamBeginCapture(bound.stream.get(), cudaStreamCaptureModeGlobal));
  bound.program.launch(bound.stream.get());
  cudaGraph_t graph = nullptr;
  STOF_CUDA(cudaStreamEndCapture(bound.stream.get(), &graph));
  std::size_t node_count = 0;
  STOF_CUDA(cudaGraphGetNodes(graph, nullptr, &node_count));
  CHECK(node_count == 3);
  CHECK(bound.pointers.out.values() == std::vector<float>(kCount));  // nothing has run

  cudaGraphExec_t exec = nullptr;
  STOF_CUDA(cudaGraphInstantiate(&exec, graph, 0));
  STOF_CUDA(cudaGraphLaunch(exec, bound.stream.get()));
  bound.stream.synchronize();
  CHECK(bound.pointers.out.values() == expected(numbers(6), numbers(2)));
  STOF_CUDA(cudaGraphExecDestroy(exec));
  STOF_CUDA(cudaGraphDestroy(graph));
}

TEST_CASE("a workspace of the caller is used, and zeroed where it must be") {
  const std::int64_t size_bytes = load(three_launches())->arena().size_bytes;
  CHECK(size_bytes > 0);
  const DeviceMemory workspace(0, static_cast<std::size_t>(size_bytes));
  workspace.write(std::vector<std::byte>(static_cast<std::size_t>(size_bytes), std::byte{0xff}));
  const Bound bound(workspace.data());
  bound.program.launch(bound.stream.get());
  bound.stream.synchronize();
  CHECK(bound.pointers.out.values() == expected(numbers(1), numbers(2)));
}

TEST_CASE("two that are bound to one program do not disturb each other") {
  const std::shared_ptr<const DeviceProgram> program = load(three_launches());
  const Bound::Tensors first;
  const Bound::Tensors second;
  const Array x(numbers(9));
  const BoundProgram one(program, first.all());
  BoundProgram two(program, second.all());
  two.set(MemorySpace::Input, 0, x.data());
  const cuda::Stream streams[2];
  for (int i = 0; i < 20; ++i) {
    one.launch(streams[0].get());
    two.launch(streams[1].get());
  }
  streams[0].synchronize();
  streams[1].synchronize();
  CHECK(first.out.values() == expected(numbers(1), numbers(2)));
  CHECK(second.out.values() == expected(numbers(9), numbers(2)));
}

TEST_CASE("a program without launches is one") {
  const auto program = std::make_shared<const DeviceProgram>(
      0, Program{}, std::span<const std::span<const std::byte>>());
  const Bound::Tensors tensors;
  BoundProgram bound(program, tensors.all());
  bound.set(MemorySpace::Input, 0, tensors.x.data());
  bound.launch(nullptr);
  CHECK(program->arena().size_bytes == 0);
}

TEST_CASE("a tensor map follows its pointer") {
  // Reads 8 rows of 32 floats from row 4 and column 16 of a tensor of 12 rows of 40; what lies
  // outside is zero. The copy swaps 16-byte chunks within rows: chunk c of row r lies at c ^ r.
  constexpr const char* kCopy = R"(
struct alignas(128) Map { unsigned long long words[16]; };
extern "C" __global__ void copy(const __grid_constant__ Map map, float* out) {
  __shared__ __align__(1024) float tile[8 * 32];
  __shared__ unsigned long long barrier;
  unsigned at = __cvta_generic_to_shared(&barrier), to = __cvta_generic_to_shared(tile), done = 0;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 1024;" ::"r"(at) : "memory");
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%3, %4}], [%2];" ::"r"(to), "l"(&map), "r"(at), "r"(16), "r"(4)
                 : "memory");
  }
  __syncthreads();
  while (done == 0) {
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; "
                 "selp.u32 %0, 1, 0, p; }" : "=r"(done) : "r"(at) : "memory");
  }
  for (int i = threadIdx.x; i < 256; i += 32) {
    int row = i / 32, chunk = i % 32 / 4;
    out[i] = tile[row * 32 + (chunk ^ row) * 4 + i % 4];
  }
}
)";
  const std::string target = cuda::read_device_profile(0).target;
  if (stof::base::parse_gpu_target(target).capability < 90) {
    return;
  }
  Program program;
  program.kernels = {"copy"};
  program.launches = {{.kernel = 0,
                       .block = {32, 1, 1},
                       .arguments = {stof::kernel::TensorMap{.data = at(MemorySpace::Input, 0, 16),
                                                             .dtype = stof::DType::Float32,
                                                             .extents = {12, 40},
                                                             .strides = {40, 1},
                                                             .box = {8, 32}},
                                     at(MemorySpace::Output)},
                       .label = "copy"}};
  compile::CompileTask task;
  task.source.text = kCopy;
  task.target = stof::base::parse_gpu_target(target);
  const compile::CompiledKernel compiled = compile::NvrtcCompiler().compile(task, {});
  const std::vector<std::span<const std::byte>> cubins = {compiled.cubin};
  const auto loaded = std::make_shared<const DeviceProgram>(0, program, cubins);

  const auto tile_of = [](const std::vector<float>& x) {
    std::vector<float> tile(256);
    for (std::size_t i = 0; i < tile.size(); ++i) {
      const std::size_t row = 4 + i / 32;
      const std::size_t column = 16 + i % 32;
      tile[i] = column < 40 ? x[4 + row * 40 + column] : 0.0F;
    }
    return tile;
  };
  const Array first(numbers(1));
  const Array second(numbers(2));
  const Array out{std::vector<float>(kCount)};
  std::vector<void*> inputs = {first.data()};
  std::vector<void*> outputs = {out.data()};
  BoundProgram bound(loaded, {.inputs = inputs, .outputs = outputs, .weights = {}});
  const cuda::Stream stream;
  for (const Array* input : {&first, &second}) {
    bound.set(MemorySpace::Input, 0, input->data());
    bound.launch(stream.get());
    stream.synchronize();
    std::vector<float> tile = out.values();
    tile.resize(256);
    CHECK(tile == tile_of(input->values()));
  }
}

TEST_CASE("arguments that are not those of the kernel are found before it runs") {
  Program program = three_launches();
  program.launches[2].arguments.pop_back();
  CHECK(fault(program).ends_with("launch 'finish' has 4 arguments, its kernel takes 5"));
  program = three_launches();
  program.launches[1].arguments[4] = std::int32_t{kCount};
  CHECK(fault(program).ends_with("argument 4 of launch 'reverse' has 4 bytes, its kernel takes 8"));
}

TEST_CASE("a launch takes some time") {
  const Bound bound;
  constexpr int kLaunches = 10;
  const cuda::Stream stream;
  const cuda::Event start, end;
  start.record(stream.get());
  for (int i = 0; i < kLaunches; ++i) {
    bound.program.launch(stream.get());
  }
  end.record(stream.get());
  end.synchronize();
  const double time_us = end.microseconds_since(start) / kLaunches;
  CHECK(time_us > 1);
  CHECK(time_us < 1000);
}
