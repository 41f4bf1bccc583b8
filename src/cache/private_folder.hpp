#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace stof::cache {

enum class FolderUse {
  Files,  // a symbolic link to a folder will do, and others may read it
  Locks,  // in a place where anybody may make names: no link, and nobody else gets in
};

// Makes the folder and those above it, each for this user alone, unless it is there. Returns why
// files in it cannot be trusted, or nothing: a folder that others could write to would have this
// process run their code. Never throws.
std::optional<std::string> make_private_folder(const std::filesystem::path& folder, FolderUse use);

}  // namespace stof::cache
