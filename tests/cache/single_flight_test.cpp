#include "cache/single_flight.hpp"

#include <atomic>
#include <latch>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

using stof::base::hash;
using stof::cache::SingleFlight;
using namespace std::chrono_literals;

namespace {

// Calls run() for one digest from many threads at once, and says how each ended.
template <typename Make>
std::vector<std::string> run_together(SingleFlight<std::string>& flights, int thread_count,
                                      const Make& make) {
  std::vector<std::string> ends(static_cast<std::size_t>(thread_count));
  std::latch start(thread_count);
  std::vector<std::jthread> threads;
  threads.reserve(ends.size());
  for (std::string& end : ends) {
    threads.emplace_back([&] {
      start.arrive_and_wait();
      try {
        end = flights.run(hash("a"), {}, make).value;
      } catch (const std::runtime_error& error) {
        end = error.what();
      }
    });
  }
  threads.clear();
  return ends;
}

}  // namespace

TEST_CASE("one thread makes what many want") {
  SingleFlight<std::string> flights;
  std::atomic<int> count = 0;
  const auto ends = run_together(flights, 8, [&] {
    std::this_thread::sleep_for(100ms);
    return "made " + std::to_string(++count);
  });
  CHECK(ends == std::vector<std::string>(8, "made 1"));
}

TEST_CASE("a failure reaches all who wait, and is not kept") {
  SingleFlight<std::string> flights;
  std::atomic<int> count = 0;
  const auto ends = run_together(flights, 8, [&]() -> std::string {
    std::this_thread::sleep_for(100ms);
    throw std::runtime_error("failed " + std::to_string(++count));
  });
  CHECK(ends == std::vector<std::string>(8, "failed 1"));
  CHECK(flights.run(hash("a"), {}, [] { return std::string("made"); }).value == "made");
}

TEST_CASE("flights of different digests do not wait for each other") {
  SingleFlight<std::string> flights;
  const auto inner = [] { return std::string("inner"); };
  const auto result = flights.run(
      hash("a"), {}, [&] { return "outer of " + flights.run(hash("b"), {}, inner).value; });
  CHECK(result.value == "outer of inner");
  CHECK(result.is_own);
}

TEST_CASE("who waits can be stopped, without harm to who makes") {
  SingleFlight<std::string> flights;
  std::latch begun(1);
  std::latch stopped(1);
  std::string value;
  const std::jthread maker([&] {
    value = flights
                .run(hash("a"), {},
                     [&] {
                       begun.count_down();
                       stopped.wait();
                       return std::string("made");
                     })
                .value;
  });
  begun.wait();
  std::stop_source stop;
  stop.request_stop();
  CHECK_THROWS_WITH_AS(flights.run(hash("a"), stop.get_token(), [] { return std::string("no"); }),
                       "cache: cancelled", stof::CancelledError);
  stopped.count_down();
}
