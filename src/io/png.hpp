#pragma once

#include <filesystem>

#include "base/image.hpp"

namespace stof::io {

// Writes a PNG file, atomically. Throws GraphError for a picture that PNG cannot hold and where the
// system refuses.
void write_png(const std::filesystem::path& path, const base::Image& image);

}  // namespace stof::io
