#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stof::kernel {

// Where a line of a kernel was written.
struct TemplateLine {
  std::string_view file;  // below the template roots
  int line = 0;           // from 1; 0 for a line that the map does not cover
};

// Consecutive rendered lines that come from consecutive lines of a file (step 1) or all from one
// line (step 0).
struct LineRun {
  int rendered_line = 0;  // the first line of the run, from 1
  int file = 0;           // index into LineMap::files
  int template_line = 0;  // where the first line comes from, from 1
  int step = 1;

  friend bool operator==(const LineRun&, const LineRun&) = default;
};

// Leads each line of a rendered kernel back to its template, through includes, macros and loops.
struct LineMap {
  std::vector<std::string> files;  // every file that took part, in order of first use
  std::vector<LineRun> runs;       // ordered by rendered_line

  // The origin of a rendered line, from 1. The view lives as long as this map.
  TemplateLine origin(int rendered_line) const;
};

// One kernel, self-contained: what is compiled, hashed and cached. The map is not part of its key.
struct KernelSource {
  std::string text;
  LineMap lines;
};

}  // namespace stof::kernel
