#include "cache/process_lock.hpp"

#include <csignal>
#include <fstream>
#include <functional>
#include <string>

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/hash.hpp"
#include "temporary_folder.hpp"

using stof::base::hash;
using stof::cache::find_lock_folder;
using stof::cache::ProcessLock;
using stof::test::TemporaryFolder;
using State = ProcessLock::State;
namespace fs = std::filesystem;

namespace {

// A child process that holds a lock until it is ended.
class Holder {
 public:
  Holder(const fs::path& folder, const stof::base::Digest& digest) {
    int ready[2] = {};
    REQUIRE(pipe(ready) == 0);
    process_ = fork();
    if (process_ == 0) {
      const ProcessLock lock(folder, digest);
      const char state = lock.state() == State::Held ? 'h' : 'x';
      if (write(ready[1], &state, 1) == 1) {
        pause();
      }
      _exit(0);
    }
    char state = 0;
    REQUIRE(read(ready[0], &state, 1) == 1);
    REQUIRE(state == 'h');
    close(ready[0]);
    close(ready[1]);
  }
  ~Holder() { kill(); }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;

  int process() const { return process_; }
  void kill() {
    if (process_ > 0) {
      ::kill(process_, SIGKILL);
      waitpid(process_, nullptr, 0);
      process_ = 0;
    }
  }

 private:
  pid_t process_ = 0;
};

}  // namespace

TEST_CASE("one holds a lock at a time, also within a process") {
  const TemporaryFolder folder;
  {
    const ProcessLock first(folder.path(), hash("a"));
    CHECK(first.state() == State::Held);
    CHECK(first.other_holder() == 0);
    const ProcessLock second(folder.path(), hash("a"));
    CHECK(second.state() == State::Busy);
    CHECK(second.other_holder() == getpid());
    CHECK(ProcessLock(folder.path(), hash("b")).state() == State::Held);
  }
  const ProcessLock third(folder.path(), hash("a"));
  CHECK(third.state() == State::Held);
  CHECK(third.other_holder() == 0);  // it was let go, not lost
}

TEST_CASE("a lock moves with its object") {
  const TemporaryFolder folder;
  ProcessLock first(folder.path(), hash("a"));
  {
    const ProcessLock second = std::move(first);
    CHECK(second.state() == State::Held);
    CHECK(ProcessLock(folder.path(), hash("a")).state() == State::Busy);
  }
  first = ProcessLock(folder.path(), hash("a"));
  CHECK(first.state() == State::Held);
}

TEST_CASE("a process that dies lets go at once, and who comes next knows of it") {
  const TemporaryFolder folder;
  Holder holder(folder.path(), hash("a"));
  const int process = holder.process();
  const ProcessLock busy(folder.path(), hash("a"));
  CHECK(busy.state() == State::Busy);
  CHECK(busy.other_holder() == process);
  holder.kill();
  const ProcessLock lock(folder.path(), hash("a"));
  CHECK(lock.state() == State::Held);
  CHECK(lock.other_holder() == process);
}

TEST_CASE("where there can be no lock it says so") {
  const TemporaryFolder folder;
  CHECK(ProcessLock().state() == State::Unavailable);
  CHECK(ProcessLock(folder / "none", hash("a")).state() == State::Unavailable);
  std::ofstream(folder / "file") << "";
  fs::create_symlink(folder / "file", folder / (hash("a").hex().substr(0, 16) + ".lock"));
  CHECK(ProcessLock(folder.path(), hash("a")).state() == State::Unavailable);
}

TEST_CASE("a lock file with anything in it is a lock file") {
  const TemporaryFolder folder;
  std::ofstream(folder / (hash("a").hex().substr(0, 16) + ".lock")) << "99999999999999999999 x";
  const ProcessLock lock(folder.path(), hash("a"));
  CHECK(lock.state() == State::Held);
  CHECK(lock.other_holder() == 0);
}

TEST_CASE("locks lie in the runtime folder, if nobody else gets in") {
  const TemporaryFolder folder;
  CHECK(find_lock_folder(folder.path()) == folder / "stof");
  struct stat status = {};
  REQUIRE(stat((folder / "stof").c_str(), &status) == 0);
  CHECK((status.st_mode & 07777) == 0700);

  const fs::path shared_memory = "/dev/shm/stof-" + std::to_string(geteuid());
  fs::permissions(folder / "stof", fs::perms(0750));
  CHECK(find_lock_folder(folder.path()) == shared_memory);
  fs::remove(folder / "stof");
  fs::create_directory(folder / "real");
  fs::permissions(folder / "real", fs::perms(0700));
  fs::create_symlink(folder / "real", folder / "stof");
  CHECK(find_lock_folder(folder.path()) == shared_memory);
  CHECK(find_lock_folder(std::nullopt) == shared_memory);
  CHECK(find_lock_folder(folder / "none") == shared_memory);
  CHECK_FALSE(fs::exists(folder / "none"));
}
