#include "execute/arena.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>

#include "base/check.hpp"
#include "execute/bound_layout.hpp"

namespace stof::execute {

using kernel::ArenaBuffer;

namespace {

struct Block {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

std::int64_t align(std::int64_t size_bytes) {
  return (size_bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
}

bool live_together(const ArenaBuffer& a, const ArenaBuffer& b) {
  return a.must_be_zero || b.must_be_zero ||
         (a.first_launch <= b.last_launch && b.first_launch <= a.last_launch);
}

// The start of the smallest gap between taken blocks, in order of their starts, else their end.
std::int64_t find_gap(std::span<const Block> taken, std::int64_t size_bytes) {
  std::int64_t best = -1;
  std::int64_t best_bytes = std::numeric_limits<std::int64_t>::max();
  std::int64_t end = 0;  // of all blocks so far
  for (const Block& block : taken) {
    const std::int64_t gap_bytes = block.begin - end;
    if (gap_bytes >= size_bytes && gap_bytes < best_bytes) {
      best = end;
      best_bytes = gap_bytes;
    }
    end = std::max(end, block.end);
  }
  return best >= 0 ? best : end;
}

// Those that must be zero first, so that they lie side by side; then the largest.
std::vector<std::size_t> placing_order(std::span<const ArenaBuffer> buffers) {
  std::vector<std::size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    return buffers[a].must_be_zero != buffers[b].must_be_zero
               ? buffers[a].must_be_zero
               : buffers[a].size_bytes > buffers[b].size_bytes;
  });
  return order;
}

}  // namespace

ArenaLayout lay_out_arena(std::span<const ArenaBuffer> buffers) {
  ArenaLayout layout;
  layout.offsets.resize(buffers.size());
  std::vector<std::size_t> placed;
  for (const std::size_t index : placing_order(buffers)) {
    const ArenaBuffer& buffer = buffers[index];
    STOF_CHECK(buffer.size_bytes >= 0 && buffer.first_launch <= buffer.last_launch)
        << "arena: buffer " << index << " has " << buffer.size_bytes
        << " bytes and lives from launch " << buffer.first_launch << " to " << buffer.last_launch;
    const std::int64_t size_bytes = align(buffer.size_bytes);
    std::vector<Block> taken;
    for (const std::size_t other : placed) {
      if (live_together(buffer, buffers[other])) {
        taken.push_back({.begin = layout.offsets[other],
                         .end = layout.offsets[other] + align(buffers[other].size_bytes)});
      }
    }
    std::ranges::sort(taken, {}, &Block::begin);
    layout.offsets[index] = find_gap(taken, size_bytes);
    layout.size_bytes = std::max(layout.size_bytes, layout.offsets[index] + size_bytes);
    if (buffer.must_be_zero) {
      layout.zero_bytes = layout.size_bytes;
    }
    placed.push_back(index);
  }
  return layout;
}

ArenaLayout lay_out_arena(const kernel::Program& program) {
  std::vector<ArenaBuffer> buffers = program.arena;
  for (const kernel::LayoutBuild& build : program.layouts) {
    buffers.push_back(
        {.size_bytes = static_cast<std::int64_t>(run_time_layout(build).workspace_bytes()),
         .first_launch = build.first_launch,
         .last_launch = build.last_launch});
  }
  return lay_out_arena(buffers);
}

}  // namespace stof::execute
