#include "cuda/nvrtc_files.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include "base/files.hpp"
#include "base/hash.hpp"
#include "cuda/elf_build_id.hpp"
#include "cuda/find_library.hpp"
#include "stof/error.hpp"

namespace stof::cuda {

namespace {

namespace fs = std::filesystem;

constexpr int kMajor = CUDA_VERSION / 1000;

// The minor version in "libnvrtc-builtins.so.13.0". Names with more or less after it are other
// files: "….13.0.88" is what that one links to.
std::optional<int> minor_version(const std::string& name) {
  const std::string prefix = fmt::format("libnvrtc-builtins.so.{}.", kMajor);
  int minor = 0;
  const char* const end = name.data() + name.size();
  if (!name.starts_with(prefix)) {
    return std::nullopt;
  }
  const auto [rest, error] = std::from_chars(name.data() + prefix.size(), end, minor);
  return error == std::errc() && rest == end && minor >= 0 ? std::optional(minor) : std::nullopt;
}

// Should several versions share a folder, the newest is what its libnvrtc.so.13 belongs to.
std::optional<fs::path> builtins_in(const fs::path& folder) {
  std::optional<fs::path> best;
  int best_minor = -1;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const auto minor = minor_version(entry->path().filename().string());
    if (minor && *minor > best_minor) {
      best = entry->path();
      best_minor = *minor;
    }
  }
  return best;
}

// What stat tells of a file that is replaced.
using FileState = std::array<std::int64_t, 7>;

std::optional<FileState> state_of(const fs::path& file) {
  struct stat state = {};
  if (stat(file.c_str(), &state) != 0) {
    return std::nullopt;
  }
  return FileState{static_cast<std::int64_t>(state.st_dev),
                   static_cast<std::int64_t>(state.st_ino),
                   state.st_size,
                   state.st_mtim.tv_sec,
                   state.st_mtim.tv_nsec,
                   state.st_ctim.tv_sec,
                   state.st_ctim.tv_nsec};
}

std::string read_build(const fs::path& file) {
  const base::MappedFile mapped(file);
  const auto id = elf_build_id(mapped.bytes());
  return id ? *id : "xxh3-" + base::hash(mapped.bytes()).hex();
}

// Hashing a library of 100 MB takes longer than a warm start should.
class BuildMemo {
 public:
  std::string build(const fs::path& file, const FileState& state) {
    const std::scoped_lock lock(mutex_);
    Entry& entry = entries_[file];
    if (entry.build.empty() || entry.state != state) {
      entry = {.state = state, .build = read_build(file)};
    }
    return entry.build;
  }

 private:
  struct Entry {
    FileState state = {};
    std::string build;
  };

  std::mutex mutex_;
  std::map<fs::path, Entry> entries_;
};

}  // namespace

NvrtcFiles find_nvrtc() {
  const std::string soname = fmt::format("libnvrtc.so.{}", kMajor);
  return nvrtc_files_beside(find_library(soname, library_folders(soname)));
}

NvrtcFiles nvrtc_files_beside(const fs::path& library) {
  std::error_code error;
  const fs::path target = fs::canonical(library, error);
  for (const fs::path& folder : {library.parent_path(), target.parent_path()}) {
    if (auto builtins = builtins_in(folder)) {
      return {.library = library, .builtins = std::move(*builtins)};
    }
  }
  throw CudaError(
      cudaErrorSharedObjectInitFailed,
      fmt::format("cuda: {} has no libnvrtc-builtins.so.{}.* beside it", library.string(), kMajor));
}

std::string library_build(const fs::path& file) {
  static BuildMemo memo;
  const auto state = state_of(file);
  if (!state) {
    throw CudaError(cudaErrorSharedObjectInitFailed,
                    fmt::format("cuda: cannot read {}: {}", file.string(),
                                std::generic_category().message(errno)));
  }
  try {
    return memo.build(file, *state);
  } catch (const GraphError& error) {
    throw CudaError(cudaErrorSharedObjectInitFailed, fmt::format("cuda: {}", error.what()));
  }
}

std::string compiler_identity(const NvrtcFiles& files) {
  return fmt::format("nvrtc {} {}", library_build(files.library), library_build(files.builtins));
}

}  // namespace stof::cuda
