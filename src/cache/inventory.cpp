#include "cache/inventory.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <system_error>
#include <tuple>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "base/files.hpp"
#include "cache/disk_layer.hpp"
#include "stof/error.hpp"

namespace stof::cache {

namespace fs = std::filesystem;

namespace {

constexpr std::array kKinds = {EntryKind::Kernel, EntryKind::Plan, EntryKind::Rendering,
                               EntryKind::Verdict};

// The entry of a file, or why it is none.
std::variant<Entry, std::string> read(const InventoryItem& item) {
  std::variant<Entry, EntryFault> parsed = Entry::parse(base::read_file(item.path, kMaxEntryBytes));
  if (const auto* fault = std::get_if<EntryFault>(&parsed)) {
    return fault->reason;
  }
  auto& entry = std::get<Entry>(parsed);
  if (entry.kind() != item.kind || entry.digest().hex() != item.digest) {
    return fmt::format("it is the entry of {} {}", name(entry.kind()), entry.digest().hex());
  }
  return std::move(entry);
}

std::uint64_t number(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) {
    value = value << 8 | static_cast<unsigned char>(bytes[i]);
  }
  return value;
}

}  // namespace

std::string_view name(EntryKind kind) {
  switch (kind) {
    case EntryKind::Kernel:
      return "kernel";
    case EntryKind::Plan:
      return "plan";
    case EntryKind::Verdict:
      return "verdict";
    default:
      return "rendering";
  }
}

std::vector<InventoryItem> list_entries(const fs::path& directory) {
  std::vector<InventoryItem> items;
  for (const EntryKind kind : kKinds) {
    const fs::path folder = directory / kLayout / folder_name(kind);
    std::error_code error;
    for (fs::recursive_directory_iterator i(folder, error); i != fs::recursive_directory_iterator();
         i.increment(error)) {
      const std::string digest = i->path().stem().string();
      if (i->path().extension() == ".stof" && base::Digest::from_hex(digest)) {
        items.push_back({.kind = kind,
                         .digest = digest,
                         .path = i->path(),
                         .size_bytes = static_cast<std::int64_t>(i->file_size(error))});
      }
    }
  }
  std::ranges::sort(items, {},
                    [](const InventoryItem& item) { return std::tie(item.kind, item.digest); });
  return items;
}

std::optional<std::string> entry_fault(const InventoryItem& item) {
  try {
    const std::variant<Entry, std::string> entry = read(item);
    const auto* fault = std::get_if<std::string>(&entry);
    return fault == nullptr ? std::nullopt : std::optional(*fault);
  } catch (const GraphError& error) {
    return error.what();
  }
}

Entry read_entry(const InventoryItem& item) {
  std::variant<Entry, std::string> entry = read(item);
  if (const auto* fault = std::get_if<std::string>(&entry)) {
    throw GraphError(fmt::format("cache: {}: {}", item.path.string(), *fault));
  }
  return std::get<Entry>(std::move(entry));
}

std::vector<KeyField> key_fields(std::string_view material) {
  constexpr std::size_t kTagBytes = 2, kLengthBytes = 4;
  std::vector<KeyField> fields;
  while (material.size() >= kTagBytes + kLengthBytes) {
    const auto tag = static_cast<std::uint16_t>(number(material.substr(0, kTagBytes)));
    const auto length = static_cast<std::size_t>(number(material.substr(kTagBytes, kLengthBytes)));
    material.remove_prefix(kTagBytes + kLengthBytes);
    fields.push_back({.tag = tag, .bytes = material.substr(0, length)});
    material.remove_prefix(std::min(length, material.size()));
  }
  return fields;
}

}  // namespace stof::cache
