#include "execute/arena.hpp"

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include "stof/error.hpp"

namespace {

using stof::execute::ArenaLayout;
using stof::execute::kArenaAlignment;
using stof::execute::lay_out_arena;
using stof::kernel::ArenaBuffer;

constexpr int kLaunches = 60;

// Values of a chain of launches: most are read by the next one or two, some much later.
std::vector<ArenaBuffer> random_buffers(std::uint64_t seed, bool with_zero) {
  std::mt19937_64 random(seed);
  const auto draw = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  std::vector<ArenaBuffer> buffers;
  for (int launch = 0; launch < kLaunches; ++launch) {
    for (int i = draw(0, 2); i > 0; --i) {
      const int life = draw(0, 9) == 0 ? draw(3, kLaunches) : draw(1, 2);
      buffers.push_back({.size_bytes = std::int64_t{draw(0, 40)} * draw(1, 5000),
                         .first_launch = launch,
                         .last_launch = std::min(launch + life, kLaunches - 1),
                         .must_be_zero = with_zero && draw(0, 7) == 0});
    }
  }
  return buffers;
}

std::int64_t aligned(std::int64_t bytes) {
  return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
}

// The most bytes that live at one time: no layout takes less.
std::int64_t peak_bytes(const std::vector<ArenaBuffer>& buffers) {
  std::int64_t peak = 0;
  for (int launch = 0; launch < kLaunches; ++launch) {
    std::int64_t live = 0;
    for (const ArenaBuffer& buffer : buffers) {
      const bool is_live = buffer.first_launch <= launch && launch <= buffer.last_launch;
      live += buffer.must_be_zero || is_live ? aligned(buffer.size_bytes) : 0;
    }
    peak = std::max(peak, live);
  }
  return peak;
}

}  // namespace

TEST_CASE("buffers never overlap in time and in address") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    const std::vector<ArenaBuffer> buffers = random_buffers(seed, true);
    const ArenaLayout layout = lay_out_arena(buffers);
    REQUIRE(layout.offsets.size() == buffers.size());
    for (std::size_t a = 0; a < buffers.size(); ++a) {
      CHECK(layout.offsets[a] % kArenaAlignment == 0);
      CHECK(layout.offsets[a] + buffers[a].size_bytes <= layout.size_bytes);
      for (std::size_t b = 0; b < a; ++b) {
        const bool apart_in_time = buffers[a].last_launch < buffers[b].first_launch ||
                                   buffers[b].last_launch < buffers[a].first_launch;
        const bool may_share =
            apart_in_time && !buffers[a].must_be_zero && !buffers[b].must_be_zero;
        const bool apart_in_memory =
            layout.offsets[a] + buffers[a].size_bytes <= layout.offsets[b] ||
            layout.offsets[b] + buffers[b].size_bytes <= layout.offsets[a];
        CHECK((may_share || apart_in_memory));
      }
    }
  }
}

TEST_CASE("the whole is close to what lives at the worst time") {
  double sum = 0;
  constexpr int kSeeds = 200;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    CAPTURE(seed);
    const std::vector<ArenaBuffer> buffers = random_buffers(seed, false);
    const double ratio = static_cast<double>(lay_out_arena(buffers).size_bytes) /
                         static_cast<double>(peak_bytes(buffers));
    CHECK(ratio >= 1.0);
    CHECK(ratio < 1.35);
    sum += ratio;
  }
  CHECK(sum / kSeeds < 1.05);
}

TEST_CASE("a chain of equal buffers takes two of them") {
  std::vector<ArenaBuffer> chain;
  for (int launch = 0; launch < 20; ++launch) {
    chain.push_back({.size_bytes = 1000, .first_launch = launch, .last_launch = launch + 1});
  }
  CHECK(lay_out_arena(chain).size_bytes == 2 * 1024);
}

TEST_CASE("those that must be zero lie in front, alone") {
  const std::vector<ArenaBuffer> buffers = {
      {.size_bytes = 5000, .first_launch = 0, .last_launch = 0},
      {.size_bytes = 4, .first_launch = 0, .last_launch = 0, .must_be_zero = true},
      {.size_bytes = 300, .first_launch = 5, .last_launch = 5, .must_be_zero = true},
      {.size_bytes = 5000, .first_launch = 1, .last_launch = 1}};
  const ArenaLayout layout = lay_out_arena(buffers);
  CHECK(layout.offsets == std::vector<std::int64_t>{768, 512, 0, 768});
  CHECK(layout.zero_bytes == 768);
  CHECK(layout.size_bytes == 768 + 5120);
}

TEST_CASE("no buffers, no bytes") {
  const ArenaLayout layout = lay_out_arena(std::span<const ArenaBuffer>());
  CHECK(layout.offsets.empty());
  CHECK(layout.size_bytes == 0);
  CHECK(layout.zero_bytes == 0);
}

TEST_CASE("equal buffers are laid out equally") {
  const std::vector<ArenaBuffer> buffers = random_buffers(7, true);
  CHECK(lay_out_arena(buffers).offsets == lay_out_arena(buffers).offsets);
}

TEST_CASE("a life that ends before it begins is a fault of whoever made it") {
  const std::vector<ArenaBuffer> buffers = {{.size_bytes = 4, .first_launch = 2, .last_launch = 1}};
  CHECK_THROWS_AS(lay_out_arena(buffers), stof::InternalError);
}
