#include "cache/process_lock.hpp"

#include <cerrno>
#include <charconv>
#include <string>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/log.hpp"
#include "cache/private_folder.hpp"

namespace stof::cache {

namespace {

// The number at the start of the file, or 0.
int read_holder(int file) {
  char text[16] = {};
  int holder = 0;
  const ssize_t count = pread(file, text, sizeof(text), 0);
  if (count > 0) {
    std::from_chars(text, text + count, holder);
  }
  return holder;
}

// For others to see; the lock holds without it.
void write_holder(int file, const std::string& text) {
  if (ftruncate(file, 0) != 0 ||
      pwrite(file, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
    base::log("cache: cannot write a lock file");
  }
}

}  // namespace

std::optional<std::filesystem::path> find_lock_folder(
    const std::optional<std::filesystem::path>& runtime_dir) {
  std::optional<std::filesystem::path> candidates[] = {
      std::nullopt, std::filesystem::path(fmt::format("/dev/shm/stof-{}", geteuid()))};
  std::error_code ignored;
  if (runtime_dir && std::filesystem::is_directory(*runtime_dir, ignored)) {
    candidates[0] = *runtime_dir / "stof";
  }
  for (const std::optional<std::filesystem::path>& folder : candidates) {
    if (folder && !make_private_folder(*folder, FolderUse::Locks)) {
      return folder;
    }
  }
  return std::nullopt;
}

ProcessLock::ProcessLock(const std::filesystem::path& folder, const base::Digest& digest) {
  // A lock file stays for ever: were it deleted, two processes could hold a lock of one name.
  const std::filesystem::path path = folder / (digest.hex().substr(0, 16) + ".lock");
  file_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file_ < 0) {
    return;
  }
  if (flock(file_, LOCK_EX | LOCK_NB) == 0) {
    state_ = State::Held;
    other_holder_ = read_holder(file_);
    write_holder(file_, fmt::format("{}\n", getpid()));
  } else if (errno == EWOULDBLOCK) {
    state_ = State::Busy;
    other_holder_ = read_holder(file_);
  }
}

ProcessLock::~ProcessLock() {
  if (state_ == State::Held) {
    write_holder(file_, "");
    flock(file_, LOCK_UN);  // said aloud, since a process that was forked meanwhile shares the file
  }
  if (file_ >= 0) {
    close(file_);
  }
}

ProcessLock::ProcessLock(ProcessLock&& other) noexcept
    : state_(std::exchange(other.state_, State::Unavailable)),
      other_holder_(other.other_holder_),
      file_(std::exchange(other.file_, -1)) {}

ProcessLock& ProcessLock::operator=(ProcessLock&& other) noexcept {
  std::swap(state_, other.state_);
  std::swap(other_holder_, other.other_holder_);
  std::swap(file_, other.file_);
  return *this;
}

}  // namespace stof::cache
