#include "io/png.hpp"

#include <string>

#include <fmt/format.h>
#include <png.h>

#include "base/files.hpp"
#include "stof/error.hpp"

namespace stof::io {

void write_png(const std::filesystem::path& path, const base::Image& image) {
  static_assert(sizeof(base::Rgb) == 3);
  png_image png = {};
  png.version = PNG_IMAGE_VERSION;
  png.width = static_cast<png_uint_32>(image.width);
  png.height = static_cast<png_uint_32>(image.height);
  png.format = PNG_FORMAT_RGB;
  const auto write = [&](char* bytes, png_alloc_size_t& size) {
    if (png_image_write_to_memory(&png, bytes, &size, 0, image.pixels.data(), 0, nullptr) == 0) {
      throw GraphError(fmt::format("png: a picture of {} x {} pixels: {}", image.width,
                                   image.height, static_cast<const char*>(png.message)));
    }
  };
  png_alloc_size_t size = 0;
  write(nullptr, size);  // asks for the size alone
  std::string bytes(size, '\0');
  write(bytes.data(), size);
  bytes.resize(size);
  base::write_file_atomically(path, bytes);
}

}  // namespace stof::io
