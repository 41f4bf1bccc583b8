#include "cuda/shared_library.hpp"

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include "stof/error.hpp"

namespace stof::cuda {

namespace {

std::filesystem::path file_of(void* handle) {
  const link_map* map = nullptr;
  return dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 ? map->l_name : "";
}

}  // namespace

SharedLibrary::SharedLibrary(const std::filesystem::path& file)
    : handle_(dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)) {
  if (handle_ == nullptr) {
    throw CudaError(cudaErrorSharedObjectInitFailed,
                    fmt::format("cuda: cannot open {}: {}", file.string(), dlerror()));
  }
  file_ = file_of(handle_);
}

void* SharedLibrary::symbol(const char* name) const {
  void* const address = dlsym(handle_, name);
  if (address == nullptr) {
    throw CudaError(cudaErrorSharedObjectSymbolNotFound,
                    fmt::format("cuda: {} has no function {}", file_.string(), name));
  }
  return address;
}

std::optional<std::filesystem::path> loaded_library(const std::string& soname) {
  void* const handle = dlopen(soname.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) {
    return std::nullopt;
  }
  std::filesystem::path file = file_of(handle);
  dlclose(handle);
  return file;
}

}  // namespace stof::cuda
