#include "cache/private_folder.hpp"

#include <cerrno>
#include <system_error>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace stof::cache {

namespace {

std::string errno_text() {
  return std::generic_category().message(errno);
}

// Whether the folder is there afterwards; errno says why not.
bool make_folders(const std::filesystem::path& folder) {
  if (mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST) {
    return true;
  }
  const std::filesystem::path parent = folder.parent_path();
  if (errno != ENOENT || parent == folder || parent.empty()) {
    return false;
  }
  return make_folders(parent) && (mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST);
}

}  // namespace

std::optional<std::string> make_private_folder(const std::filesystem::path& folder, FolderUse use) {
  if (!make_folders(folder)) {
    return fmt::format("{} cannot be made: {}", folder.string(), errno_text());
  }
  struct stat status = {};
  const bool is_link_allowed = use == FolderUse::Files;
  if ((is_link_allowed ? stat : lstat)(folder.c_str(), &status) != 0) {
    return fmt::format("{} cannot be read: {}", folder.string(), errno_text());
  }
  if (!S_ISDIR(status.st_mode)) {
    return fmt::format("{} is not a folder", folder.string());
  }
  if (status.st_uid != geteuid()) {
    return fmt::format("{} belongs to user {}, not to user {}", folder.string(), status.st_uid,
                       geteuid());
  }
  const mode_t forbidden = use == FolderUse::Files ? S_IWGRP | S_IWOTH : S_IRWXG | S_IRWXO;
  if ((status.st_mode & forbidden) != 0) {
    return fmt::format("{} is open to its group or to others: its mode is {:o}, not 700",
                       folder.string(), status.st_mode & 07777);
  }
  return std::nullopt;
}

}  // namespace stof::cache
