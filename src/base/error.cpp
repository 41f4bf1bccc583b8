#include "stof/error.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace stof {

std::string TemplateError::text(const std::string& file, int line, int column,
                                const std::string& message, const std::string& source_line) {
  std::string text = fmt::format("{}:{}:{}: {}", file, line, column, message);
  if (!source_line.empty()) {
    // Tabs stay tabs below the line, so that the caret stands under its column in any editor.
    std::string indent(source_line, 0,
                       std::min<std::size_t>(std::max(column - 1, 0), source_line.size()));
    std::replace_if(
        indent.begin(), indent.end(), [](char c) { return c != '\t'; }, ' ');
    text += fmt::format("\n  {}\n  {}^", source_line, indent);
  }
  return text;
}

}  // namespace stof
