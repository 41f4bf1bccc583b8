#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>

namespace stof::render {

// What one rendering may use. A template that asks for more fails with an error that names the
// limit.
struct RenderLimits {
  std::size_t output_bytes = std::size_t{16} << 20U;  // of the rendered text, and of any one string
  std::size_t working_bytes = std::size_t{1} << 28U;  // of all values made on the way
  std::uint64_t steps = 20'000'000;                   // nodes evaluated, items visited
  int depth = 1200;                                   // nodes evaluated within each other
};

inline constexpr std::int64_t kMaxRangeLength = 1'000'000;
inline constexpr int kMaxValueDepth = 100;  // lists within lists that are printed or compared
inline constexpr std::size_t kMaxWalk =
    1'000'000;  // values visited by one print, comparison or hash

// An operation on values failed. Whoever knows the position turns it into a TemplateError.
class Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Counts what a rendering uses and throws Failure past the limits.
class Budget {
 public:
  explicit Budget(const RenderLimits& limits)
      : limits_(limits), steps_left_(limits.steps), bytes_left_(limits.working_bytes) {}

  void step(std::uint64_t count = 1);
  void allocate(std::size_t bytes);          // of values: counted, never given back
  void check_text(std::size_t bytes) const;  // of one string
  const RenderLimits& limits() const { return limits_; }

 private:
  RenderLimits limits_;
  std::uint64_t steps_left_;
  std::size_t bytes_left_;
};

}  // namespace stof::render
