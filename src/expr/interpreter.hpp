#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "expr/program.hpp"

namespace stof::expr {

// Reads one element of the program's capture of that number as a word (an integer, 0 or 1, or the
// bits of a double). The reader moves indices that are out of range to the nearest end.
using CaptureReader =
    std::function<std::int64_t(int capture, std::span<const std::int64_t> indices)>;

// Up to kLanes values of one slot, or one that all share.
struct Lanes {
  static constexpr int kLanes = 64;
  std::array<std::int64_t, kLanes> words;
  bool is_uniform = true;  // only words[0] holds
};

// A scalar that has a word of its own at each point.
struct ListedScalar {
  std::optional<int> scalar = {};
  std::span<const std::int64_t> words = {};  // at least as many as there are points
};

// Runs a program at many points. What does not depend on the varying scalar is computed once a run.
// run() is not for two threads at once; copies are independent.
class Interpreter {
 public:
  static constexpr int kLanes = Lanes::kLanes;

  // Throws InternalError where the program has captures and there is no reader.
  explicit Interpreter(Program program, CaptureReader read = {});

  const Program& program() const { return program_; }

  // The results at `count` points, at most kLanes; valid until the next run. `scalars` are words in
  // the order of program().scalars, and point i adds i to the integer scalar `varying`, if given.
  // What is `listed` takes its words from there.
  std::span<const std::int64_t> run(std::span<const std::int64_t> scalars,
                                    std::optional<int> varying, int count,
                                    const ListedScalar& listed = {});

  // The truth of the results, bit i for point i.
  std::uint64_t run_bits(std::span<const std::int64_t> scalars, std::optional<int> varying,
                         int count);

  // The result at one point; by as many threads at once as like.
  std::int64_t run_one(std::span<const std::int64_t> scalars) const;

 private:
  using Kernel = void (*)(Lanes& result, const Lanes& a, const Lanes& b, const Lanes& c, int count);

  void step(std::span<Lanes> slots, std::size_t at, std::span<const std::int64_t> scalars,
            std::optional<int> varying, int count, const ListedScalar& listed) const;
  void read_table(std::span<Lanes> slots, const Instruction& instruction, int count) const;
  void read_capture(std::span<Lanes> slots, const Instruction& instruction, int count) const;

  Program program_;
  CaptureReader read_;
  std::vector<Kernel> kernels_;  // one an instruction; null for those that read something
  std::vector<Lanes> slots_;
};

}  // namespace stof::expr
