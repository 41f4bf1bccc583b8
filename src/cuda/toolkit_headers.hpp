#pragma once

#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "cuda/nvrtc.hpp"

namespace stof::cuda {

// CUDA headers that kernels may include, handed to NVRTC as texts. They are read from the toolkit
// that NVRTC belongs to, because they are not all free to be shipped and do not mix with others.
class ToolkitHeaders {
 public:
  // Looks in the include folders near a libnvrtc, then CUDA_HOME's and /usr/local/cuda's.
  explicit ToolkitHeaders(const std::filesystem::path& nvrtc_library);
  explicit ToolkitHeaders(std::vector<std::filesystem::path> folders);

  // Whether kernels may include it at all: cuda_fp16.h and cuda_bf16.h.
  static bool is_known(std::string_view name);

  // The headers of these names, known ones, and those that they include in turn, in order of name;
  // they live as long as this. Throws CudaError that says where one was looked for. From any
  // thread; each file is read once.
  std::vector<const NvrtcHeader*> read(const std::vector<std::string>& names);

 private:
  const NvrtcHeader& header(const std::string& name);

  std::vector<std::filesystem::path> folders_;
  std::mutex mutex_;
  std::map<std::string, NvrtcHeader> headers_;
};

}  // namespace stof::cuda
