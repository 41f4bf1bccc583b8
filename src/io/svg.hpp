#pragma once

#include <string>
#include <string_view>

#include "base/image.hpp"

namespace stof::io {

// Text as SVG takes it between tags.
std::string svg_escaped(std::string_view text);

// A picture as an SVG document in which pixels are squares of `scale`, those of one colour beside
// each other one rectangle. The title is what programs show where the pointer rests.
std::string svg_text(const base::Image& image, int scale, std::string_view title);

}  // namespace stof::io
