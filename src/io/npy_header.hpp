#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stof::io {

struct NpyHeader {
  std::string descr;
  bool is_fortran_order = false;
  std::vector<std::int64_t> shape;
};

// Parses {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }, a Python dict of these three
// keys in any order. Throws GraphError without naming the file.
NpyHeader parse_npy_header(std::string_view text);

}  // namespace stof::io
