#pragma once

#include <cstdint>

#include "stof/stof.hpp"

namespace stof::test {

// A window, and as many global tokens in front and from another one on.
inline Mask global_tokens_in_two_places(std::int64_t width, std::int64_t middle) {
  const Expr q = query_position();
  const Expr k = key_position();
  return sliding_window(width, width) || Mask(q < width || (q >= middle && q < middle + width) ||
                                              k < width || (k >= middle && k < middle + width));
}

}  // namespace stof::test
