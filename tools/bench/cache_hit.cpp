// Times a hit on the disk: one cold look of a new Cache at one checked entry, again and again.
// Usage: bench.cache_hit FOLDER [PAYLOAD_BYTES [SOURCE_BYTES]]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "cache/cache.hpp"

namespace {

namespace cache = stof::cache;
using stof::kernel::Key;
using Clock = std::chrono::steady_clock;

std::string noise(std::size_t size) {
  std::mt19937 random(1);
  std::string text(size, '\0');
  std::ranges::generate(text, [&] { return static_cast<char>(random()); });
  return text;
}

double quantile_of(const std::vector<double>& sorted, double quantile) {
  return sorted[static_cast<std::size_t>(quantile * static_cast<double>(sorted.size() - 1))];
}

int run(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: {} FOLDER [PAYLOAD_BYTES [SOURCE_BYTES]]\n", argv[0]);
    return 2;
  }
  const std::size_t payload_bytes = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 55000;
  const std::size_t source_bytes = argc > 3 ? std::strtoul(argv[3], nullptr, 10) : 0;
  const Key key(noise(source_bytes) + "key");
  const std::string payload = noise(payload_bytes);

  // Nothing stays in this memory, so every find() goes to the disk.
  cache::CacheOptions options;
  options.directory = argv[1];
  options.max_memory_bytes = 0;
  cache::Cache cache(std::move(options));
  cache.add({cache::EntryKind::Kernel, key, {.payload = payload}});

  std::vector<double> times_us;
  for (int i = 0; i < 20000; ++i) {
    const auto start = Clock::now();
    const auto hit = cache.find(cache::EntryKind::Kernel, key);
    const auto end = Clock::now();
    if (!hit || hit->layer != "disk" || hit->entry->payload() != payload) {
      fmt::print(stderr, "no hit on the disk\n");
      return 1;
    }
    times_us.push_back(std::chrono::duration<double, std::micro>(end - start).count());
  }
  std::ranges::sort(times_us);
  fmt::print("entry {} bytes (source {}): p50 {:.1f} us, p95 {:.1f} us\n", payload_bytes,
             source_bytes, quantile_of(times_us, 0.5), quantile_of(times_us, 0.95));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
