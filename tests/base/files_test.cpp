#include "base/files.hpp"

#include <filesystem>
#include <string>
#include <thread>
#include <utility>

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stof/error.hpp"

using stof::GraphError;
using stof::base::AtomicFile;
using stof::base::MappedFile;
using stof::base::read_file;
using stof::base::read_file_if_exists;
using stof::base::write_file_atomically;
namespace fs = std::filesystem;

namespace {

// A folder of its own for each test case.
class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / ("stof_files_test." + std::to_string(getpid()))) {
    fs::remove_all(path_);
    fs::create_directory(path_);
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  fs::path operator/(const char* name) const { return path_ / name; }
  std::ptrdiff_t file_count() const {
    return std::distance(fs::directory_iterator(path_), fs::directory_iterator());
  }

 private:
  fs::path path_;
};

std::string text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

}  // namespace

TEST_CASE("a file is read as it was written, up to the limit") {
  const Folder folder;
  const std::string text = std::string(200000, 'x') + std::string("\0\n\xff", 3);
  write_file_atomically(folder / "a", text);
  CHECK(read_file(folder / "a", text.size()) == text);
  CHECK(read_file_if_exists(folder / "a", text.size()) == text);
  const std::string message =
      "file: " + (folder / "a").string() + " has more than 200002 bytes, the limit";
  CHECK_THROWS_WITH_AS(read_file(folder / "a", text.size() - 1), message.c_str(), GraphError);
  write_file_atomically(folder / "empty", "");
  CHECK(read_file(folder / "empty", 0).empty());
}

TEST_CASE("a file without end stops at the limit") {
  CHECK_THROWS_WITH_AS(read_file("/dev/zero", 1000000),
                       "file: /dev/zero has more than 1000000 bytes, the limit", GraphError);
}

TEST_CASE("what cannot be read says why") {
  const Folder folder;
  const std::string missing = (folder / "none").string();
  CHECK_THROWS_WITH_AS(read_file(missing, 9),
                       ("file: cannot open " + missing + ": No such file or directory").c_str(),
                       GraphError);
  CHECK(read_file_if_exists(missing, 9) == std::nullopt);
  CHECK_THROWS_WITH_AS(read_file("/", 9), "file: cannot read /: Is a directory", GraphError);
  CHECK_THROWS_AS(read_file_if_exists("/", 9), GraphError);
  write_file_atomically(folder / "a", "text");
  CHECK(read_file_if_exists(folder / "a/b", 9) == std::nullopt);
}

TEST_CASE("links, devices and pipes stay what they are") {
  const Folder folder;
  write_file_atomically(folder / "a", "old");
  fs::create_symlink("a", folder / "link");
  write_file_atomically(folder / "link", "new");
  CHECK(fs::is_symlink(folder / "link"));
  CHECK(read_file(folder / "a", 9) == "new");

  fs::create_symlink("/dev/null", folder / "null");
  write_file_atomically(folder / "null", "text");
  CHECK(fs::is_symlink(folder / "null"));
  CHECK(fs::is_character_file("/dev/null"));

  REQUIRE(mkfifo((folder / "pipe").c_str(), 0600) == 0);
  std::string read;
  std::thread reader([&] { read = read_file(folder / "pipe", 9); });
  write_file_atomically(folder / "pipe", "text");
  reader.join();
  CHECK(read == "text");
  CHECK(fs::is_fifo(folder / "pipe"));

  CHECK_THROWS_WITH_AS(write_file_atomically(folder / ".", "text"),
                       doctest::Contains("Is a directory"), GraphError);
  CHECK(folder.file_count() == 4);
}

TEST_CASE("a file appears on commit, and replaces the old one") {
  const Folder folder;
  write_file_atomically(folder / "a", "old");
  AtomicFile file(folder / "a");
  file.write("ne");
  file.write("w");
  CHECK(read_file(folder / "a", 9) == "old");
  file.commit();
  CHECK(read_file(folder / "a", 9) == "new");
  CHECK(folder.file_count() == 1);
  CHECK_THROWS_AS(file.write("more"), GraphError);
}

TEST_CASE("without commit nothing is left") {
  const Folder folder;
  {
    AtomicFile file(folder / "a");
    file.write("half");
  }
  CHECK(folder.file_count() == 0);
}

TEST_CASE("a new file has the permissions that the umask leaves") {
  const Folder folder;
  const mode_t mask = umask(027);
  write_file_atomically(folder / "a", "text");
  umask(mask);
  CHECK(fs::status(folder / "a").permissions() == static_cast<fs::perms>(0640));
}

TEST_CASE("what cannot be written says why and leaves nothing") {
  const Folder folder;
  const std::string path = (folder / "none/a").string();
  CHECK_THROWS_WITH_AS(write_file_atomically(path, "text"),
                       ("file: cannot write " + path + ": No such file or directory").c_str(),
                       GraphError);
  fs::create_directories(folder / "directory/inner");
  const std::string directory = (folder / "directory").string();
  CHECK_THROWS_WITH_AS(write_file_atomically(directory, "text"),
                       ("file: cannot write " + directory + ": Is a directory").c_str(),
                       GraphError);
  CHECK(folder.file_count() == 1);
}

TEST_CASE("a mapped file is its bytes, also when the file is gone") {
  const Folder folder;
  write_file_atomically(folder / "a", "text");
  MappedFile file(folder / "a");
  fs::remove(folder / "a");
  CHECK(text_of(file) == "text");
  MappedFile moved = std::move(file);
  CHECK(text_of(moved) == "text");
  write_file_atomically(folder / "b", "other");
  moved = MappedFile(folder / "b");
  CHECK(text_of(moved) == "other");
  write_file_atomically(folder / "empty", "");
  CHECK(MappedFile(folder / "empty").bytes().empty());
}

TEST_CASE("only a regular file can be mapped") {
  const Folder folder;
  const std::string missing = (folder / "none").string();
  CHECK_THROWS_WITH_AS(MappedFile{missing},
                       ("file: cannot open " + missing + ": No such file or directory").c_str(),
                       GraphError);
  CHECK_THROWS_WITH_AS(MappedFile{"/dev/null"}, "file: /dev/null is not a regular file",
                       GraphError);
  const fs::path pipe = folder / "pipe";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  CHECK_THROWS_WITH_AS(MappedFile{pipe},
                       ("file: " + pipe.string() + " is not a regular file").c_str(), GraphError);
}
