#include "cuda/toolkit_headers.hpp"

#include <filesystem>
#include <fstream>
#include <string>

#include <doctest/doctest.h>

#include "base/hash.hpp"
#include "cuda/nvrtc_files.hpp"
#include "stof/error.hpp"
#include "temporary_folder.hpp"

using namespace stof::cuda;  // NOLINT(google-build-using-namespace)
namespace fs = std::filesystem;

TEST_CASE("the headers of this machine's toolkit are read, with what they include") {
  ToolkitHeaders headers(find_nvrtc().library);
  const auto bf16 = headers.read({"cuda_bf16.h"});
  REQUIRE(bf16.size() == 2);
  CHECK(bf16[0]->name == "cuda_bf16.h");
  CHECK(bf16[1]->name == "cuda_fp16.h");
  CHECK(bf16[1]->text.find("__half") != std::string::npos);
  CHECK(bf16[1]->digest == stof::base::hash(bf16[1]->text));
  CHECK(headers.read({"cuda_fp16.h"}) == std::vector{bf16[1]});
  CHECK(headers.read({}).empty());
}

TEST_CASE("headers near the library come before others") {
  const stof::test::TemporaryFolder root;
  fs::create_directories(root.path() / "include");
  fs::create_directories(root.path() / "lib");
  std::ofstream(root.path() / "include/cuda_fp16.h") << "near";
  ToolkitHeaders headers(root.path() / "lib/libnvrtc.so.13");
  CHECK(headers.read({"cuda_fp16.h"})[0]->text == "near");
}

TEST_CASE("kernels may include the float types alone") {
  CHECK(ToolkitHeaders::is_known("cuda_fp16.h"));
  CHECK(ToolkitHeaders::is_known("cuda_bf16.h"));
  CHECK_FALSE(ToolkitHeaders::is_known("cub/cub.cuh"));
}

TEST_CASE("a header that is nowhere is an error that says where it was looked for") {
  ToolkitHeaders headers(std::vector<fs::path>{"/no/a", "/no/b", "/no/a"});
  CHECK_THROWS_WITH_AS(headers.read({"cuda_fp16.h"}),
                       "cuda: a kernel includes <cuda_fp16.h>, which is in none of: /no/a, /no/b",
                       stof::CudaError);
}
