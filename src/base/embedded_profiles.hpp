#pragma once

#include <span>
#include <string_view>

namespace stof::base {

struct EmbeddedProfile {
  std::string_view path;  // below profiles/
  std::string_view text;
};

// Every *.json file below profiles/, in order of path.
std::span<const EmbeddedProfile> embedded_profiles();

}  // namespace stof::base
