#include "compile/nvrtc_compiler.hpp"

#include <algorithm>
#include <set>
#include <string>

#include <doctest/doctest.h>

#include "base/files.hpp"
#include "stof/error.hpp"

using namespace stof::compile;  // NOLINT(google-build-using-namespace)
using stof::CompileError;
using stof::CompileMessage;

namespace {

const NvrtcCompiler& compiler() {
  static const NvrtcCompiler compiler;
  return compiler;
}

// Every rendered line n is line 100 + n of a.jinja.
CompileTask task_of(const std::string& text, const char* target = "sm_90a") {
  CompileTask task;
  task.source.text = text;
  task.source.lines.files = {"a.jinja"};
  task.source.lines.runs = {{.rendered_line = 1, .file = 0, .template_line = 101, .step = 1}};
  task.target = stof::base::parse_gpu_target(target);
  return task;
}

std::string kernel_file(const std::string& name) {
  return stof::base::read_file(STOF_SOURCE_DIR "/tests/compile/kernels/" + name, 1 << 16);
}

// Where a text is in a source, after another one, as a line of a.jinja.
int template_line(const std::string& source, const std::string& text,
                  const std::string& after = "") {
  const auto at = static_cast<std::ptrdiff_t>(source.find(text, source.find(after)));
  REQUIRE(at >= 0);
  return 101 + static_cast<int>(std::count(source.begin(), source.begin() + at, '\n'));
}

CompileError error_of(const CompileTask& task) {
  try {
    compiler().compile(task, {});
  } catch (const CompileError& error) {
    return error;
  }
  FAIL("compiles");
  return {"", "", "", {}};
}

std::set<std::string> codes_about(const CompiledKernel& kernel, const std::string& function) {
  std::set<std::string> codes;
  for (const CompileMessage& message : kernel.messages) {
    if (message.text.find("'" + function + "'") != std::string::npos) {
      codes.insert(message.code);
    }
  }
  return codes;
}

constexpr const char* kCopy =
    "extern \"C\" __global__ void copy(float* to, const float* from) { *to = *from; }\n";

}  // namespace

TEST_CASE("every target gives a cubin of its own") {
  std::set<std::vector<std::byte>> cubins;
  const auto targets = {"sm_80",  "sm_86",  "sm_89",   "sm_90",
                        "sm_90a", "sm_100", "sm_100a", "sm_120"};
  for (const char* target : targets) {
    CAPTURE(target);
    const CompiledKernel kernel = compiler().compile(task_of(kCopy, target), {});
    CHECK(kernel.entry("copy").registers > 0);
    CHECK(quality_faults(kernel).empty());
    CHECK(kernel.messages.empty());
    CHECK(kernel.compile_ms > 0);
    cubins.insert(kernel.cubin);
  }
  CHECK(cubins.size() == targets.size());
}

TEST_CASE("the same source is the same cubin, from another compiler object too") {
  const CompileTask task = task_of(kernel_file("resources.cu"));
  CHECK(compiler().compile(task, {}).cubin == NvrtcCompiler().compile(task, {}).cubin);
}

TEST_CASE("the resources of real kernels are read") {
  for (const char* target : {"sm_80", "sm_90a", "sm_120"}) {
    CAPTURE(target);
    CompileTask task = task_of(kernel_file("resources.cu"), target);
    task.name_expressions = {"scale<3>"};
    const CompiledKernel kernel = compiler().compile(task, {});
    CHECK(kernel.lowered_names == std::vector<std::string>{"_Z5scaleILi3EEvPf"});
    CHECK(kernel.functions.front().name == "nothing");
    CHECK(kernel.entry("_Z5scaleILi3EEvPf").registers > 0);
    CHECK(kernel.entry("shares").shared_bytes == 512 * 4);
    CHECK(kernel.entry("shares").barriers == 1);
    CHECK(kernel.entry("nothing").barriers == 0);
    const FunctionResources& spills = kernel.entry("spills");
    CHECK(spills.registers <= 65536 / 1024);
    CHECK(spills.spill_store_bytes > 0);
    CHECK(spills.spill_load_bytes >= spills.spill_store_bytes);
    CHECK(spills.stack_bytes > 0);
    CHECK(std::ranges::any_of(kernel.functions, [](const FunctionResources& function) {
      return !function.is_entry && function.name == "_Z4pickfi";
    }));
    const std::string faults = quality_faults(kernel).front();
    CHECK(faults.starts_with("spills spills "));
  }
}

TEST_CASE("what ptxas says of wgmma is read, and led to the template") {
  const CompileTask task = task_of(kernel_file("wgmma.cu"));
  const CompiledKernel kernel = compiler().compile(task, {});
  CHECK(codes_about(kernel, "clean").empty());
  CHECK(codes_about(kernel, "no_wait") == std::set<std::string>{"C7517"});
  CHECK(codes_about(kernel, "no_fence") == std::set<std::string>{"C7519"});
  CHECK(codes_about(kernel, "calls") == std::set<std::string>{"C7510"});
  CHECK_FALSE(codes_about(kernel, "setmaxnreg").empty());
  const auto is_about = [](const char* function) {
    return [function](const CompileMessage& message) {
      return message.text.find(function) != std::string::npos;
    };
  };
  CHECK(std::ranges::any_of(kernel.messages, [](const CompileMessage& message) {
    return is_performance_loss(message) && message.text.find("'early_write'") != std::string::npos;
  }));
  const auto injected = std::ranges::find_if(kernel.messages, is_about("'no_fence'"));
  REQUIRE(injected != kernel.messages.end());
  CHECK(injected->file == "a.jinja");
  CHECK(injected->line == template_line(task.source.text, ": \"l\"(describe(tiles))"));
  const int call = template_line(task.source.text, "multiply(d, tiles);", "no_fence");
  REQUIRE_FALSE(injected->notes.empty());
  CHECK(injected->notes[0] == "called from a.jinja:" + std::to_string(call));
  CHECK(std::ranges::none_of(
      kernel.messages, [](const CompileMessage& message) { return message.file == "kernel.cu"; }));
}

