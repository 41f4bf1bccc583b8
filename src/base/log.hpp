#pragma once

#include <string_view>
#include <utility>

#include <fmt/format.h>

// One line after the other to where STOF_LOG says when the first is logged: log("jit: {}", name).
// Without it nothing is formatted. From any thread; a line is never torn, and a log that cannot be
// written is no error.
namespace stof::base {

bool is_log_enabled();
void log_line(std::string_view line);

template <typename... Args>
void log(fmt::format_string<Args...> format, Args&&... args) {
  if (is_log_enabled()) {
    log_line(fmt::format(format, std::forward<Args>(args)...));
  }
}

}  // namespace stof::base
