#include "render/line_runs.hpp"

#include <algorithm>
#include <iterator>

namespace stof::render {

LineOrigin origin_of(const LineRuns& runs, int rendered_line) {
  const auto next =
      std::ranges::upper_bound(runs, rendered_line, {}, &kernel::LineRun::rendered_line);
  if (next == runs.begin()) {
    return {};
  }
  const kernel::LineRun& run = *std::prev(next);
  return {.file = run.file,
          .line = run.template_line + run.step * (rendered_line - run.rendered_line)};
}

void add_line(LineRuns& runs, int rendered_line, LineOrigin origin) {
  if (!runs.empty() && runs.back().file == origin.file) {
    kernel::LineRun& last = runs.back();
    const int distance = rendered_line - last.rendered_line;
    if (distance == 1 && origin.line - last.template_line <= 1 &&
        origin.line >= last.template_line) {
      last.step = origin.line - last.template_line;
      return;
    }
    if (distance > 1 && origin.line == last.template_line + last.step * distance) {
      return;
    }
  }
  runs.push_back({.rendered_line = rendered_line,
                  .file = origin.file,
                  .template_line = origin.line,
                  .step = 1});
}

std::shared_ptr<const LineRuns> without_first_lines(const std::shared_ptr<const LineRuns>& runs,
                                                    int count) {
  if (runs == nullptr || runs->empty() || count == 0) {
    return runs;
  }
  auto rest = std::make_shared<LineRuns>();
  for (kernel::LineRun run : *runs) {
    const int skipped = std::max(count + 1 - run.rendered_line, 0);
    run.rendered_line = std::max(run.rendered_line - count, 1);
    run.template_line += run.step * skipped;
    if (!rest->empty() && rest->back().rendered_line == run.rendered_line) {
      rest->pop_back();
    }
    rest->push_back(run);
  }
  return rest;
}

}  // namespace stof::render
