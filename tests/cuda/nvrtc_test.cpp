#include "cuda/nvrtc.hpp"

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include <doctest/doctest.h>

#include "stof/error.hpp"
#include "temporary_folder.hpp"

using namespace stof::cuda;  // NOLINT(google-build-using-namespace)
namespace fs = std::filesystem;

namespace {

const Nvrtc& nvrtc() {
  static const Nvrtc nvrtc(find_nvrtc());
  return nvrtc;
}

NvrtcProgram program(std::string_view source) {
  NvrtcProgram program;
  program.source = source;
  program.name = "kernel.cu";
  program.options = {"-arch=sm_80", "--minimal", "-default-device", "--no-cache"};
  return program;
}

constexpr std::string_view kCopy =
    "extern \"C\" __global__ void copy(float* to, const float* from) { *to = *from; }\n";

}  // namespace

TEST_CASE("a kernel becomes PTX and an ELF cubin, twice the same") {
  CHECK(nvrtc().version() >= 13000);
  const NvrtcResult first = nvrtc().compile(program(kCopy), {});
  CHECK(first.status == NvrtcStatus::Success);
  CHECK(first.log.empty());
  CHECK(first.ptx.find(".entry copy") != std::string::npos);
  REQUIRE(first.cubin.size() > 4);
  CHECK(first.cubin[1] == std::byte{'E'});
  CHECK(nvrtc().compile(program(kCopy), {}).cubin == first.cubin);
}

TEST_CASE("wrong C++ has a log and no PTX, a wrong option a log alone") {
  const NvrtcResult wrong = nvrtc().compile(program("int f() { return x; }"), {});
  CHECK(wrong.status == NvrtcStatus::Failed);
  CHECK(wrong.log.find("kernel.cu(1): error: identifier \"x\" is undefined") != std::string::npos);
  CHECK(wrong.ptx.empty());
  CHECK(wrong.cubin.empty());
  NvrtcProgram bad_option = program(kCopy);
  bad_option.options.emplace_back("-O3");
  const NvrtcResult refused = nvrtc().compile(bad_option, {});
  CHECK(refused.status == NvrtcStatus::InvalidOption);
  CHECK(refused.log.find("unrecognized option -O3") != std::string::npos);
}

TEST_CASE("what ptxas refuses has PTX and a log") {
  const NvrtcResult result =
      nvrtc().compile(program("__global__ void k() { asm(\"no_such_instruction;\"); }"), {});
  CHECK(result.status == NvrtcStatus::Failed);
  CHECK(result.ptx.find("no_such_instruction") != std::string::npos);
  CHECK(result.log.find("ptxas application ptx input, line ") != std::string::npos);
}

TEST_CASE("headers come from memory") {
  const NvrtcHeader header = {.name = "answer.h", .text = "#define ANSWER 42\n", .digest = {}};
  const NvrtcHeader* const headers[] = {&header};
  NvrtcProgram source =
      program("#include \"answer.h\"\nextern \"C\" __global__ void k(int* to) { *to = ANSWER; }\n");
  CHECK(nvrtc().compile(source, {}).status == NvrtcStatus::Failed);
  source.headers = headers;
  const NvrtcResult result = nvrtc().compile(source, {});
  CHECK(result.status == NvrtcStatus::Success);
  CHECK(result.ptx.find("42") != std::string::npos);
}

TEST_CASE("name expressions give lowered names") {
  NvrtcProgram source = program("template <int N> __global__ void k(int* to) { *to = N; }\n");
  source.name_expressions = {"k<3>", "k<4>"};
  const NvrtcResult result = nvrtc().compile(source, {});
  CHECK(result.lowered_names == std::vector<std::string>{"_Z1kILi3EEvPi", "_Z1kILi4EEvPi"});
  source.name_expressions = {"no_such_kernel"};
  CHECK(nvrtc().compile(source, {}).status == NvrtcStatus::Failed);
}

TEST_CASE("a stop that was asked for before is obeyed at once") {
  std::stop_source stop;
  stop.request_stop();
  CHECK(nvrtc().compile(program(kCopy), stop.get_token()).status == NvrtcStatus::Cancelled);
}

TEST_CASE("a library that is none is an error with the loader's reason") {
  const stof::test::TemporaryFolder folder;
  const fs::path library = folder.path() / "libnvrtc.so.13";
  std::ofstream(library) << "no library";
  const NvrtcFiles files = {.library = library, .builtins = nvrtc().files().builtins};
  const std::string message =
      "cuda: cannot open " + library.string() + ": " + library.string() + ": file too short";
  CHECK_THROWS_WITH_AS(Nvrtc{files}, message.c_str(), stof::CudaError);
}

TEST_CASE("a library without NVRTC's functions is an error that names one") {
  const fs::path builtins = nvrtc().files().builtins;
  const std::string message = "cuda: " + builtins.string() + " has no function nvrtcVersion";
  CHECK_THROWS_WITH_AS(Nvrtc({.library = builtins, .builtins = builtins}), message.c_str(),
                       stof::CudaError);
}
