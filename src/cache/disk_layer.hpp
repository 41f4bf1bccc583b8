#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "base/files.hpp"
#include "cache/layer.hpp"

namespace stof::cache {

// Entries of another layout go to another folder, so versions of the library can share a directory.
inline constexpr std::string_view kLayout = "v1";

// A cubin has some 50 KB, a plan less. What is larger was not written here.
inline constexpr std::size_t kMaxEntryBytes = 64 << 20;

// Where entries of a kind are, below the folder of the layout.
std::string_view folder_name(EntryKind kind);

// Told what went wrong, in one line, where the cache goes on without. From any thread.
using Warn = std::function<void(const std::string&)>;

// Entries as files in the folder of one layout version (cache/README.md), which many processes
// and machines may share and move.
class DiskLayer : public Layer {
 public:
  // `name` must stay: "disk", and "pack" for a folder that an application brings along.
  DiskLayer(std::filesystem::path folder, bool is_writable, Warn warn,
            std::string_view name = "disk");

  std::string_view name() const override { return name_; }
  // A file that is not what its name says is set aside, if the folder is writable.
  std::shared_ptr<const Entry> find(EntryKind kind, const base::Digest& digest) override;
  // Appears whole or not at all. Throws GraphError where the system refuses, or at 64 MiB.
  void publish(const Entry& entry) const;

  std::filesystem::path path_of(EntryKind kind, const base::Digest& digest) const;

 private:
  void report_fault(const std::filesystem::path& path, const EntryFault& fault);

  std::filesystem::path folder_;
  bool is_writable_;
  Warn warn_;
  std::string_view name_;
};

// A file of a writable folder, and the folders above it. Throws GraphError where the system
// refuses.
void publish_file(const std::filesystem::path& path, std::string_view bytes,
                  base::Flush flush = base::Flush::Each);

// Moves a file that holds `bytes` to folder/bad, where the newest 16 stay for a look at them. If it
// holds something else by now, somebody put a good one in its place, and it stays.
void set_aside(const std::filesystem::path& folder, const std::filesystem::path& file,
               const std::string& bytes);

}  // namespace stof::cache
