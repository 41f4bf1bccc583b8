#pragma once

#include "base/device_profile.hpp"

namespace stof::cuda {

// The profile of a GPU that this process may use. Sizes, clocks and the peak of its memory come
// from the driver, rates from the shipped profile of the same or the nearest GPU. Throws CudaError,
// or GraphError for one that is too old.
base::DeviceProfile read_device_profile(int device);

}  // namespace stof::cuda
