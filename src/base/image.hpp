#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace stof::base {

struct Rgb {
  std::uint8_t red = 0;
  std::uint8_t green = 0;
  std::uint8_t blue = 0;

  friend bool operator==(const Rgb&, const Rgb&) = default;
};

// A picture: rows of pixels from the top, each from the left.
struct Image {
  int width = 0;
  int height = 0;
  std::vector<Rgb> pixels = {};  // width * height

  const Rgb* row(int y) const { return pixels.data() + std::ptrdiff_t{y} * width; }
};

}  // namespace stof::base
