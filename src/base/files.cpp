#include "base/files.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <random>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stof/error.hpp"

namespace stof::base {

namespace {

[[noreturn]] void throw_errno(std::string_view verb, const std::filesystem::path& path, int error) {
  throw GraphError(fmt::format("file: cannot {} {}: {}", verb, path.string(),
                               std::generic_category().message(error)));
}

// Closes at the end of its scope.
class Descriptor {
 public:
  explicit Descriptor(int file) : file_(file) {}
  ~Descriptor() {
    if (file_ >= 0) {
      close(file_);
    }
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int get() const { return file_; }

 private:
  int file_;
};

int open_to_read(const std::filesystem::path& path) {
  return open(path.c_str(), O_RDONLY | O_CLOEXEC);
}

std::string read_all(int file, const std::filesystem::path& path, std::size_t max_bytes) {
  std::string text;
  std::array<char, 65536> chunk;
  while (true) {
    const ssize_t count = read(file, chunk.data(), chunk.size());
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count < 0) {
      throw_errno("read", path, errno);
    }
    if (count == 0) {
      return text;
    }
    if (static_cast<std::size_t>(count) > max_bytes - text.size()) {
      throw GraphError(
          fmt::format("file: {} has more than {} bytes, the limit", path.string(), max_bytes));
    }
    text.append(chunk.data(), static_cast<std::size_t>(count));
  }
}

}  // namespace

std::string read_file(const std::filesystem::path& path, std::size_t max_bytes) {
  const Descriptor file(open_to_read(path));
  if (file.get() < 0) {
    throw_errno("open", path, errno);
  }
  return read_all(file.get(), path, max_bytes);
}

std::optional<std::string> read_file_if_exists(const std::filesystem::path& path,
                                               std::size_t max_bytes) {
  const Descriptor file(open_to_read(path));
  if (file.get() < 0 && (errno == ENOENT || errno == ENOTDIR)) {
    return std::nullopt;
  }
  if (file.get() < 0) {
    throw_errno("open", path, errno);
  }
  return read_all(file.get(), path, max_bytes);
}

AtomicFile::AtomicFile(std::filesystem::path path) : path_(std::move(path)) {
  std::error_code unknown;
  const std::filesystem::file_status status = std::filesystem::status(path_, unknown);
  if (std::filesystem::is_other(status)) {
    file_ = open(path_.c_str(), O_WRONLY | O_CLOEXEC);
    if (file_ < 0) {
      throw_errno("write", path_, errno);
    }
    return;
  }
  if (std::filesystem::is_directory(status)) {
    throw_errno("write", path_, EISDIR);
  }
  if (std::filesystem::is_regular_file(status)) {
    path_ = std::filesystem::canonical(path_);  // what a link leads to
  }
  // A random name: processes on several machines may write to one folder.
  std::random_device random;
  do {
    temporary_ = path_;
    temporary_ += fmt::format(".{:08x}{:08x}.tmp", random(), random());
    file_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  } while (file_ < 0 && errno == EEXIST);
  if (file_ < 0) {
    throw_errno("write", path_, errno);
  }
}

AtomicFile::~AtomicFile() {
  if (file_ >= 0) {
    close(file_);
  }
  if (file_ >= 0 && !temporary_.empty()) {
    unlink(temporary_.c_str());
  }
}

void AtomicFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(file_, bytes.data(), bytes.size());
    if (count < 0 && errno != EINTR) {
      throw_errno("write", path_, errno);
    }
    bytes.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  }
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  write(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

void AtomicFile::commit(Flush flush) {
  if (!temporary_.empty() && ((flush == Flush::Each && fsync(file_) != 0) ||
                              rename(temporary_.c_str(), path_.c_str()) != 0)) {
    throw_errno("write", path_, errno);
  }
  close(std::exchange(file_, -1));
}

void write_file_atomically(const std::filesystem::path& path, std::string_view bytes, Flush flush) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit(flush);
}

void flush_files(const std::filesystem::path& folder) {
  const Descriptor file(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (file.get() < 0 || syncfs(file.get()) != 0) {
    throw_errno("flush", folder, errno);
  }
}

MappedFile::MappedFile(const std::filesystem::path& path) {
  // Not to wait for a writer where the path is a pipe: it is refused below.
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status = {};
  if (file.get() < 0 || fstat(file.get(), &status) != 0) {
    throw_errno("open", path, errno);
  }
  if (!S_ISREG(status.st_mode)) {
    throw GraphError(fmt::format("file: {} is not a regular file", path.string()));
  }
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) {
    return;  // which cannot be mapped
  }
  void* const data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (data == MAP_FAILED) {
    throw_errno("map", path, errno);
  }
  bytes_ = {static_cast<const std::byte*>(data), size};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) {
    munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  }
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

}  // namespace stof::base
