#pragma once

#include <filesystem>
#include <string>

namespace stof::cuda {

// The compiler on disk. Finding it and naming its build open nothing.
struct NvrtcFiles {
  std::filesystem::path library;   // libnvrtc.so.13
  std::filesystem::path builtins;  // libnvrtc-builtins.so.13.0
};

// Where library_folders() has it. Throws CudaError that says what was looked for and where.
NvrtcFiles find_nvrtc();

// The builtins that go with a libnvrtc. Throws CudaError where they are not beside it.
NvrtcFiles nvrtc_files_beside(const std::filesystem::path& library);

// Which build of a library a file is: its GNU build-id, else a hash of its bytes. Remembered for
// this path as long as inode, size and times of the file stay. Throws CudaError where it cannot be
// read.
std::string library_build(const std::filesystem::path& file);

// "nvrtc 65be… 08d1…": equal where the compiler turns equal sources into equal cubins.
std::string compiler_identity(const NvrtcFiles& files);

}  // namespace stof::cuda
