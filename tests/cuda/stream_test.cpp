#include "cuda/stream.hpp"

#include <span>
#include <vector>

#include <doctest/doctest.h>

#include "cuda/device_array.hpp"

using namespace stof::cuda;  // NOLINT(google-build-using-namespace)

TEST_CASE("events time what a stream does between them") {
  const std::vector<int> host(1 << 20, 7);
  const DeviceArray<int> from{std::span(host)};
  const DeviceArray<int> to(host.size());
  const Stream stream;
  const Event start;
  const Event stop;
  start.record(stream.get());
  STOF_CUDA(cudaMemcpyAsync(to.data(), from.data(), host.size() * sizeof(int),
                            cudaMemcpyDeviceToDevice, stream.get()));
  stop.record(stream.get());
  stop.synchronize();
  CHECK(stop.microseconds_since(start) > 0);
  stream.synchronize();
  CHECK(to.to_host() == host);
}
