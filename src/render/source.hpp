#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "stof/error.hpp"

namespace stof::render {

// The text of one template file, with positions as byte offsets. Newlines are '\n'.
class Source {
 public:
  // Throws TemplateError for text that is not UTF-8 or longer than kMaxSourceBytes.
  Source(std::string file, std::string_view text);

  const std::string& file() const { return file_; }
  std::string_view text() const { return text_; }
  int line(std::size_t offset) const;  // from 1

  // An error at an offset, with the line it lies on.
  TemplateError error(std::size_t offset, const std::string& message) const;

 private:
  std::string file_;
  std::string text_;
  std::vector<std::size_t> line_starts_;
};

inline constexpr std::size_t kMaxSourceBytes = std::size_t{1} << 20U;

}  // namespace stof::render
