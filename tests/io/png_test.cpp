#include "io/png.hpp"

#include <cstddef>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <png.h>

#include "error_of.hpp"
#include "temporary_folder.hpp"

namespace stof::io {
namespace {

using base::Image;
using base::Rgb;

// As libpng reads it, which is not how it is written.
Image read_png(const std::string& path) {
  png_image png = {};
  png.version = PNG_IMAGE_VERSION;
  REQUIRE(png_image_begin_read_from_file(&png, path.c_str()) != 0);
  png.format = PNG_FORMAT_RGB;
  Image image{.width = static_cast<int>(png.width), .height = static_cast<int>(png.height)};
  image.pixels.resize(std::size_t{png.width} * png.height);
  REQUIRE(png_image_finish_read(&png, nullptr, image.pixels.data(), 0, nullptr) != 0);
  return image;
}

TEST_CASE("png: what is written can be read, row by row") {
  const test::TemporaryFolder folder;
  for (Image image : {Image{.width = 1, .height = 1}, Image{.width = 7, .height = 3},
                      Image{.width = 3, .height = 500}}) {
    for (int i = 0; i < image.width * image.height; ++i) {
      const auto level = static_cast<std::uint8_t>(i * 37);
      image.pixels.push_back({level, static_cast<std::uint8_t>(255 - level), 9});
    }
    write_png(folder / "a.png", image);
    const Image read = read_png(folder / "a.png");
    CHECK(read.width == image.width);
    CHECK(read.height == image.height);
    CHECK(read.pixels == image.pixels);
  }
}

TEST_CASE("png: a picture without pixels and a folder that is not there are errors") {
  const test::TemporaryFolder folder;
  CHECK(test::error_of([&] {
          write_png(folder / "a.png", {});
        }).starts_with("png: a picture of 0 x 0 pixels: "));
  const Image image{.width = 1, .height = 1, .pixels = {Rgb{}}};
  CHECK(test::error_of([&] { write_png(folder / "none/a.png", image); }).starts_with("file: "));
}

}  // namespace
}  // namespace stof::io
