// One process of the tests in processes_test.cpp: gets one kernel and tells how, in a line
// "<layer> <mapped|unmapped> <digest of the cubin>", where the second word is about libnvrtc.
// Usage: jit.process CACHE_FOLDER LOCK_FOLDER nvrtc
//        jit.process CACHE_FOLDER LOCK_FOLDER fake COUNT_FILE COMPILE_MS
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include <fcntl.h>
#include <unistd.h>

#include "compile/nvrtc_compiler.hpp"
#include "fake_compiler.hpp"
#include "jit/jit.hpp"

namespace {

using stof::test::FakeCompiler;

// A compiler that takes its time, and adds a byte to a file as it begins.
std::unique_ptr<stof::compile::Compiler> make_fake(const std::string& count_file, int compile_ms) {
  return std::make_unique<FakeCompiler>([=](const std::string&, const std::stop_token&) {
    const int file = open(count_file.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (file < 0 || write(file, "c", 1) != 1) {
      std::abort();
    }
    close(file);
    std::this_thread::sleep_for(std::chrono::milliseconds(compile_ms));
  });
}

bool is_nvrtc_mapped() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("libnvrtc") != std::string::npos) {
      return true;
    }
  }
  return false;
}

int run(char** argv) {
  stof::cache::CacheOptions options;
  options.directory = argv[1];
  options.lock_folder = argv[2];
  stof::cache::Cache cache(std::move(options));
  const bool is_fake = std::string(argv[3]) == "fake";
  const std::unique_ptr<stof::compile::Compiler> compiler =
      is_fake ? make_fake(argv[4], std::atoi(argv[5]))
              : std::make_unique<stof::compile::NvrtcCompiler>();
  stof::jit::Jit jit(cache, *compiler);
  const stof::jit::Kernel kernel = jit.get_or_compile(stof::test::make_task(
      "extern \"C\" __global__ void twice(float* x) { x[threadIdx.x] *= 2; }\n"));
  std::printf("%s %s %s\n", kernel.layer.c_str(), is_nvrtc_mapped() ? "mapped" : "unmapped",
              stof::base::hash(kernel.compiled.cubin).hex().c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4 && argc != 6) {
    return 2;
  }
  try {
    return run(argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
