#include "render/source.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "render/text.hpp"

namespace stof::render {

Source::Source(std::string file, std::string_view text)
    : file_(std::move(file)), text_(normalize_newlines(text)), line_starts_{0} {
  if (text_.size() > kMaxSourceBytes) {
    throw TemplateError(file_, 1, 1,
                        fmt::format("{} bytes, more than {}", text_.size(), kMaxSourceBytes));
  }
  for (std::size_t i = text_.find('\n'); i != std::string::npos; i = text_.find('\n', i + 1)) {
    line_starts_.push_back(i + 1);
  }
  if (!is_utf8(text_)) {
    throw TemplateError(file_, 1, 1, "the file is not UTF-8");
  }
}

int Source::line(std::size_t offset) const {
  return static_cast<int>(std::ranges::upper_bound(line_starts_, offset) - line_starts_.begin());
}

TemplateError Source::error(std::size_t offset, const std::string& message) const {
  const int number = line(offset);
  const std::size_t start = line_starts_[static_cast<std::size_t>(number - 1)];
  const std::size_t end = std::min(text_.find('\n', start), text_.size());
  return {file_, number, static_cast<int>(offset - start) + 1, message,
          text_.substr(start, end - start)};
}

}  // namespace stof::render
