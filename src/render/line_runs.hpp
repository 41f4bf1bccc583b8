#pragma once

#include <memory>
#include <vector>

#include "kernel/kernel_source.hpp"

namespace stof::render {

using LineRuns = std::vector<kernel::LineRun>;

struct LineOrigin {
  int file = -1;  // index into LineMap::files; -1 for none
  int line = 0;
};

// The origin of a line, from 1, in a list ordered by rendered line.
LineOrigin origin_of(const LineRuns& runs, int rendered_line);
// Extends the last run by a line, or begins another.
void add_line(LineRuns& runs, int rendered_line, LineOrigin origin);
// What is left when the first lines are dropped; null stays null.
std::shared_ptr<const LineRuns> without_first_lines(const std::shared_ptr<const LineRuns>& runs,
                                                    int count);

}  // namespace stof::render
