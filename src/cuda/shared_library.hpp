#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace stof::cuda {

// A library opened at run time. It stays in the process when this dies, because the libraries that
// stof opens keep threads and exit handlers of their own.
class SharedLibrary {
 public:
  // Throws CudaError with the loader's reason.
  explicit SharedLibrary(const std::filesystem::path& file);

  // The function of that name: function<decltype(nvrtcVersion)>("nvrtcVersion"). Throws CudaError.
  template <typename Function>
  Function* function(const char* name) const {
    return reinterpret_cast<Function*>(symbol(name));
  }

  // Where it is, as the loader knows it.
  const std::filesystem::path& file() const { return file_; }

 private:
  void* symbol(const char* name) const;

  void* handle_;
  std::filesystem::path file_;
};

// The file of a library that the process has loaded already; opens nothing.
std::optional<std::filesystem::path> loaded_library(const std::string& soname);

}  // namespace stof::cuda
