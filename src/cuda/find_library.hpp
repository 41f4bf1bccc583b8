#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stof::cuda {

// Finding a library without opening it, so that a process that needs no compiler maps none.

// Where a library may lie, in order of preference: the loader's own folders (LD_LIBRARY_PATH, the
// RUNPATH of the program, the folder that /etc/ld.so.cache has for it, the system's), CUDA_HOME,
// /usr/local/cuda, beside the program and beside the library that holds stof.
std::vector<std::filesystem::path> library_folders(const std::string& soname);

// The first of the folders that holds it. Throws CudaError that lists where it was looked for.
std::filesystem::path find_library(const std::string& soname,
                                   std::span<const std::filesystem::path> folders);

// The file that the bytes of an ld.so.cache (glibc's format 1.1) have for a library of 64 bits.
std::optional<std::filesystem::path> find_in_loader_cache(std::string_view cache,
                                                          std::string_view soname);

}  // namespace stof::cuda
