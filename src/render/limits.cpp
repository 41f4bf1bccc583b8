#include "render/limits.hpp"

#include <fmt/format.h>

namespace stof::render {

void Budget::step(std::uint64_t count) {
  if (count > steps_left_) {
    throw Failure(fmt::format("the template takes more than {} steps", limits_.steps));
  }
  steps_left_ -= count;
}

void Budget::allocate(std::size_t bytes) {
  if (bytes > bytes_left_) {
    throw Failure(
        fmt::format("the template makes more than {} bytes of values", limits_.working_bytes));
  }
  bytes_left_ -= bytes;
}

void Budget::check_text(std::size_t bytes) const {
  if (bytes > limits_.output_bytes) {
    throw Failure(fmt::format("a text of more than {} bytes", limits_.output_bytes));
  }
}

}  // namespace stof::render
