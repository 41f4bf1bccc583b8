#include "base/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <limits>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace stof::base {

namespace {

constexpr int kMaxThreads = 256;

// Chunks are handed out in order of index. So when a call fails, every call below it has been
// handed out and will be made, and the failure of lowest index is the same for any number of
// threads.
class Loop {
 public:
  Loop(std::int64_t count, std::int64_t chunk, const std::function<void(std::int64_t)>& body)
      : count_(count), chunk_(chunk), body_(body) {}

  void work() {
    while (!has_failed_) {
      const std::int64_t begin = next_.fetch_add(chunk_);
      if (begin >= count_) {
        return;
      }
      const std::int64_t end = begin + std::min(chunk_, count_ - begin);
      for (std::int64_t index = begin; index < end; ++index) {
        try {
          body_(index);
        } catch (...) {
          fail(index);
          return;
        }
      }
    }
  }

  void rethrow() const {
    if (failure_ != nullptr) {
      std::rethrow_exception(failure_);
    }
  }

 private:
  void fail(std::int64_t index) {
    const std::scoped_lock lock(mutex_);
    if (index < failed_index_) {
      failed_index_ = index;
      failure_ = std::current_exception();
    }
    has_failed_ = true;
  }

  const std::int64_t count_;
  const std::int64_t chunk_;
  const std::function<void(std::int64_t)>& body_;
  std::atomic<std::int64_t> next_ = 0;
  std::atomic<bool> has_failed_ = false;
  std::mutex mutex_;
  std::int64_t failed_index_ = std::numeric_limits<std::int64_t>::max();
  std::exception_ptr failure_;
};

}  // namespace

void parallel_for(std::int64_t count, const std::function<void(std::int64_t)>& body,
                  int thread_count) {
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  const std::int64_t wanted = std::clamp(thread_count > 0 ? thread_count : cores, 1, kMaxThreads);
  const std::int64_t threads = std::min(wanted, count);
  // Several chunks a thread even out calls that take unlike times.
  constexpr std::int64_t kChunksPerThread = 8;
  Loop loop(count, std::max<std::int64_t>(1, count / (wanted * kChunksPerThread)), body);
  {
    std::vector<std::jthread> helpers;
    try {
      for (std::int64_t i = 1; i < threads; ++i) {
        helpers.emplace_back([&loop] { loop.work(); });
      }
    } catch (const std::system_error&) {
      // The system gives no more threads: those that there are do the work.
    }
    loop.work();
  }
  loop.rethrow();
}

}  // namespace stof::base
