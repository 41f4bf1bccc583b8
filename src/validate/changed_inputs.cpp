#include "validate/changed_inputs.hpp"

#include <cstddef>
#include <random>
#include <utility>
#include <vector>

namespace stof::validate {

namespace {

// Of each element, the number of those that move with it.
class Groups {
 public:
  Groups(const std::vector<std::int64_t>& shape, Together together) {
    const std::size_t along = together == Together::Rows ? 1 : 2;  // counted from the last axis
    if (together == Together::None || shape.size() < along) {
      return;
    }
    extent_ = shape[shape.size() - along];
    stride_ = along == 2 ? shape.back() : 1;
  }

  std::int64_t operator[](std::int64_t element) const {
    return element / (extent_ * stride_) * stride_ + element % stride_;
  }

 private:
  std::int64_t extent_ = 1;
  std::int64_t stride_ = 1;
};

}  // namespace

HostTensors changed(const HostTensors& tensors, double change, Together together,
                    std::uint64_t seed) {
  HostTensors result;
  std::mt19937_64 random(seed);
  for (const auto& [name, tensor] : tensors) {
    HostTensor wide = is_floating(tensor.dtype()) ? tensor.cast(DType::Float32) : tensor;
    if (is_floating(tensor.dtype()) && change > 0 && wide.element_count() > 0) {
      const Groups groups(wide.shape(), together);
      std::vector<double> factors;
      for (std::int64_t i = 0; i < wide.element_count(); ++i) {
        const auto group = static_cast<std::size_t>(groups[i]);
        while (factors.size() <= group) {
          factors.push_back(random() % 2 == 0 ? 1 + change : 1 - change);
        }
        wide.set(i, wide.at(i) * factors[group]);
      }
    }
    result.emplace(name, std::move(wide));
  }
  return result;
}

}  // namespace stof::validate
