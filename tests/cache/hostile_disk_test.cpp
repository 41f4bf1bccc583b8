// Disks that cannot be written, trusted or found: the entry is there all the same, with one
// warning.
#include <csignal>
#include <functional>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cache/cache.hpp"
#include "temporary_folder.hpp"

using stof::cache::Cache;
using stof::cache::CacheOptions;
using stof::cache::Entry;
using stof::cache::EntryKind;
using stof::kernel::Key;
using stof::test::TemporaryFolder;
namespace fs = std::filesystem;

namespace {

constexpr uid_t kNobody = 65534;

Entry make(const std::string& key) {
  const std::string payload(100000, 'x');
  return {EntryKind::Kernel, Key(key), {.payload = payload}};
}

// What a cache at a folder warns of when it gets two entries, and gives them back.
std::vector<std::string> use(const std::optional<fs::path>& folder) {
  std::vector<std::string> warnings;
  CacheOptions options;
  options.directory = folder;
  options.on_warning = [&](const std::string& text) { warnings.push_back(text); };
  Cache cache(std::move(options));
  for (const char* key : {"a", "b"}) {
    const auto added = cache.add(make(key));
    const auto found = cache.find(EntryKind::Kernel, Key(key));
    if (!found || found->entry != added || added->payload().size() != 100000) {
      warnings.emplace_back("the entry is lost");
    }
  }
  cache.tuning().add({.problem = "p", .config = "c", .result = 1});
  if (cache.tuning().find("p").size() != 1) {
    warnings.emplace_back("the record is lost");
  }
  return warnings;
}

// use() in another process, after `prepare`: what it may not do here, it may do there.
std::vector<std::string> use_in_child(const fs::path& folder,
                                      const std::function<void()>& prepare) {
  int text[2] = {};
  REQUIRE(pipe(text) == 0);
  const pid_t child = fork();
  if (child == 0) {
    prepare();
    for (const std::string& warning : use(folder)) {
      const std::string line = warning + "\n";
      if (write(text[1], line.data(), line.size()) < 0) {
        _exit(2);
      }
    }
    _exit(0);
  }
  close(text[1]);
  std::string all;
  char c = 0;
  while (read(text[0], &c, 1) == 1) {
    all += c;
  }
  close(text[0]);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(status == 0);
  std::vector<std::string> lines;
  for (std::size_t end = 0; (end = all.find('\n')) != std::string::npos; all.erase(0, end + 1)) {
    lines.push_back(all.substr(0, end));
  }
  return lines;
}

// Root may write anywhere; tests of permissions go on as somebody who may not.
void become_ordinary() {
  if (geteuid() == 0 && (setgid(kNobody) != 0 || setuid(kNobody) != 0)) {
    _exit(3);
  }
}

void give_to_ordinary(const fs::path& path) {
  if (geteuid() == 0) {
    REQUIRE(chown(path.c_str(), kNobody, kNobody) == 0);
  }
}

void forbid_large_files() {
  signal(SIGXFSZ, SIG_IGN);
  const rlimit limit = {.rlim_cur = 50000, .rlim_max = 50000};
  setrlimit(RLIMIT_FSIZE, &limit);
}

std::ptrdiff_t count_files(const fs::path& folder) {
  std::ptrdiff_t count = 0;
  for (const auto& file : fs::recursive_directory_iterator(folder)) {
    count += file.is_regular_file() ? 1 : 0;
  }
  return count;
}

}  // namespace

TEST_CASE("a good disk gives no warning") {
  const TemporaryFolder folder;
  CHECK(use(folder / "a/b/c").empty());
  CHECK(use(folder / "a/b/c").empty());
  CHECK(use(std::nullopt).empty());
  struct stat status = {};
  REQUIRE(stat((folder / "a/b/c/v1").c_str(), &status) == 0);
  CHECK((status.st_mode & 07777) == 0700);
}

TEST_CASE("a folder that cannot be made is no cache") {
  const TemporaryFolder folder;
  fs::permissions(folder.path(), fs::perms(0555));
  give_to_ordinary(folder.path());
  const auto warnings = use_in_child(folder / "home/.cache/stof", become_ordinary);
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0] == "cache: in memory only: " + (folder / "home/.cache/stof").string() +
                           " cannot be made: Permission denied");
  CHECK(use("/proc/self/none").size() == 1);
  CHECK(use("/dev/null/cache").size() == 1);
}

