#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "render/line_runs.hpp"
#include "render/value.hpp"

namespace stof::render {

class Budget;

// Collects rendered text, and for each line of it where it was written. A line counts as written
// where its first character that is not blank was.
class OutputBuffer {
 public:
  explicit OutputBuffer(Budget& budget) : budget_(budget) {}

  // Text of a template file, on from one of its lines.
  void append_source(std::string_view text, LineOrigin origin);
  // A value printed at a line; its own lines, if it knows them, count more.
  void append_value(const Text& text, LineOrigin origin);

  Text take();

 private:
  void append_line(std::string_view line, LineOrigin origin);
  void end_line(LineOrigin origin);

  Budget& budget_;
  std::string text_;
  LineRuns runs_;
  int line_ = 1;
  LineOrigin line_origin_;
  bool is_line_settled_ = false;
};

}  // namespace stof::render
