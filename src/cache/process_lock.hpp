#pragma once

#include <filesystem>
#include <optional>

#include "base/hash.hpp"

namespace stof::cache {

// The folder where processes of this machine lock each other out: runtime_dir/stof, else
// /dev/shm/stof-<uid>. It is not in the cache, which may lie on a network, where locks break.
// Nothing where no such folder can be trusted.
std::optional<std::filesystem::path> find_lock_folder(
    const std::optional<std::filesystem::path>& runtime_dir);

// One try to be the only process that works on what a digest names. The lock is the kernel's, so it
// ends when its holder does, however that comes about. Never blocks or throws.
class ProcessLock {
 public:
  enum class State {
    Held,         // by this object, until it dies
    Busy,         // somebody else holds it
    Unavailable,  // there can be no lock: go on without one
  };

  ProcessLock() = default;  // unavailable
  ProcessLock(const std::filesystem::path& folder, const base::Digest& digest);
  ~ProcessLock();
  ProcessLock(ProcessLock&& other) noexcept;
  ProcessLock& operator=(ProcessLock&& other) noexcept;

  State state() const { return state_; }
  // The process that holds it where busy, 0 where that is not known. Where held: the process that
  // died with it, 0 where the last one let it go.
  int other_holder() const { return other_holder_; }

 private:
  State state_ = State::Unavailable;
  int other_holder_ = 0;
  int file_ = -1;
};

}  // namespace stof::cache
