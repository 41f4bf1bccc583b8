// Who waits for whom: threads for threads, and caches that share a disk for each other, as
// processes would.
#include <atomic>
#include <latch>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "fake_compiler.hpp"
#include "jit/jit.hpp"
#include "shared_cache.hpp"
#include "stof/error.hpp"
#include "temporary_folder.hpp"

using stof::CancelledError;
using stof::CompileError;
using stof::cache::Cache;
using stof::cache::CacheOptions;
using stof::cache::ProcessLock;
using stof::jit::Event;
using stof::jit::Jit;
using stof::jit::Kernel;
using stof::test::cubin_of;
using stof::test::FakeCompiler;
using stof::test::make_task;
using stof::test::shared_cache;
using stof::test::TemporaryFolder;
using stof::test::text_of;
using namespace std::chrono_literals;

namespace {

void nap(const std::string&, const std::stop_token&) {
  std::this_thread::sleep_for(100ms);
}

bool is_wait(const Event& event) {
  return std::holds_alternative<stof::jit::WaitEvent>(event.what);
}

}  // namespace

TEST_CASE("threads on one key compile it once") {
  const TemporaryFolder folder;
  const FakeCompiler compiler(nap);
  Cache cache(shared_cache(folder));
  Jit jit(cache, compiler);
  std::atomic<int> right = 0;
  std::latch start(8);
  {
    std::vector<std::jthread> threads;
    threads.reserve(8);
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&] {
        start.arrive_and_wait();
        right += text_of(jit.get_or_compile(make_task("a")).compiled) == cubin_of("a") ? 1 : 0;
      });
    }
  }
  CHECK(right == 8);
  CHECK(compiler.count() == 1);
}

TEST_CASE("engines that share a cache in memory compile a key once") {
  const FakeCompiler compiler(nap);
  Cache cache{CacheOptions()};
  Jit first(cache, compiler);
  Jit second(cache, compiler);
  {
    const std::jthread thread([&] { first.get_or_compile(make_task("a")); });
    second.get_or_compile(make_task("a"));
  }
  CHECK(compiler.count() == 1);
}

TEST_CASE("a failure reaches every thread that waits for it") {
  const FakeCompiler compiler([](const std::string& source, const std::stop_token&) {
    std::this_thread::sleep_for(100ms);
    throw CompileError("kernel for sm_90a", "log", source, {});
  });
  Cache cache{CacheOptions()};
  Jit jit(cache, compiler);
  std::atomic<int> failed = 0;
  {
    std::vector<std::jthread> threads;
    threads.reserve(4);
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        try {
          jit.get_or_compile(make_task("a"));
        } catch (const CompileError&) {
          ++failed;
        }
      });
    }
  }
  CHECK(failed == 4);
  CHECK(compiler.count() == 1);
}

TEST_CASE("where the thread that compiles is stopped, one that waits goes on") {
  std::stop_source stop;
  std::latch begun(1);
  std::atomic<int> round = 0;
  const FakeCompiler compiler([&](const std::string&, const std::stop_token& token) {
    if (round++ == 0) {
      begun.count_down();
      while (!token.stop_requested()) {
        std::this_thread::sleep_for(1ms);
      }
      throw CancelledError("cancelled");
    }
  });
  Cache cache{CacheOptions()};
  Jit jit(cache, compiler);
  std::jthread first([&] {
    CHECK_THROWS_AS(jit.get_or_compile(make_task("a"), stop.get_token()), CancelledError);
  });
  begun.wait();
  std::jthread second(
      [&] { CHECK(text_of(jit.get_or_compile(make_task("a")).compiled) == cubin_of("a")); });
  std::this_thread::sleep_for(50ms);  // the second waits by now, or compiles alone: right as well
  stop.request_stop();
  first.join();
  second.join();
  CHECK(compiler.count() == 2);
}

TEST_CASE("caches that share a disk compile a key once") {
  const TemporaryFolder folder;
  std::latch begun(1);
  const FakeCompiler compiler([&](const std::string& source, const std::stop_token& stop) {
    begun.count_down();
    nap(source, stop);
  });
  const std::jthread first([&] {
    Cache cache(shared_cache(folder));
    Jit(cache, compiler).get_or_compile(make_task("a"));
  });
  begun.wait();
  int waits = 0;
  Cache cache(shared_cache(folder));
  Jit jit(cache, compiler, {.on_event = [&](const Event& e) { waits += is_wait(e) ? 1 : 0; }});
  const Kernel kernel = jit.get_or_compile(make_task("a"));
  CHECK(kernel.layer == "disk");
  CHECK(text_of(kernel.compiled) == cubin_of("a"));
  CHECK(waits == 1);
  CHECK(compiler.count() == 1);
}

TEST_CASE("who holds a lock for too long is not waited for") {
  const TemporaryFolder folder;
  const FakeCompiler compiler;
  Cache cache(shared_cache(folder));
  Jit jit(cache, compiler, {.max_wait = 50ms, .on_event = {}});
  const auto digest = jit.get_or_compile(make_task("a")).digest;
  std::filesystem::remove_all(folder / "cache");

  Cache cold(shared_cache(folder));
  const ProcessLock held = cold.lock(digest);
  REQUIRE(held.state() == ProcessLock::State::Held);
  const auto start = std::chrono::steady_clock::now();
  CHECK(Jit(cold, compiler, {.max_wait = 50ms, .on_event = {}})
            .get_or_compile(make_task("a"))
            .layer == "compiler");
  const auto time = std::chrono::steady_clock::now() - start;
  CHECK(time >= 50ms);
  CHECK(time < 5s);
}

TEST_CASE("who waits for another process can be stopped") {
  const TemporaryFolder folder;
  const FakeCompiler compiler;
  Cache cache(shared_cache(folder));
  const auto digest = Jit(cache, compiler).get_or_compile(make_task("a")).digest;
  std::filesystem::remove_all(folder / "cache");
  Cache cold(shared_cache(folder));
  const ProcessLock held = cold.lock(digest);
  std::stop_source stop;
  stop.request_stop();
  CHECK_THROWS_WITH_AS(Jit(cold, compiler).get_or_compile(make_task("a"), stop.get_token()),
                       "jit: cancelled", CancelledError);
  CHECK(compiler.count() == 1);
}

TEST_CASE("a disk that takes nothing makes nobody wait twice") {
  const TemporaryFolder folder;
  const FakeCompiler compiler(nap);
  CacheOptions options = shared_cache(folder);
  const auto digest = [&] {
    Cache memory{CacheOptions()};
    return Jit(memory, compiler).get_or_compile(make_task("a")).digest;
  }();
  Cache cold(std::move(options));
  std::jthread owner;
  std::latch held(1);
  owner = std::jthread([&] {
    const ProcessLock lock = cold.lock(digest);
    held.count_down();
    std::this_thread::sleep_for(50ms);
  });
  held.wait();
  bool is_free_meanwhile = false;
  const FakeCompiler watching([&](const std::string&, const std::stop_token&) {
    is_free_meanwhile = cold.lock(digest).state() == ProcessLock::State::Held;
  });
  CHECK(Jit(cold, watching).get_or_compile(make_task("a")).layer == "compiler");
  CHECK(is_free_meanwhile);
}
