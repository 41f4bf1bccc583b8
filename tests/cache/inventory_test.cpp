#include "cache/inventory.hpp"

#include <filesystem>
#include <string>
#include <utility>

#include <doctest/doctest.h>

#include "base/files.hpp"
#include "cache/cache.hpp"
#include "error_of.hpp"
#include "temporary_folder.hpp"

namespace stof::cache {
namespace {

namespace fs = std::filesystem;

kernel::Key key(const std::string& name) {
  return kernel::KeyWriter().field(1, "schema").field(300, name).field(2, "").key();
}

// A directory with a kernel and a rendering.
struct Directory {
  Directory() {
    CacheOptions options;
    options.directory = folder.path();
    Cache cache(std::move(options));
    cache.add({EntryKind::Kernel, key("a"), {.payload = "cubin", .meta = "{}", .log = "fine"}});
    cache.add({EntryKind::Rendering, key("b"), {.payload = "to a"}});
  }

  test::TemporaryFolder folder;
};

TEST_CASE("inventory: lists entries by kind") {
  const Directory directory;
  const auto items = list_entries(directory.folder.path());
  REQUIRE(items.size() == 2);
  CHECK(name(items[0].kind) == "kernel");
  CHECK(items[0].digest == key("a").digest().hex());
  CHECK(items[0].size_bytes == static_cast<std::int64_t>(fs::file_size(items[0].path)));
  CHECK(name(items[1].kind) == "rendering");
  CHECK(items[1].digest == key("b").digest().hex());
  CHECK(list_entries("/nowhere").empty());
}

TEST_CASE("inventory: leaves out what is no entry") {
  const Directory directory;
  const fs::path folder = list_entries(directory.folder.path())[0].path.parent_path();
  base::write_file_atomically(folder / "notes.txt", "x");
  base::write_file_atomically(folder / "00.stof.0123456789abcdef.tmp", "x");
  CHECK(list_entries(directory.folder.path()).size() == 2);
}

TEST_CASE("inventory: reads an entry and the fields of its key") {
  const Directory directory;
  const InventoryItem item = list_entries(directory.folder.path())[0];
  CHECK_FALSE(entry_fault(item).has_value());
  const Entry entry = read_entry(item);
  CHECK(entry.payload() == "cubin");
  const auto fields = key_fields(entry.key_material());
  REQUIRE(fields.size() == 3);
  CHECK(fields[0].tag == 1);
  CHECK(fields[0].bytes == "schema");
  CHECK(fields[1].tag == 300);
  CHECK(fields[1].bytes == "a");
  CHECK(fields[2].bytes.empty());
}

TEST_CASE("inventory: says what is wrong with a file") {
  const Directory directory;
  InventoryItem item = list_entries(directory.folder.path())[0];
  fs::resize_file(item.path, fs::file_size(item.path) - 1);
  REQUIRE(entry_fault(item).has_value());
  CHECK(test::error_of([&] { read_entry(item); }) ==
        "cache: " + item.path.string() + ": " + *entry_fault(item));
  // The entry of another name.
  const InventoryItem other = list_entries(directory.folder.path())[1];
  item.kind = EntryKind::Rendering;
  item.path = other.path;
  CHECK(entry_fault(item) == "it is the entry of rendering " + other.digest);
  item.path = "/nowhere";
  CHECK(entry_fault(item)->starts_with("file: cannot open /nowhere"));
}

TEST_CASE("inventory: key material that is cut gives what is there") {
  const std::string material = key("abc").material();
  for (std::size_t size = 0; size < material.size(); ++size) {
    for (const KeyField& field : key_fields(material.substr(0, size))) {
      CHECK(field.bytes.size() <= size);
    }
  }
}

}  // namespace
}  // namespace stof::cache
