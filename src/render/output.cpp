#include "render/output.hpp"

#include "render/limits.hpp"

namespace stof::render {

void OutputBuffer::append_source(std::string_view text, LineOrigin origin) {
  while (true) {
    const std::size_t end = text.find('\n');
    append_line(text.substr(0, end), origin);
    if (end == std::string_view::npos) {
      return;
    }
    end_line(origin);
    text.remove_prefix(end + 1);
    ++origin.line;
  }
}

void OutputBuffer::append_value(const Text& value, LineOrigin origin) {
  std::string_view text = value.bytes;
  for (int line = 1;; ++line) {
    const LineOrigin own = value.lines == nullptr ? LineOrigin{} : origin_of(*value.lines, line);
    const std::size_t end = text.find('\n');
    const LineOrigin best = own.file < 0 ? origin : own;
    append_line(text.substr(0, end), best);
    if (end == std::string_view::npos) {
      return;
    }
    end_line(best);
    text.remove_prefix(end + 1);
  }
}

void OutputBuffer::append_line(std::string_view line, LineOrigin origin) {
  if (line.empty()) {
    return;
  }
  budget_.check_text(text_.size() + line.size());
  budget_.allocate(line.size());
  text_ += line;
  const bool has_ink = line.find_first_not_of(" \t") != std::string_view::npos;
  if (line_origin_.file < 0 || (has_ink && !is_line_settled_)) {
    line_origin_ = origin;
  }
  is_line_settled_ = is_line_settled_ || has_ink;
}

void OutputBuffer::end_line(LineOrigin origin) {
  budget_.allocate(1);
  text_ += '\n';
  add_line(runs_, line_, line_origin_.file < 0 ? origin : line_origin_);
  ++line_;
  line_origin_ = {};
  is_line_settled_ = false;
}

Text OutputBuffer::take() {
  if (line_origin_.file >= 0) {
    add_line(runs_, line_, line_origin_);
  }
  return {.bytes = std::move(text_), .lines = std::make_shared<const LineRuns>(std::move(runs_))};
}

}  // namespace stof::render
