#include "cuda/find_library.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <system_error>
#include <utility>

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include "base/environment.hpp"
#include "base/files.hpp"
#include "cuda/shared_library.hpp"
#include "stof/error.hpp"

namespace stof::cuda {

namespace {

namespace fs = std::filesystem;

// The start of an ld.so.cache, and its entries after that: glibc's sysdeps/generic/dl-cache.h.
struct CacheHeader {
  char magic[20];  // name and version
  std::uint32_t entry_count;
  std::uint32_t strings_size;
  std::uint32_t unused[5];
};
struct CacheEntry {
  std::int32_t flags;
  std::uint32_t name;  // offset of the SONAME from the start of the header
  std::uint32_t file;  // offset of the path
  std::uint32_t os_version;
  std::uint64_t hardware;
};
static_assert(sizeof(CacheHeader) == 48 && sizeof(CacheEntry) == 24);

constexpr std::string_view kCacheMagic = "glibc-ld.so.cache1.1";

// The low byte says that it is an ELF library, the next one for which machine.
#if defined(__x86_64__)
constexpr std::int32_t kCacheFlags = 0x0303;
#elif defined(__aarch64__)
constexpr std::int32_t kCacheFlags = 0x0a03;
#endif

// Bytes at an offset of a text that may be any bytes at all.
template <typename T>
std::optional<T> read_at(std::string_view bytes, std::size_t offset) {
  T value;
  if (offset > bytes.size() || bytes.size() - offset < sizeof value) {
    return std::nullopt;
  }
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

std::string_view string_at(std::string_view bytes, std::size_t offset) {
  const std::string_view rest = bytes.substr(std::min(offset, bytes.size()));
  return rest.substr(0, rest.find('\0'));
}

struct LoaderFolders {
  std::vector<fs::path> asked_for;  // LD_LIBRARY_PATH, RPATH and RUNPATH
  std::vector<fs::path> standard;
};

LoaderFolders loader_folders() {
  LoaderFolders folders;
  void* const program = dlopen(nullptr, RTLD_LAZY);
  Dl_serinfo size = {};
  if (program == nullptr || dlinfo(program, RTLD_DI_SERINFOSIZE, &size) != 0) {
    return folders;
  }
  std::vector<std::max_align_t> memory(size.dls_size / sizeof(std::max_align_t) + 1);
  auto* const info = reinterpret_cast<Dl_serinfo*>(memory.data());
  if (dlinfo(program, RTLD_DI_SERINFOSIZE, info) == 0 &&
      dlinfo(program, RTLD_DI_SERINFO, info) == 0) {
    const Dl_serpath* const paths = info->dls_serpath;
    for (unsigned i = 0; i < info->dls_cnt; ++i) {
      const bool is_standard = (paths[i].dls_flags & LA_SER_DEFAULT) != 0;
      (is_standard ? folders.standard : folders.asked_for).emplace_back(paths[i].dls_name);
    }
  }
  return folders;
}

std::optional<fs::path> loader_cache_folder(const std::string& soname) {
  constexpr std::size_t kMaxBytes = std::size_t{64} << 20;
  try {
    const auto cache = base::read_file_if_exists("/etc/ld.so.cache", kMaxBytes);
    const auto file = cache ? find_in_loader_cache(*cache, soname) : std::nullopt;
    return file ? std::optional(file->parent_path()) : std::nullopt;
  } catch (const GraphError&) {
    return std::nullopt;  // unreadable: as good as none
  }
}

// The folders of the program, and of the library that this function is linked into.
std::vector<fs::path> application_folders() {
  std::vector<fs::path> folders;
  std::error_code error;
  if (const fs::path program = fs::read_symlink("/proc/self/exe", error); !error) {
    folders.push_back(program.parent_path());
  }
  Dl_info info = {};
  if (dladdr(reinterpret_cast<const void*>(&application_folders), &info) != 0) {
    const fs::path library = fs::absolute(info.dli_fname, error);
    if (!error && library.has_filename()) {
      folders.push_back(library.parent_path());
    }
  }
  return folders;
}

void append(std::vector<fs::path>& folders, std::vector<fs::path> more) {
  for (fs::path& folder : more) {
    if (std::ranges::find(folders, folder) == folders.end()) {
      folders.push_back(std::move(folder));
    }
  }
}

}  // namespace

std::optional<fs::path> find_in_loader_cache(std::string_view cache, std::string_view soname) {
  const auto header = read_at<CacheHeader>(cache, 0);
  if (!header || std::string_view(header->magic, sizeof header->magic) != kCacheMagic) {
    return std::nullopt;
  }
  for (std::size_t i = 0; i < header->entry_count; ++i) {
    const auto entry = read_at<CacheEntry>(cache, sizeof(CacheHeader) + i * sizeof(CacheEntry));
    if (!entry) {
      return std::nullopt;
    }
    if (entry->flags == kCacheFlags && string_at(cache, entry->name) == soname) {
      return string_at(cache, entry->file);
    }
  }
  return std::nullopt;
}

std::vector<fs::path> library_folders(const std::string& soname) {
  std::vector<fs::path> folders;
  // Two copies of a library in one process would share some of what they open by bare name.
  if (const auto loaded = loaded_library(soname)) {
    folders.push_back(loaded->parent_path());
  }
  LoaderFolders loader = loader_folders();
  append(folders, std::move(loader.asked_for));
  if (const auto folder = loader_cache_folder(soname)) {
    append(folders, {*folder});
  }
  append(folders, std::move(loader.standard));
  if (const auto home = base::read_environment().cuda_home) {
    append(folders, {*home / "lib64", *home / "lib"});
  }
  append(folders, {"/usr/local/cuda/lib64"});
  append(folders, application_folders());
  return folders;
}

fs::path find_library(const std::string& soname, std::span<const fs::path> folders) {
  std::string list;
  for (const fs::path& folder : folders) {
    std::error_code error;
    const fs::path file = folder / soname;
    if (fs::is_regular_file(file, error)) {
      return fs::absolute(file);
    }
    list += (list.empty() ? "" : ", ") + folder.string();
  }
  throw CudaError(cudaErrorSharedObjectInitFailed,
                  fmt::format("cuda: {} is in none of: {}", soname, list));
}

}  // namespace stof::cuda
