#include "cache/cache.hpp"

#include <fstream>
#include <utility>

#include <doctest/doctest.h>

#include "temporary_folder.hpp"

using stof::cache::Cache;
using stof::cache::CacheOptions;
using stof::cache::default_options;
using stof::cache::Entry;
using stof::cache::EntryKind;
using stof::cache::Layer;
using stof::cache::ProcessLock;
using stof::kernel::Key;
using stof::test::TemporaryFolder;
namespace fs = std::filesystem;

namespace {

Entry make(const std::string& key, const std::string& payload = "payload") {
  return {EntryKind::Kernel, Key(key), {.payload = payload}};
}

// Where a key is found: the name of the layer, or "".
std::string layer_of(Cache& cache, const std::string& key) {
  const auto hit = cache.find(EntryKind::Kernel, Key(key));
  return hit ? std::string(hit->layer) : "";
}

// A pack that has one entry, which it gives for whatever it is asked.
class OneEntryPack : public Layer {
 public:
  explicit OneEntryPack(Entry entry) : entry_(std::make_shared<const Entry>(std::move(entry))) {}
  std::string_view name() const override { return "pack"; }
  std::shared_ptr<const Entry> find(EntryKind, const stof::base::Digest&) override {
    return entry_;
  }

 private:
  std::shared_ptr<const Entry> entry_;
};

CacheOptions at(const fs::path& folder) {
  CacheOptions options;
  options.directory = folder;
  return options;
}

}  // namespace

TEST_CASE("memory is asked first, then the disk, and what is found stays in memory") {
  const TemporaryFolder folder;
  Cache first(at(folder / "cache"));
  CHECK(layer_of(first, "a").empty());
  const auto added = first.add(make("a"));
  CHECK(added->payload() == "payload");
  CHECK(layer_of(first, "a") == "memory");
  CHECK(first.find(EntryKind::Kernel, Key("a"))->entry == added);

  Cache second(at(folder / "cache"));
  CHECK(layer_of(second, "a") == "disk");
  CHECK(layer_of(second, "a") == "memory");
  CHECK(second.find(EntryKind::Kernel, Key("a").digest())->entry->bytes() == added->bytes());
}

TEST_CASE("a cache that was moved or copied is as good as before") {
  const TemporaryFolder folder;
  Cache(at(folder / "here")).add(make("a"));
  fs::copy(folder / "here", folder / "copy", fs::copy_options::recursive);
  fs::rename(folder / "here", folder / "there");
  fs::permissions(folder / "copy", fs::perms(0700));
  Cache moved(at(folder / "there"));
  Cache copied(at(folder / "copy"));
  CHECK(layer_of(moved, "a") == "disk");
  CHECK(layer_of(copied, "a") == "disk");
}

TEST_CASE("packs are asked last") {
  const TemporaryFolder folder;
  CacheOptions options = at(folder / "cache");
  options.packs.push_back(std::make_unique<OneEntryPack>(make("a")));
  Cache cache(std::move(options));
  CHECK(layer_of(cache, "a") == "pack");
  CHECK(layer_of(cache, "a") == "memory");
  Cache without(at(folder / "cache"));
  CHECK(layer_of(without, "a").empty());  // a pack is not copied to the disk
}

TEST_CASE("an entry of another key is never given, even if the digests are equal") {
  CacheOptions options;
  options.packs.push_back(std::make_unique<OneEntryPack>(make("other")));
  Cache cache(std::move(options));
  CHECK_FALSE(cache.find(EntryKind::Kernel, Key("mine")));
}

TEST_CASE("without a directory everything is in memory") {
  Cache cache{CacheOptions()};
  cache.add(make("a"));
  CHECK(layer_of(cache, "a") == "memory");
  cache.tuning().add({.problem = "p", .config = "c", .result = 1});
  CHECK(cache.tuning().find("p").size() == 1);
  CHECK(cache.lock(Key("a").digest()).state() == ProcessLock::State::Unavailable);
}

TEST_CASE("the directory says that it is a cache, to backup programs") {
  const TemporaryFolder folder;
  const Cache cache(at(folder / "cache"));
  std::ifstream tag(folder / "cache/v1/CACHEDIR.TAG");
  std::string line;
  std::getline(tag, line);
  CHECK(line == "Signature: 8a477f597d28d172789f06886806bc55");
}

TEST_CASE("processes lock each other out where they share a disk") {
  const TemporaryFolder folder;
  CacheOptions options = at(folder / "cache");
  options.lock_folder = folder.path();
  const Cache cache(std::move(options));
  const ProcessLock lock = cache.lock(Key("a").digest());
  CHECK(lock.state() == ProcessLock::State::Held);
  CHECK(cache.lock(Key("a").digest()).state() == ProcessLock::State::Busy);
}

TEST_CASE("the environment says where the cache is") {
  stof::base::Environment environment;
  environment.cache_dir = "/a/b";
  CHECK(default_options(environment).directory == "/a/b");
  environment.cache_dir.reset();
  CHECK(default_options(environment).directory == std::nullopt);
}

TEST_CASE("a read-only cache writes nothing") {
  const TemporaryFolder folder;
  const auto read_only = [&] {
    CacheOptions options = at(folder / "cache");
    options.is_read_only = true;
    options.lock_folder = folder.path();
    return options;
  };
  Cache empty(read_only());
  empty.add(make("a"));
  CHECK(layer_of(empty, "a") == "memory");
  CHECK_FALSE(fs::exists(folder / "cache"));

  Cache(at(folder / "cache")).add(make("a"));
  Cache cache(read_only());
  CHECK(layer_of(cache, "a") == "disk");
  cache.add(make("b"));
  cache.tuning().add({.problem = "p", .config = "c", .result = 1});
  CHECK(cache.lock(Key("b").digest()).state() == ProcessLock::State::Unavailable);
  Cache other(at(folder / "cache"));
  CHECK(layer_of(other, "b").empty());
  CHECK(other.tuning().find("p").empty());
}
