#include "io/svg.hpp"

#include <doctest/doctest.h>

namespace stof::io {
namespace {

TEST_CASE("svg: runs of a colour are one rectangle") {
  constexpr base::Rgb kRed = {255, 0, 0}, kBlue = {0, 0, 255};
  const base::Image image{
      .width = 3, .height = 2, .pixels = {kRed, kRed, kBlue, kBlue, kBlue, kBlue}};
  CHECK(svg_text(image, 4, "a < b && c") ==
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"12\" height=\"8\" viewBox=\"0 0 3 2\" "
        "shape-rendering=\"crispEdges\">\n"
        "<title>a &lt; b &amp;&amp; c</title>\n"
        "<path fill=\"#0000ff\" d=\"M2 0h1v1h-1zM0 1h3v1h-3z\"/>\n"
        "<path fill=\"#ff0000\" d=\"M0 0h2v1h-2z\"/>\n"
        "</svg>\n");
}

}  // namespace
}  // namespace stof::io
