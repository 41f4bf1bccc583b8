#pragma once

#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/gpu_backend.hpp"
#include "fusion/deferred_norms.hpp"
#include "stof/engine.hpp"

namespace stof::engine {

// Weights on a GPU that are made of others, once for all plans that want them. Safe to use from
// several threads.
class FoldedWeights {
 public:
  // Makes those that are not there, of the weights by name. Says what is wrong with one that 16
  // bits do not hold. Throws CudaError.
  std::optional<std::string> add(const GpuBackend& gpu,
                                 const std::map<std::string, Buffer>& weights,
                                 const std::vector<fusion::FoldedProduct>& products);

  // The weight of a product that was added and its offset, where it has one.
  std::vector<void*> tensors(const fusion::FoldedProduct& product) const;

 private:
  using Made = std::pair<fusion::FoldedProduct, std::vector<Buffer>>;

  const Made* find(const fusion::FoldedProduct& product) const;

  mutable std::mutex mutex_;
  std::list<Made> made_;
};

}  // namespace stof::engine
