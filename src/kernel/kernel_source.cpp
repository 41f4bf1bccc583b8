#include "kernel/kernel_source.hpp"

#include <algorithm>

namespace stof::kernel {

TemplateLine LineMap::origin(int rendered_line) const {
  const auto next = std::ranges::upper_bound(runs, rendered_line, {}, &LineRun::rendered_line);
  if (next == runs.begin()) {
    return {};
  }
  const LineRun& run = *std::prev(next);
  return {.file = files[static_cast<std::size_t>(run.file)],
          .line = run.template_line + run.step * (rendered_line - run.rendered_line)};
}

}  // namespace stof::kernel
