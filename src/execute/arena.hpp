#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernel/program.hpp"

namespace stof::execute {

// Where each buffer of an arena starts, from the start of one piece of memory.
struct ArenaLayout {
  std::vector<std::int64_t> offsets;  // of the buffers, multiples of kArenaAlignment
  std::int64_t zero_bytes = 0;        // [0, zero_bytes) holds those that must be zero, alone
  std::int64_t size_bytes = 0;        // of the whole piece
};

inline constexpr std::int64_t kArenaAlignment = 256;

// Buffers that never live together may share addresses. Places the largest first, each into the
// smallest gap that takes it among those that live when it does (Pisarchyk and Lee, "Efficient
// Memory Management for Deep Neural Net Inference", 2020). Equal input, equal layout.
ArenaLayout lay_out_arena(std::span<const kernel::ArenaBuffer> buffers);

// That of the buffers of a program, followed by a piece for each layout that it builds. Throws
// GraphError where 32 bits do not count the entries of one.
ArenaLayout lay_out_arena(const kernel::Program& program);

}  // namespace stof::execute
