#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <exception>
#include <future>
#include <map>
#include <mutex>
#include <stop_token>

#include "base/hash.hpp"
#include "stof/error.hpp"

namespace stof::cache {

// Has one thread make what several want at the same time. It remembers nothing: what was made is
// for a cache to keep, and whoever comes after a failure tries again.
template <typename Value>
class SingleFlight {
 public:
  struct Result {
    Value value;
    bool is_own = false;  // made by this call
  };

  // The value that make() returns, called by the first of all threads that ask for this digest. The
  // others wait for it, and throw what it throws; CancelledError where they are stopped meanwhile.
  template <typename Make>
  Result run(const base::Digest& digest, const std::stop_token& stop, const Make& make) {
    Shard& shard = shards_[digest.low % shards_.size()];
    std::promise<Value> promise;
    {
      std::unique_lock lock(shard.mutex);
      const auto [place, is_first] = shard.flights.try_emplace(digest);
      if (!is_first) {
        const std::shared_future<Value> flight = place->second;
        lock.unlock();
        return {.value = wait(flight, stop), .is_own = false};
      }
      place->second = promise.get_future().share();
    }
    try {
      Value value = make();
      end(shard, digest);
      promise.set_value(value);
      return {.value = std::move(value), .is_own = true};
    } catch (...) {
      end(shard, digest);
      promise.set_exception(std::current_exception());
      throw;
    }
  }

 private:
  struct Shard {
    std::mutex mutex;
    std::map<base::Digest, std::shared_future<Value>> flights;
  };

  static Value wait(const std::shared_future<Value>& flight, const std::stop_token& stop) {
    constexpr std::chrono::milliseconds kLookAtStop(10);
    while (flight.wait_for(kLookAtStop) != std::future_status::ready) {
      if (stop.stop_requested()) {
        throw CancelledError("cache: cancelled");
      }
    }
    return flight.get();
  }

  // Before the promise is kept: who comes later finds the value in the cache, and no broken flight.
  static void end(Shard& shard, const base::Digest& digest) {
    const std::lock_guard lock(shard.mutex);
    shard.flights.erase(digest);
  }

  std::array<Shard, 16> shards_;
};

}  // namespace stof::cache
