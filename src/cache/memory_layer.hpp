#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <mutex>
#include <utility>

#include "cache/layer.hpp"

namespace stof::cache {

// The entries that this process used last, up to a number of bytes.
class MemoryLayer : public Layer {
 public:
  explicit MemoryLayer(std::size_t max_bytes) : max_bytes_(max_bytes) {}

  std::string_view name() const override { return "memory"; }
  std::shared_ptr<const Entry> find(EntryKind kind, const base::Digest& digest) override;
  void add(std::shared_ptr<const Entry> entry);

 private:
  using Id = std::pair<EntryKind, base::Digest>;
  using Entries = std::list<std::shared_ptr<const Entry>>;

  std::size_t max_bytes_;
  std::mutex mutex_;
  std::size_t total_bytes_ = 0;
  Entries entries_;  // the last used first
  std::map<Id, Entries::iterator> places_;
};

}  // namespace stof::cache
