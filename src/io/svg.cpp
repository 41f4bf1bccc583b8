#include "io/svg.hpp"

#include <map>

#include <fmt/format.h>

namespace stof::io {

namespace {

std::string colour(const base::Rgb& rgb) {
  return fmt::format("#{:02x}{:02x}{:02x}", rgb.red, rgb.green, rgb.blue);
}

// Of a row of pixels, the runs of one colour, by colour.
void add_runs(const base::Image& image, int y, std::map<std::string, std::string>& paths) {
  const base::Rgb* row = image.row(y);
  for (int x = 0; x < image.width;) {
    int end = x + 1;
    while (end < image.width && row[end] == row[x]) {
      ++end;
    }
    paths[colour(row[x])] += fmt::format("M{} {}h{}v1h-{}z", x, y, end - x, end - x);
    x = end;
  }
}

}  // namespace

std::string svg_escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

std::string svg_text(const base::Image& image, int scale, std::string_view title) {
  std::map<std::string, std::string> paths;
  for (int y = 0; y < image.height; ++y) {
    add_runs(image, y, paths);
  }
  std::string text = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" viewBox=\"0 0 {} {}\" "
      "shape-rendering=\"crispEdges\">\n<title>{}</title>\n",
      image.width * scale, image.height * scale, image.width, image.height, svg_escaped(title));
  for (const auto& [fill, path] : paths) {
    text += fmt::format("<path fill=\"{}\" d=\"{}\"/>\n", fill, path);
  }
  return text + "</svg>\n";
}

}  // namespace stof::io
