#include "cache/disk_layer.hpp"

#include <algorithm>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/files.hpp"
#include "cache/private_folder.hpp"
#include "stof/error.hpp"

namespace stof::cache {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kMaxBadFiles = 16;

void keep_newest(const fs::path& folder, std::size_t count) {
  std::error_code ignored;
  std::vector<std::pair<fs::file_time_type, fs::path>> files;
  for (fs::directory_iterator i(folder, ignored); i != fs::directory_iterator();
       i.increment(ignored)) {
    files.emplace_back(fs::last_write_time(i->path(), ignored), i->path());
  }
  std::ranges::sort(files, std::ranges::greater());
  for (std::size_t i = count; i < files.size(); ++i) {
    fs::remove(files[i].second, ignored);
  }
}

}  // namespace

std::string_view folder_name(EntryKind kind) {
  switch (kind) {
    case EntryKind::Kernel:
      return "kernels";
    case EntryKind::Plan:
      return "plans";
    case EntryKind::Verdict:
      return "verdicts";
    default:
      return "renderings";
  }
}

void set_aside(const fs::path& folder, const fs::path& file, const std::string& bytes) {
  try {
    if (base::read_file_if_exists(file, bytes.size()) != bytes) {
      return;
    }
  } catch (const GraphError&) {
    return;  // it is longer by now
  }
  std::error_code ignored;
  const fs::path bad = folder / "bad";
  fs::create_directory(bad, ignored);
  fs::last_write_time(file, fs::file_time_type::clock::now(), ignored);
  fs::rename(file, bad / file.filename(), ignored);
  keep_newest(bad, kMaxBadFiles);
}

void publish_file(const fs::path& path, std::string_view bytes, base::Flush flush) {
  if (const std::optional<std::string> fault =
          make_private_folder(path.parent_path(), FolderUse::Files)) {
    throw GraphError(*fault);
  }
  base::write_file_atomically(path, bytes, flush);
}

DiskLayer::DiskLayer(fs::path folder, bool is_writable, Warn warn, std::string_view name)
    : folder_(std::move(folder)), is_writable_(is_writable), warn_(std::move(warn)), name_(name) {}

fs::path DiskLayer::path_of(EntryKind kind, const base::Digest& digest) const {
  const std::string name = digest.hex();
  return folder_ / folder_name(kind) / name.substr(0, 2) / (name + ".stof");
}

std::shared_ptr<const Entry> DiskLayer::find(EntryKind kind, const base::Digest& digest) {
  const fs::path path = path_of(kind, digest);
  std::optional<std::string> bytes;
  try {
    bytes = base::read_file_if_exists(path, kMaxEntryBytes);
  } catch (const GraphError& error) {
    warn_(fmt::format("cache: an entry is lost: {}", error.what()));
  }
  if (!bytes) {
    return nullptr;
  }
  std::variant<Entry, EntryFault> parsed = Entry::parse(*std::move(bytes));
  if (auto* entry = std::get_if<Entry>(&parsed)) {
    if (entry->kind() == kind && entry->digest() == digest) {
      return std::make_shared<const Entry>(std::move(*entry));
    }
    parsed = EntryFault{.reason = "it is the entry of another name", .bytes = entry->bytes()};
  }
  report_fault(path, std::get<EntryFault>(parsed));
  return nullptr;
}

void DiskLayer::report_fault(const fs::path& path, const EntryFault& fault) {
  warn_(fmt::format("cache: {} is not used: {}", path.string(), fault.reason));
  if (is_writable_) {
    set_aside(folder_, path, fault.bytes);
  }
}

void DiskLayer::publish(const Entry& entry) const {
  if (entry.bytes().size() > kMaxEntryBytes) {
    throw GraphError(
        fmt::format("{} bytes are more than {}, the limit", entry.bytes().size(), kMaxEntryBytes));
  }
  publish_file(path_of(entry.kind(), entry.digest()), entry.bytes());
}

}  // namespace stof::cache
