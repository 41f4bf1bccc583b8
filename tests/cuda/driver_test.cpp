#include "cuda/driver.hpp"

#include <string>

#include <doctest/doctest.h>

#include "cuda/check.hpp"
#include "cuda/device.hpp"
#include "cuda/library.hpp"
#include "stof/error.hpp"

using namespace stof::cuda;  // NOLINT(google-build-using-namespace)

namespace {

template <typename Call>
std::string error_of(Call call) {
  try {
    call();
  } catch (const stof::CudaError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a machine without a driver is told what was looked for") {
  if (driver_version() == 0) {
    constexpr auto* kReason =
        "cuda: no NVIDIA driver is installed: the loader finds no libcuda.so.1";
    CHECK(error_of([] { driver(); }).starts_with(kReason));
    CHECK(error_of([] { Library({}); }).starts_with(kReason));
  }
}

TEST_CASE("a driver's failure reads as the runtime's") {
  CHECK_NOTHROW(check(CUDA_SUCCESS, "cuFuncLoad"));
  CHECK(error_of([] { check(CUDA_ERROR_INVALID_VALUE, "cuFuncLoad"); }) ==
        "cuda: invalid argument (cudaErrorInvalidValue = 1) in cuFuncLoad");
}
