#include "base/parallel.hpp"

#include <atomic>
#include <cstdint>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

using stof::base::parallel_for;

TEST_CASE("every index is visited once, by any number of threads") {
  for (const int thread_count : {0, 1, 2, 3, 16, 1000}) {
    for (const std::int64_t count : {0, 1, 2, 5, 1000}) {
      std::vector<int> visits(static_cast<std::size_t>(count));
      parallel_for(
          count, [&](std::int64_t index) { ++visits[static_cast<std::size_t>(index)]; },
          thread_count);
      CHECK(visits == std::vector<int>(static_cast<std::size_t>(count), 1));
    }
  }
}

TEST_CASE("a negative count is no call") {
  parallel_for(-5, [](std::int64_t) { FAIL("called"); });
}

TEST_CASE("no more threads than asked, the caller among them") {
  std::mutex mutex;
  std::set<std::thread::id> threads;
  const auto note = [&](std::int64_t) {
    const std::scoped_lock lock(mutex);
    threads.insert(std::this_thread::get_id());
  };
  parallel_for(1000, note, 1);
  CHECK(threads == std::set{std::this_thread::get_id()});
  threads.clear();
  parallel_for(100000, note, 3);
  CHECK(threads.size() <= 3);
}

TEST_CASE("the failure of lowest index is thrown, whatever the number of threads") {
  for (const int thread_count : {1, 2, 8}) {
    for (int repetition = 0; repetition < 50; ++repetition) {
      std::atomic<int> calls_below = 0;
      const auto body = [&](std::int64_t index) {
        calls_below += index < 300 ? 1 : 0;
        if (index >= 300 && index % 7 == 0) {
          throw std::runtime_error(std::to_string(index));
        }
      };
      CHECK_THROWS_WITH_AS(parallel_for(1000, body, thread_count), "301", std::runtime_error);
      CHECK(calls_below == 300);
    }
  }
}

TEST_CASE("a loop inside a loop works") {
  std::atomic<int> calls = 0;
  parallel_for(
      10,
      [&](std::int64_t) {
        parallel_for(
            10, [&](std::int64_t) { ++calls; }, 2);
      },
      4);
  CHECK(calls == 100);
}
