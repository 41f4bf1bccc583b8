#pragma once

#include "execute/bound_program.hpp"

namespace stof::execute {

struct TimingOptions {
  int warm_up_launches = 20;
  int samples = 50;
  int launches_per_sample = 10;  // one after the other, so that the GPU does not wait for the host
};

// The median over samples of the time of one launch, in microseconds. Throws CudaError.
double median_launch_us(const BoundProgram& program, const TimingOptions& options = {});

}  // namespace stof::execute
