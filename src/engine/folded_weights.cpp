#include "engine/folded_weights.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "engine/memory.hpp"
#include "fusion/fold_product.hpp"

namespace stof::engine {

std::optional<std::string> FoldedWeights::add(const GpuBackend& gpu,
                                              const std::map<std::string, Buffer>& weights,
                                              const std::vector<fusion::FoldedProduct>& products) {
  const std::lock_guard lock(mutex_);
  for (const fusion::FoldedProduct& product : products) {
    if (find(product) != nullptr) {
      continue;
    }
    fusion::FoldedTensors tensors = fusion::fold_product(
        product, [&](const std::string& name) { return weights.at(name).download(); });
    if (!tensors.fault.empty()) {
      return std::move(tensors.fault);
    }
    std::vector<Buffer> buffers;
    buffers.push_back(make_buffer("bind", &gpu, std::move(tensors.weight)));
    if (tensors.offset) {
      buffers.push_back(make_buffer("bind", &gpu, *std::move(tensors.offset)));
    }
    made_.emplace_back(product, std::move(buffers));
  }
  return std::nullopt;
}

std::vector<void*> FoldedWeights::tensors(const fusion::FoldedProduct& product) const {
  const std::lock_guard lock(mutex_);
  const Made* made = find(product);
  STOF_CHECK(made != nullptr) << product.weight;
  std::vector<void*> pointers;
  for (const Buffer& buffer : made->second) {
    pointers.push_back(buffer.view().data);
  }
  return pointers;
}

const FoldedWeights::Made* FoldedWeights::find(const fusion::FoldedProduct& product) const {
  const auto found = std::find_if(made_.begin(), made_.end(),
                                  [&](const Made& made) { return made.first == product; });
  return found == made_.end() ? nullptr : &*found;
}

}  // namespace stof::engine
