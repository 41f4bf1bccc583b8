#include "cuda/toolkit_headers.hpp"

#include <set>
#include <system_error>
#include <utility>

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "base/check.hpp"
#include "base/environment.hpp"
#include "base/files.hpp"
#include "base/hash.hpp"
#include "stof/error.hpp"

namespace stof::cuda {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxHeaderBytes = std::size_t{16} << 20;

// What a header includes when NVRTC reads it; the rest is for host compilers.
const std::map<std::string, std::vector<std::string>, std::less<>>& known_headers() {
  static const std::map<std::string, std::vector<std::string>, std::less<>> headers = {
      {"cuda_fp16.h", {}}, {"cuda_bf16.h", {"cuda_fp16.h"}}};
  return headers;
}

// lib/ and include/ are siblings in a toolkit, in a wheel and in targets/; Debian has one folder
// more. An application may put the headers beside its libnvrtc.
std::vector<fs::path> include_folders(const fs::path& nvrtc_library) {
  std::vector<fs::path> folders;
  std::error_code error;
  for (const fs::path& library : {nvrtc_library, fs::canonical(nvrtc_library, error)}) {
    const fs::path folder = library.parent_path();
    if (!folder.empty()) {
      folders.push_back(folder.parent_path() / "include");
      folders.push_back(folder.parent_path().parent_path() / "include");
      folders.push_back(folder / "include");
      folders.push_back(folder);
    }
  }
  if (const auto home = base::read_environment().cuda_home) {
    folders.push_back(*home / "include");
  }
  folders.emplace_back("/usr/local/cuda/include");
  return folders;
}

}  // namespace

ToolkitHeaders::ToolkitHeaders(const fs::path& nvrtc_library)
    : ToolkitHeaders(include_folders(nvrtc_library)) {}

ToolkitHeaders::ToolkitHeaders(std::vector<fs::path> folders) : folders_(std::move(folders)) {}

bool ToolkitHeaders::is_known(std::string_view name) {
  return known_headers().contains(name);
}

std::vector<const NvrtcHeader*> ToolkitHeaders::read(const std::vector<std::string>& names) {
  std::set<std::string> closure;
  for (const std::string& name : names) {
    STOF_CHECK(is_known(name)) << name;
    const std::vector<std::string>& more = known_headers().at(name);
    closure.insert(name);
    closure.insert(more.begin(), more.end());
  }
  const std::scoped_lock lock(mutex_);
  std::vector<const NvrtcHeader*> headers;
  headers.reserve(closure.size());
  for (const std::string& name : closure) {
    headers.push_back(&header(name));
  }
  return headers;
}

const NvrtcHeader& ToolkitHeaders::header(const std::string& name) {
  if (const auto found = headers_.find(name); found != headers_.end()) {
    return found->second;
  }
  std::set<fs::path> seen;
  std::string list;
  for (const fs::path& folder : folders_) {
    if (!seen.insert(folder).second) {
      continue;
    }
    std::error_code error;
    if (fs::is_regular_file(folder / name, error)) {
      std::string text = base::read_file(folder / name, kMaxHeaderBytes);
      const base::Digest digest = base::hash(text);
      return headers_[name] = {.name = name, .text = std::move(text), .digest = digest};
    }
    list += (list.empty() ? "" : ", ") + folder.string();
  }
  throw CudaError(cudaErrorFileNotFound,
                  fmt::format("cuda: a kernel includes <{}>, which is in none of: {}", name, list));
}

}  // namespace stof::cuda
