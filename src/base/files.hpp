#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

// Files as wholes. Every function throws GraphError where the system refuses: "file: cannot open
// /a/b: No such file or directory".
namespace stof::base {

// All bytes of a file or pipe. Throws GraphError if there are more than max_bytes.
std::string read_file(const std::filesystem::path& path, std::size_t max_bytes);

// The same, or nothing where there is no such file.
std::optional<std::string> read_file_if_exists(const std::filesystem::path& path,
                                               std::size_t max_bytes);

// When a file is flushed to the disk: before it appears, or by a later flush_files() with others.
enum class Flush { Each, Later };

// A file that appears, or replaces the old one, whole: written under another name in the same
// folder, flushed to the disk, then renamed by commit(). Without commit() nothing is left of it.
// What a link leads to is replaced, not the link; devices and pipes are written to as they are.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::string_view bytes);
  void write(std::span<const std::byte> bytes);
  void commit(Flush flush = Flush::Each);

 private:
  std::filesystem::path path_;
  std::filesystem::path temporary_;  // empty: path_ is no regular file
  int file_ = -1;
};

void write_file_atomically(const std::filesystem::path& path, std::string_view bytes,
                           Flush flush = Flush::Each);

// Flushes all files of the file system that the folder is in.
void flush_files(const std::filesystem::path& folder);

// The bytes of a regular file, read-only in memory as long as this lives. The file may be renamed
// or deleted meanwhile, but not shortened.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace stof::base
