#pragma once

#include <span>
#include <string_view>

namespace stof::tune {

struct EmbeddedRecord {
  std::string_view path;  // below cache/tuned/
  std::string_view text;  // a record a line
};

// Every *.jsonl file below cache/tuned/, in order of path.
std::span<const EmbeddedRecord> embedded_records();

}  // namespace stof::tune
