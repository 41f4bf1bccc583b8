#include "cache/memory_layer.hpp"

namespace stof::cache {

std::shared_ptr<const Entry> MemoryLayer::find(EntryKind kind, const base::Digest& digest) {
  const std::lock_guard lock(mutex_);
  const auto place = places_.find({kind, digest});
  if (place == places_.end()) {
    return nullptr;
  }
  entries_.splice(entries_.begin(), entries_, place->second);
  return entries_.front();
}

void MemoryLayer::add(std::shared_ptr<const Entry> entry) {
  const std::lock_guard lock(mutex_);
  const Id id = {entry->kind(), entry->digest()};
  if (const auto old = places_.find(id); old != places_.end()) {
    total_bytes_ -= (*old->second)->bytes().size();
    entries_.erase(old->second);
  }
  total_bytes_ += entry->bytes().size();
  entries_.push_front(std::move(entry));
  places_[id] = entries_.begin();
  while (total_bytes_ > max_bytes_) {
    const Entry& oldest = *entries_.back();
    total_bytes_ -= oldest.bytes().size();
    places_.erase({oldest.kind(), oldest.digest()});
    entries_.pop_back();
  }
}

}  // namespace stof::cache