TEST_CASE("an error of the front end names the line of the template and what led there") {
  const std::string source =
      "template <int N> struct Row {\n"
      "  static_assert(N < 3, \"too wide\");\n"
      "};\n"
      "extern \"C\" __global__ void k() {\n"
      "  Row<4> row;\n"
      "  undefined_thing;\n"
      "}\n";
  const CompileError error = error_of(task_of(source));
  CHECK(std::string(error.what()) ==
        "compile: kernel for sm_90a has 2 errors\n"
        "a.jinja:102: error: static assertion failed with \"too wide\"\n"
        "  instantiation of class \"Row<N> [with N=4]\" at a.jinja:105\n"
        "a.jinja:106: error: identifier \"undefined_thing\" is undefined");
  CHECK(error.source() == source);
  CHECK(error.log().find("kernel.cu(6): error") != std::string::npos);
}

TEST_CASE("an error of ptxas names the line of the template, and the caller") {
  const std::string source =
      "__device__ void fence() {\n"
      "  asm volatile(\"wgmma.fence.sync.aligned;\");\n"
      "}\n"
      "extern \"C\" __global__ void k(int* to) {\n"
      "  *to = 1;\n"
      "  fence();\n"
      "}\n";
  const CompileError error = error_of(task_of(source, "sm_90"));
  CHECK(std::string(error.what()) ==
        "compile: kernel for sm_90 has 1 error\n"
        "a.jinja:102: error: Instruction 'wgmma.fence' not supported on .target 'sm_90'\n"
        "  called from a.jinja:106\n"
        "  PTX: wgmma.fence.sync.aligned;");
}

TEST_CASE("an error of ptxas without a line is an error all the same") {
  const CompileError error =
      error_of(task_of("extern \"C\" __global__ void k(int* to) {\n"
                       "  __shared__ int big[70000];\n"
                       "  big[threadIdx.x] = *to;\n"
                       "  __syncthreads();\n"
                       "  *to = big[*to];\n"
                       "}\n"));
  CHECK(std::string(error.what()).find("too much shared data") != std::string::npos);
  CHECK(error.messages().size() == 1);
}

TEST_CASE("warnings come with the kernel") {
  const CompiledKernel kernel =
      compiler().compile(task_of("extern \"C\" __global__ void k() {\n  int unused;\n}\n"), {});
  REQUIRE(kernel.messages.size() == 1);
  CHECK(kernel.messages[0].str() ==
        "a.jinja:102: warning 177-D: variable \"unused\" was declared but never referenced");
}

TEST_CASE("kernels may include the float headers, in either spelling, and no others") {
  for (const char* target : {"sm_80", "sm_90a"}) {
    const CompileTask task = task_of(
        "#include <cuda_bf16.h>\n"
        "#  include \"cuda_fp16.h\"\n"
        "extern \"C\" __global__ void k(__nv_bfloat16* to, __half x) { *to = float(x); }\n",
        target);
    CHECK(compiler().compile(task, {}).entry("k").registers > 0);
    const CompileInputs inputs = compiler().inputs(task);
    REQUIRE(inputs.headers.size() == 2);
    CHECK(inputs.headers[0].name == "cuda_bf16.h");
    CHECK(inputs.headers[1].name == "cuda_fp16.h");
  }
  const CompileError error = error_of(task_of("#include <mma.h>\n"));
  CHECK(
      std::string(error.what()).find("a.jinja:101: error: could not open source file \"mma.h\"") !=
      std::string::npos);
  CHECK(std::string(error.what()).find("kernels may include cuda_fp16.h and cuda_bf16.h") !=
        std::string::npos);
}

TEST_CASE("what decides a cubin is known without a compile") {
  const CompileInputs inputs = compiler().inputs(task_of(kCopy));
  CHECK(inputs.compiler.starts_with("nvrtc "));
  CHECK(inputs.headers.empty());
  CHECK(inputs.options.front() == "-arch=sm_90a");
  CHECK(compiler().inputs(task_of(kCopy, "sm_80")).options.front() == "-arch=sm_80");
}

TEST_CASE("a stop that was asked for cancels") {
  std::stop_source stop;
  stop.request_stop();
  CHECK_THROWS_AS(compiler().compile(task_of(kCopy), stop.get_token()), stof::CancelledError);
}

TEST_CASE("a compiler that is not there is an error when it is wanted") {
  const NvrtcCompiler none({.library = "/no/libnvrtc.so.13", .builtins = "/no/builtins"});
  CHECK_THROWS_AS(none.compile(task_of(kCopy), {}), stof::CudaError);
  CHECK_THROWS_AS(none.inputs(task_of(kCopy)), stof::CudaError);
}

TEST_CASE("source with a NUL in it, or none at all, does no harm") {
  CHECK_THROWS_AS(compiler().compile(task_of(std::string("int\0x", 5)), {}), CompileError);
  CHECK_NOTHROW(compiler().compile(task_of(""), {}));
}