TEST_CASE("a folder that cannot be written is read") {
  const TemporaryFolder folder;
  give_to_ordinary(folder.path());
  CHECK(use_in_child(folder.path(), become_ordinary).empty());
  const std::ptrdiff_t before = count_files(folder.path());
  fs::permissions(folder / "v1", fs::perms(0500));
  const auto warnings = use_in_child(folder.path(), become_ordinary);
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0] == "cache: " + (folder / "v1").string() + " cannot be written");
  CHECK(count_files(folder.path()) == before);
  fs::permissions(folder / "v1", fs::perms(0700));
}

TEST_CASE("a folder of somebody else is refused") {
  const TemporaryFolder folder;
  if (geteuid() != 0) {
    const auto warnings = use("/");
    REQUIRE(warnings.size() == 1);
    CHECK(warnings[0].starts_with("cache: in memory only: / belongs to user 0, not to user "));
    return;
  }
  give_to_ordinary(folder.path());
  const auto warnings = use(folder.path());
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0] == "cache: in memory only: " + folder.path().string() +
                           " belongs to user 65534, not to user 0");
  CHECK(count_files(folder.path()) == 0);
}

TEST_CASE("a folder that others can write to is refused") {
  const TemporaryFolder folder;
  for (const unsigned mode : {0770U, 0702U, 0777U, 01777U}) {
    fs::permissions(folder.path(), fs::perms(mode));
    const auto warnings = use(folder.path());
    REQUIRE(warnings.size() == 1);
    CHECK(warnings[0].find("is open to its group or to others") != std::string::npos);
  }
  fs::permissions(folder.path(), fs::perms(0755));
  CHECK(use(folder.path()).empty());
  fs::permissions(folder / "v1", fs::perms(0722));
  CHECK(use(folder.path()).size() == 1);
}

TEST_CASE("a file in the place of the folder is refused") {
  const TemporaryFolder folder;
  CHECK(use("/dev/null").size() == 1);
}

TEST_CASE("what does not fit on the disk leaves nothing there") {
  const TemporaryFolder folder;
  const auto warnings = use_in_child(folder.path(), forbid_large_files);
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].starts_with("cache: an entry stays in memory: file: cannot write " +
                                (folder / "v1/kernels").string()));
  CHECK(warnings[0].ends_with("File too large"));
  CHECK(count_files(folder / "v1") == 2);  // the cache tag, and the tuning record that did fit
}

TEST_CASE("a full disk is as good as none") {
  const TemporaryFolder folder;
  if (mount("stof", folder.path().c_str(), "tmpfs", 0, "size=64k,mode=700") != 0) {
    MESSAGE("skipped: no file system can be mounted here");
    return;
  }
  const auto warnings = use(folder.path());
  const std::ptrdiff_t count = count_files(folder / "v1");
  REQUIRE(umount(folder.path().c_str()) == 0);
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].ends_with("No space left on device"));
  CHECK(count == 2);
}

TEST_CASE("a read-only file system is read") {
  const TemporaryFolder folder;
  if (mount("stof", folder.path().c_str(), "tmpfs", 0, "mode=700") != 0) {
    MESSAGE("skipped: no file system can be mounted here");
    return;
  }
  const auto before = use(folder.path());
  REQUIRE(mount("stof", folder.path().c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, "mode=700") == 0);
  const auto warnings = use(folder.path());
  REQUIRE(umount(folder.path().c_str()) == 0);
  CHECK(before.empty());
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0] == "cache: " + (folder / "v1").string() + " cannot be written");
}

TEST_CASE("a folder that is taken away meanwhile is made again") {
  const TemporaryFolder folder;
  std::vector<std::string> warnings;
  CacheOptions options;
  options.directory = folder / "cache";
  options.on_warning = [&](const std::string& text) { warnings.push_back(text); };
  Cache cache(std::move(options));
  fs::remove_all(folder / "cache");
  cache.add(make("a"));
  CHECK(warnings.empty());
  struct stat status = {};
  REQUIRE(stat((folder / "cache").c_str(), &status) == 0);
  CHECK((status.st_mode & 07777) == 0700);
  CHECK(use(folder / "cache").empty());
}
