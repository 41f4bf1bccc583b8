#include "cache/memory_layer.hpp"

#include <doctest/doctest.h>

using stof::cache::Entry;
using stof::cache::EntryContents;
using stof::cache::EntryKind;
using stof::cache::MemoryLayer;
using stof::kernel::Key;

namespace {

std::shared_ptr<const Entry> make(const char* key, EntryKind kind = EntryKind::Kernel,
                                  const std::string& payload = "payload") {
  return std::make_shared<const Entry>(kind, Key(key), EntryContents{.payload = payload});
}

}  // namespace

TEST_CASE("what was added is found, by kind and digest") {
  MemoryLayer memory(1 << 20);
  const auto entry = make("a");
  memory.add(entry);
  CHECK(memory.find(EntryKind::Kernel, Key("a").digest()) == entry);
  CHECK(memory.find(EntryKind::Plan, Key("a").digest()) == nullptr);
  CHECK(memory.find(EntryKind::Kernel, Key("b").digest()) == nullptr);
}

TEST_CASE("a second entry of a key replaces the first") {
  MemoryLayer memory(1 << 20);
  memory.add(make("a"));
  const auto second = make("a", EntryKind::Kernel, "other");
  memory.add(second);
  CHECK(memory.find(EntryKind::Kernel, Key("a").digest()) == second);
}

TEST_CASE("beyond its bytes it forgets what was not used for longest") {
  const std::size_t entry_bytes = make("a")->bytes().size();
  MemoryLayer memory(2 * entry_bytes);
  const auto a = make("a");
  memory.add(a);
  memory.add(make("b"));
  CHECK(memory.find(EntryKind::Kernel, Key("a").digest()) != nullptr);  // so b is older now
  memory.add(make("c"));
  CHECK(memory.find(EntryKind::Kernel, Key("a").digest()) == a);
  CHECK(memory.find(EntryKind::Kernel, Key("b").digest()) == nullptr);
  CHECK(memory.find(EntryKind::Kernel, Key("c").digest()) != nullptr);
}

TEST_CASE("an entry that is larger than all of it is not kept") {
  MemoryLayer memory(100);
  memory.add(make("a", EntryKind::Kernel, std::string(200, 'x')));
  CHECK(memory.find(EntryKind::Kernel, Key("a").digest()) == nullptr);
}
