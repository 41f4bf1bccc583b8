#include "cache/disk_layer.hpp"

#include <fstream>
#include <vector>

#include <doctest/doctest.h>

#include "base/files.hpp"
#include "stof/error.hpp"
#include "temporary_folder.hpp"

using stof::cache::DiskLayer;
using stof::cache::Entry;
using stof::cache::EntryKind;
using stof::cache::set_aside;
using stof::kernel::Key;
using stof::test::TemporaryFolder;
namespace fs = std::filesystem;

namespace {

// A layer, and what it warned of.
struct Disk {
  explicit Disk(const fs::path& folder, bool is_writable = true)
      : layer(folder, is_writable, [this](const std::string& text) { warnings.push_back(text); }) {}

  std::vector<std::string> warnings;
  DiskLayer layer;
};

Entry make(const std::string& key, const std::string& payload = "payload") {
  return {EntryKind::Kernel, Key(key), {.payload = payload, .meta = "{}"}};
}

std::shared_ptr<const Entry> find(Disk& disk, const std::string& key) {
  return disk.layer.find(EntryKind::Kernel, Key(key).digest());
}

void overwrite(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

std::ptrdiff_t count_files(const fs::path& folder) {
  std::ptrdiff_t count = 0;
  if (fs::exists(folder)) {
    for (const auto& file : fs::recursive_directory_iterator(folder)) {
      count += file.is_regular_file() ? 1 : 0;
    }
  }
  return count;
}

}  // namespace

TEST_CASE("what was published is found, also by another process and later") {
  const TemporaryFolder folder;
  Disk(folder.path()).layer.publish(make("a"));
  Disk disk(folder.path());
  const auto entry = find(disk, "a");
  REQUIRE(entry != nullptr);
  CHECK(entry->bytes() == make("a").bytes());
  CHECK(find(disk, "b") == nullptr);
  CHECK(disk.layer.find(EntryKind::Plan, Key("a").digest()) == nullptr);
  CHECK(disk.warnings.empty());
  const std::string name = Key("a").digest().hex();
  CHECK(disk.layer.path_of(EntryKind::Kernel, Key("a").digest()) ==
        folder / "kernels" / name.substr(0, 2) / (name + ".stof"));
  CHECK(count_files(folder.path()) == 1);
}

TEST_CASE("a folder that was moved is as good as before") {
  const TemporaryFolder folder;
  Disk(folder / "here").layer.publish(make("a"));
  fs::rename(folder / "here", folder / "there");
  Disk disk(folder / "there");
  CHECK(find(disk, "a") != nullptr);
}

TEST_CASE("a damaged file is a miss, and set aside") {
  const TemporaryFolder folder;
  Disk disk(folder.path());
  disk.layer.publish(make("a"));
  const fs::path path = disk.layer.path_of(EntryKind::Kernel, Key("a").digest());
  std::string bytes = make("a").bytes();
  bytes[50] ^= 4;
  overwrite(path, bytes);

  CHECK(find(disk, "a") == nullptr);
  CHECK_FALSE(fs::exists(path));
  CHECK(stof::base::read_file(folder / "bad" / path.filename(), 10000) == bytes);
  REQUIRE(disk.warnings.size() == 1);
  CHECK(disk.warnings[0] == "cache: " + path.string() + " is not used: its checksum does not hold");

  CHECK(find(disk, "a") == nullptr);  // a plain miss by now
  CHECK(disk.warnings.size() == 1);
  disk.layer.publish(make("a"));
  CHECK(find(disk, "a") != nullptr);
}

TEST_CASE("a file under another name is a miss, and set aside") {
  const TemporaryFolder folder;
  Disk disk(folder.path());
  disk.layer.publish(make("a"));
  const fs::path path = disk.layer.path_of(EntryKind::Kernel, Key("b").digest());
  fs::create_directories(path.parent_path());
  overwrite(path, make("a").bytes());
  CHECK(find(disk, "b") == nullptr);
  CHECK_FALSE(fs::exists(path));
  REQUIRE(disk.warnings.size() == 1);
  CHECK(disk.warnings[0] ==
        "cache: " + path.string() + " is not used: it is the entry of another name");
  CHECK(find(disk, "a") != nullptr);
}

TEST_CASE("at most 16 bad files are kept, the last among them") {
  const TemporaryFolder folder;
  Disk disk(folder.path());
  for (int i = 0; i < 20; ++i) {
    const std::string key = "key " + std::to_string(i);
    disk.layer.publish(make(key));
    const fs::path path = disk.layer.path_of(EntryKind::Kernel, Key(key).digest());
    overwrite(path, "bad");
    CHECK(find(disk, key) == nullptr);
    CHECK(fs::exists(folder / "bad" / path.filename()));
  }
  CHECK(count_files(folder / "bad") == 16);
}

TEST_CASE("nothing is moved in a folder that is only read") {
  const TemporaryFolder folder;
  Disk(folder.path()).layer.publish(make("a"));
  Disk disk(folder.path(), false);
  const fs::path path = disk.layer.path_of(EntryKind::Kernel, Key("a").digest());
  overwrite(path, "bad");
  CHECK(find(disk, "a") == nullptr);
  CHECK(disk.warnings.size() == 1);
  CHECK(fs::exists(path));
  CHECK(count_files(folder.path()) == 1);
}

TEST_CASE("a good file that took the place of a bad one stays") {
  const TemporaryFolder folder;
  overwrite(folder / "a", "good");
  set_aside(folder.path(), folder / "a", "bad");
  CHECK(fs::exists(folder / "a"));
  set_aside(folder.path(), folder / "a", "goo");
  CHECK(fs::exists(folder / "a"));
  set_aside(folder.path(), folder / "a", "good");
  CHECK_FALSE(fs::exists(folder / "a"));
  CHECK(fs::exists(folder / "bad" / "a"));
}

TEST_CASE("an entry that would not be read is not written") {
  const TemporaryFolder folder;
  const Disk disk(folder.path());
  CHECK_THROWS_WITH_AS(disk.layer.publish(make("a", std::string(64 << 20, 'x'))),
                       doctest::Contains("bytes are more than 67108864, the limit"),
                       stof::GraphError);
  CHECK(count_files(folder.path()) == 0);
}

TEST_CASE("what is no file is a miss") {
  const TemporaryFolder folder;
  Disk disk(folder.path());
  const fs::path path = disk.layer.path_of(EntryKind::Kernel, Key("a").digest());
  fs::create_directories(path);
  CHECK(find(disk, "a") == nullptr);
  CHECK(disk.warnings.size() == 1);
}
