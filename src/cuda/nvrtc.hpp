#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include <nvrtc.h>

#include "base/hash.hpp"
#include "cuda/nvrtc_files.hpp"
#include "cuda/shared_library.hpp"

namespace stof::cuda {

// A header that a source includes by name; no file is read.
struct NvrtcHeader {
  std::string name;
  std::string text;
  base::Digest digest;  // of text
};

struct NvrtcProgram {
  std::string_view source;
  std::string name;                  // what the log calls it: "kernel.cu"
  std::vector<std::string> options;  // one each: "-arch=sm_90a"
  std::span<const NvrtcHeader* const> headers;
  std::vector<std::string> name_expressions;  // "my::kernel<float>"
};

enum class NvrtcStatus { Success, Failed, InvalidOption, Cancelled };

struct NvrtcResult {
  NvrtcStatus status = NvrtcStatus::Failed;
  std::string log;
  std::string ptx;                         // also where ptxas failed; empty where the C++ was wrong
  std::vector<std::byte> cubin;            // of a Success for a target sm_XX
  std::vector<std::string> lowered_names;  // of a Success, one a name expression
};

// The functions of libnvrtc that stof calls, with nvrtc.h's own types.
struct NvrtcFunctions {
  decltype(&nvrtcVersion) version;
  decltype(&nvrtcGetErrorString) error_string;
  decltype(&nvrtcCreateProgram) create_program;
  decltype(&nvrtcDestroyProgram) destroy_program;
  decltype(&nvrtcCompileProgram) compile_program;
  decltype(&nvrtcSetFlowCallback) set_flow_callback;
  decltype(&nvrtcAddNameExpression) add_name_expression;
  decltype(&nvrtcGetLoweredName) lowered_name;
  decltype(&nvrtcGetProgramLogSize) log_size;
  decltype(&nvrtcGetProgramLog) log;
  decltype(&nvrtcGetPTXSize) ptx_size;
  decltype(&nvrtcGetPTX) ptx;
  decltype(&nvrtcGetCUBINSize) cubin_size;
  decltype(&nvrtcGetCUBIN) cubin;
};

// NVRTC, opened at run time. Needs no GPU and no driver.
class Nvrtc {
 public:
  // Opens both libraries. Throws CudaError where one is missing, broken or of another version.
  explicit Nvrtc(const NvrtcFiles& files);

  int version() const { return version_; }  // 13000 for 13.0
  const NvrtcFiles& files() const { return files_; }

  // From any thread. Wrong sources and options are results; the compiler's own failures throw
  // CudaError. A stop request ends it within about 0.1 s of compiling, with Cancelled.
  NvrtcResult compile(const NvrtcProgram& program, const std::stop_token& stop) const;

 private:
  NvrtcFiles files_;
  SharedLibrary library_;
  NvrtcFunctions functions_;
  int version_ = 0;
};

}  // namespace stof::cuda
