#include "base/log.hpp"

#include <string>

#include <fcntl.h>
#include <unistd.h>

#include "base/environment.hpp"

namespace stof::base {

namespace {

// The file descriptor of the sink, or -1. Open as long as the process lives.
int sink() {
  static const int file = [] {
    const std::string target = read_environment().log;
    if (target.empty()) {
      return -1;
    }
    return target == "stderr"
               ? STDERR_FILENO
               : open(target.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  }();
  return file;
}

}  // namespace

bool is_log_enabled() {
  return sink() >= 0;
}

void log_line(std::string_view line) {
  const std::string text = fmt::format("stof: {}\n", line);
  // One write appends one whole line, also where several processes share the file.
  [[maybe_unused]] const ssize_t written = write(sink(), text.data(), text.size());
}

}  // namespace stof::base
