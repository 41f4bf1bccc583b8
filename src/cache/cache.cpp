#include "cache/cache.hpp"

#include <atomic>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/files.hpp"
#include "base/log.hpp"
#include "cache/private_folder.hpp"
#include "stof/error.hpp"

namespace stof::cache {

namespace fs = std::filesystem;

namespace {

// Tells backup programs to leave the folder out (bford.info/cachedir).
constexpr std::string_view kCacheTag =
    "Signature: 8a477f597d28d172789f06886806bc55\n"
    "# Kernels, plans and measurements that stof made. It makes them again when they are gone.\n";

// A program with rights that its user lacks must not run what that user's environment points to.
bool has_borrowed_rights() {
  return getauxval(AT_SECURE) != 0 || geteuid() != getuid() || getegid() != getgid();
}

// The folder of this layout in a directory that can be trusted, or nothing.
std::optional<fs::path> open_directory(const CacheOptions& options, const Warn& warn) {
  if (!options.directory) {
    return std::nullopt;
  }
  if (has_borrowed_rights()) {
    warn("cache: in memory only, since this process runs with rights that its user lacks");
    return std::nullopt;
  }
  std::error_code error;
  const fs::path root = fs::absolute(*options.directory, error);  // the program may change its own
  if (options.is_read_only && !fs::exists(root / kLayout, error)) {
    return std::nullopt;
  }
  for (const fs::path& folder : {root, root / kLayout}) {
    if (const std::optional<std::string> fault = make_private_folder(folder, FolderUse::Files)) {
      warn(fmt::format("cache: in memory only: {}", *fault));
      return std::nullopt;
    }
  }
  return root / kLayout;
}

void write_cache_tag(const fs::path& folder) {
  std::error_code ignored;
  if (fs::exists(folder / "CACHEDIR.TAG", ignored)) {
    return;
  }
  try {
    base::write_file_atomically(folder / "CACHEDIR.TAG", kCacheTag);
  } catch (const GraphError&) {
    return;  // a first entry will say so
  }
}

Warn or_log(Warn warn) {
  return warn ? std::move(warn) : [](const std::string& text) { base::log("{}", text); };
}

// A disk that cannot be written refuses every entry: one line says it.
Warn only_once(Warn warn) {
  return [warn = std::move(warn),
          is_said = std::make_shared<std::atomic<bool>>(false)](const std::string& text) {
    if (!is_said->exchange(true)) {
      warn(text);
    }
  };
}

}  // namespace

CacheOptions default_options(const base::Environment& environment) {
  CacheOptions options;
  options.directory = environment.cache_dir;
  options.lock_folder = find_lock_folder(environment.runtime_dir);
  return options;
}

Cache::Cache(CacheOptions options)
    : warn_of_reading_(or_log(std::move(options.on_warning))),
      warn_of_writing_(only_once(warn_of_reading_)),
      memory_(options.max_memory_bytes),
      packs_(std::move(options.packs)),
      lock_folder_(std::move(options.lock_folder)) {
  const std::optional<fs::path> folder = open_directory(options, warn_of_reading_);
  if (folder) {
    is_writable_ = !options.is_read_only && access(folder->c_str(), W_OK) == 0;
    disk_ = std::make_unique<DiskLayer>(*folder, is_writable_, warn_of_reading_);
    if (is_writable_) {
      write_cache_tag(*folder);
    } else if (!options.is_read_only) {
      warn_of_writing_(fmt::format("cache: {} cannot be written", folder->string()));
    }
  }
  tuning_ = std::make_unique<TuningStore>(folder, is_writable_, warn_of_reading_, warn_of_writing_);
}

std::optional<Cache::Hit> Cache::find(EntryKind kind, const kernel::Key& key) {
  return find(kind, key.digest(), &key);
}

std::optional<Cache::Hit> Cache::find(EntryKind kind, const base::Digest& digest) {
  return find(kind, digest, nullptr);
}

std::optional<Cache::Hit> Cache::find(EntryKind kind, const base::Digest& digest,
                                      const kernel::Key* key) {
  const auto ask = [&](Layer& layer) -> std::optional<Hit> {
    std::shared_ptr<const Entry> entry = layer.find(kind, digest);
    if (!entry || (key != nullptr && entry->key_material() != key->material())) {
      return std::nullopt;
    }
    if (&layer != &memory_) {
      memory_.add(entry);
    }
    return Hit{.entry = std::move(entry), .layer = layer.name()};
  };
  std::optional<Hit> hit = ask(memory_);
  if (!hit && disk_) {
    hit = ask(*disk_);
  }
  for (std::size_t i = 0; i < packs_.size() && !hit; ++i) {
    hit = ask(*packs_[i]);
  }
  return hit;
}

std::shared_ptr<const Entry> Cache::add(Entry entry) {
  auto shared = std::make_shared<const Entry>(std::move(entry));
  memory_.add(shared);
  if (is_writable_) {
    try {
      disk_->publish(*shared);
    } catch (const GraphError& error) {
      warn_of_writing_(fmt::format("cache: an entry stays in memory: {}", error.what()));
    }
  }
  return shared;
}

void Cache::add_failure(const base::Digest& digest, std::exception_ptr failure) {
  constexpr std::size_t kMaxFailures = 256;  // each holds a source and a log
  const std::lock_guard lock(failures_mutex_);
  if (failures_.size() >= kMaxFailures) {
    failures_.clear();
  }
  failures_[digest] = std::move(failure);
}

std::exception_ptr Cache::find_failure(const base::Digest& digest) {
  const std::lock_guard lock(failures_mutex_);
  const auto failure = failures_.find(digest);
  return failure == failures_.end() ? nullptr : failure->second;
}

ProcessLock Cache::lock(const base::Digest& digest) const {
  return is_writable_ && lock_folder_ ? ProcessLock(*lock_folder_, digest) : ProcessLock();
}

}  // namespace stof::cache
