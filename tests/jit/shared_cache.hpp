#pragma once

#include "cache/cache.hpp"
#include "temporary_folder.hpp"

namespace stof::test {

// A cache in the folder that processes share.
inline cache::CacheOptions shared_cache(const TemporaryFolder& folder) {
  cache::CacheOptions options;
  options.directory = folder / "cache";
  options.lock_folder = folder.path();
  return options;
}

}  // namespace stof::test
