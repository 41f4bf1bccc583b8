#pragma once

#include <cstddef>
#include <exception>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "base/environment.hpp"
#include "cache/disk_layer.hpp"
#include "cache/entry.hpp"
#include "cache/layer.hpp"
#include "cache/memory_layer.hpp"
#include "cache/process_lock.hpp"
#include "cache/single_flight.hpp"
#include "cache/tuning_store.hpp"
#include "kernel/key.hpp"

namespace stof::cache {

struct CacheOptions {
  // The user's directory. Without one, and where it cannot be trusted, the cache is in memory only.
  std::optional<std::filesystem::path> directory;
  bool is_read_only = false;  // write nothing to it
  // Where process locks go; nothing: none are taken.
  std::optional<std::filesystem::path> lock_folder;
  std::size_t max_memory_bytes = std::size_t{256} << 20;
  std::vector<std::unique_ptr<Layer>> packs;  // asked last, in this order
  // Nothing: the log.
  Warn on_warning;
};

// The options that the environment asks for.
CacheOptions default_options(const base::Environment& environment);

// What was compiled, planned and measured before: memory, then the user's directory, then packs.
// Thread-safe. Nothing that is wrong with a disk is an error here: it is a miss or an entry that is
// not kept, and a warning, at most one for writing.
class Cache {
 public:
  struct Hit {
    std::shared_ptr<const Entry> entry;
    std::string_view layer;  // its name
  };

  explicit Cache(CacheOptions options);

  // By the whole key: never another's entry.
  std::optional<Hit> find(EntryKind kind, const kernel::Key& key);
  // By the digest, for who found it in an entry and never made the key.
  std::optional<Hit> find(EntryKind kind, const base::Digest& digest);
  // Keeps an entry in memory and, where it can, on disk. Use what this returns, not a new look.
  std::shared_ptr<const Entry> add(Entry entry);

  TuningStore& tuning() { return *tuning_; }

  // For threads that want one entry at the same time: one of them makes it.
  SingleFlight<Hit>& flights() { return flights_; }

  // Why something cannot be made, kept in memory alone: the next process tries again.
  void add_failure(const base::Digest& digest, std::exception_ptr failure);
  std::exception_ptr find_failure(const base::Digest& digest);  // null where there is none

  // A try to be the only process of this machine that makes an entry. Unavailable where nothing
  // would come of it, since entries cannot be handed over on disk.
  ProcessLock lock(const base::Digest& digest) const;

 private:
  std::optional<Hit> find(EntryKind kind, const base::Digest& digest, const kernel::Key* key);

  Warn warn_of_reading_;
  Warn warn_of_writing_;
  MemoryLayer memory_;
  std::unique_ptr<DiskLayer> disk_;  // null: memory only
  std::vector<std::unique_ptr<Layer>> packs_;
  std::unique_ptr<TuningStore> tuning_;
  std::optional<std::filesystem::path> lock_folder_;
  bool is_writable_ = false;
  SingleFlight<Hit> flights_;
  std::mutex failures_mutex_;
  std::map<base::Digest, std::exception_ptr> failures_;
};

}  // namespace stof::cache
