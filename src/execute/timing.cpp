#include "execute/timing.hpp"

#include <algorithm>
#include <vector>

#include "base/check.hpp"
#include "cuda/device_scope.hpp"
#include "cuda/stream.hpp"

namespace stof::execute {

double median_launch_us(const BoundProgram& program, const TimingOptions& options) {
  STOF_CHECK(options.samples > 0 && options.launches_per_sample > 0)
      << "timing: " << options.samples << " samples of " << options.launches_per_sample
      << " launches";
  const cuda::DeviceScope scope(program.program().device());
  const cuda::Stream stream;
  const cuda::Event start;
  const cuda::Event stop;
  for (int i = 0; i < options.warm_up_launches; ++i) {
    program.launch(stream.get());
  }
  std::vector<double> times_us;
  for (int sample = 0; sample < options.samples; ++sample) {
    start.record(stream.get());
    for (int i = 0; i < options.launches_per_sample; ++i) {
      program.launch(stream.get());
    }
    stop.record(stream.get());
    stop.synchronize();
    times_us.push_back(stop.microseconds_since(start) / options.launches_per_sample);
  }
  const auto middle = times_us.begin() + std::ssize(times_us) / 2;
  std::ranges::nth_element(times_us, middle);
  return *middle;
}

}  // namespace stof::execute
