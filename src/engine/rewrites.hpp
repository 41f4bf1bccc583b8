#pragma once

#include <optional>
#include <set>
#include <string>

#include "base/device_profile.hpp"
#include "base/hash.hpp"
#include "cache/cache.hpp"
#include "fusion/scheme.hpp"
#include "graph/ir.hpp"
#include "kernel/key.hpp"
#include "stof/options.hpp"

namespace stof::engine {

// What the model chose for a static graph, so that another build need not search for it again.
struct Rewrites {
  std::set<std::string> joined;          // fusion::JoinedProducts::kinds
  std::set<std::string> deferred;        // fusion::DeferredNorms::kinds
  std::set<std::string> rotated;         // fusion::RotatedProducts::kinds
  std::optional<fusion::Scheme> scheme;  // of the graph that these make

  friend bool operator==(const Rewrites&, const Rewrites&) = default;
};

// Of everything that the choice depends on. The profile is that of the GPU with its fitted rates.
kernel::Key rewrites_key(const graph::Ir& ir, const base::DeviceProfile& profile,
                         const base::Digest& templates, NormDeferral deferral);

// As a plan in the cache (cache/README.md). Nothing where it has none, or one that reads otherwise.
std::optional<Rewrites> find_rewrites(cache::Cache& cache, const kernel::Key& key);
void add_rewrites(cache::Cache& cache, const kernel::Key& key, const Rewrites& rewrites);

}  // namespace stof::engine
