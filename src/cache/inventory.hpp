#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cache/entry.hpp"

// What lies in a directory of the cache, for people who look into it. Nothing here writes.
namespace stof::cache {

// "kernel", "plan", "rendering", "verdict".
std::string_view name(EntryKind kind);

// One file of an entry.
struct InventoryItem {
  EntryKind kind = EntryKind::Kernel;
  std::string digest;  // as its name says
  std::filesystem::path path;
  std::int64_t size_bytes = 0;
};

// The entries of a directory by kind and digest, unread; none where there is no such directory.
// Files that a process is writing, and others that are none of the cache's, are left out.
std::vector<InventoryItem> list_entries(const std::filesystem::path& directory);

// Why the file of an entry would not be used; nothing for a good one.
std::optional<std::string> entry_fault(const InventoryItem& item);

// The entry in a file. Throws GraphError for one that has a fault.
Entry read_entry(const InventoryItem& item);

// The fields of key material, in order.
struct KeyField {
  std::uint16_t tag = 0;
  std::string_view bytes;  // of the material
};
std::vector<KeyField> key_fields(std::string_view material);

}  // namespace stof::cache
