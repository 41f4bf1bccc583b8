#include <cstdio>

#include <fmt/format.h>

#include "stof/options.hpp"

namespace stof {

void print_progress(const Event& event) {
  const std::string time =
      event.milliseconds > 0 ? fmt::format(" {:.1f} ms", event.milliseconds) : "";
  const std::string text =
      fmt::format("stof: {} {}{}: {}\n", event.stage, event.name, time, event.detail);
  std::fputs(text.c_str(), stderr);  // one call, one line, also between threads
}

}  // namespace stof
