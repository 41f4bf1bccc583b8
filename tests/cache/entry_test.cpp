#include "cache/entry.hpp"

#include <cstring>
#include <random>

#include <doctest/doctest.h>

using stof::cache::Entry;
using stof::cache::EntryFault;
using stof::cache::EntryKind;
using stof::kernel::Key;
using namespace std::string_literals;

namespace {

constexpr std::size_t kHeaderBytes = 48;
constexpr std::size_t kTrailerBytes = 32;

Entry example() {
  return {EntryKind::Kernel,
          Key("key"),
          {.payload = "cubin\0cubin", .meta = R"({"registers":32})", .log = "ptxas"}};
}

bool is_fault(std::string bytes) {
  return std::holds_alternative<EntryFault>(Entry::parse(std::move(bytes)));
}

std::string reason(std::string bytes) {
  const auto parsed = Entry::parse(std::move(bytes));
  const auto* fault = std::get_if<EntryFault>(&parsed);
  return fault == nullptr ? "" : fault->reason;
}

template <typename T>
void put(std::string& bytes, std::size_t offset, T value) {
  std::memcpy(bytes.data() + offset, &value, sizeof(T));
}

// A file as somebody would write it who knows the format: with a trailer that holds.
std::string with_trailer(std::string bytes) {
  const stof::base::Digest digest = stof::base::hash(bytes);
  const std::size_t start = bytes.size();
  bytes.resize(start + kTrailerBytes);
  put(bytes, start, digest.low);
  put(bytes, start + 8, digest.high);
  put(bytes, start + 16, static_cast<std::uint64_t>(bytes.size()));
  std::memcpy(bytes.data() + start + 24, "stof.ent", 8);
  return bytes;
}

std::string without_trailer(std::string bytes) {
  bytes.resize(bytes.size() - kTrailerBytes);
  return bytes;
}

}  // namespace

TEST_CASE("an entry comes back from its bytes") {
  const std::string large(70000, '\x90');
  for (const EntryKind kind :
       {EntryKind::Kernel, EntryKind::Plan, EntryKind::Rendering, EntryKind::Verdict}) {
    const Key key("some\0material"s);
    const Entry made(kind, key, {.payload = large, .meta = "{}", .log = ""});
    const auto parsed = Entry::parse(made.bytes());
    const auto* entry = std::get_if<Entry>(&parsed);
    REQUIRE(entry != nullptr);
    CHECK(entry->kind() == kind);
    CHECK(entry->digest() == key.digest());
    CHECK(entry->key_material() == key.material());
    CHECK(entry->payload() == large);
    CHECK(entry->meta() == "{}");
    CHECK(entry->log().empty());
    CHECK(reinterpret_cast<std::uintptr_t>(entry->payload().data()) % 16 == 0);
  }
}

// Written out by hand from cache/README.md, so that a file of today can be read for ever.
TEST_CASE("the bytes of an entry are those of its description") {
  const Entry entry(EntryKind::Plan, Key("k"), {.payload = "pp", .meta = "mmm", .log = "llll"});
  const std::string body =
      "stof.ent"
      "\x01\x00\x02\x00\x00\x00\x00\x00"
      "\x02\x00\x00\x00\x00\x00\x00\x00"
      "\x01\x00\x00\x00\x00\x00\x00\x00"
      "\x03\x00\x00\x00\x00\x00\x00\x00"
      "\x04\x00\x00\x00\x00\x00\x00\x00"
      "ppkmmmllll"s;
  CHECK(entry.bytes() == with_trailer(body));
}

TEST_CASE("views stay valid when an entry moves") {
  Entry first = example();
  const Entry second = std::move(first);
  CHECK(second.payload() == "cubin");
  CHECK(second.log() == "ptxas");
}

TEST_CASE("every flip of a bit is found") {
  const std::string good = example().bytes();
  REQUIRE_FALSE(is_fault(good));
  for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ 1 << bit % 8);
    CAPTURE(bit);
    REQUIRE(is_fault(bad));
  }
}

TEST_CASE("every truncation and any extension is found") {
  const std::string good = example().bytes();
  for (std::size_t size = 0; size < good.size(); ++size) {
    CAPTURE(size);
    REQUIRE(is_fault(good.substr(0, size)));
    REQUIRE(is_fault(good.substr(good.size() - size)));
  }
  CHECK(is_fault(good + '\0'));
  CHECK(is_fault(good + good));
}

TEST_CASE("a file is not read beyond its end, whatever its sizes say") {
  const std::string body = without_trailer(example().bytes());
  for (const std::size_t field : {16, 24, 32, 40}) {
    for (const std::uint64_t size : {std::uint64_t{0}, std::uint64_t{1000}, ~std::uint64_t{0},
                                     ~std::uint64_t{0} - 47, std::uint64_t{1} << 63}) {
      std::string bad = body;
      put(bad, field, size);
      CAPTURE(field);
      CAPTURE(size);
      CHECK(is_fault(with_trailer(bad)));
    }
  }
}

TEST_CASE("a fault says what is wrong") {
  const std::string good = example().bytes();
  const std::string body = without_trailer(good);
  CHECK(reason("") == "0 bytes, fewer than an empty entry has");
  CHECK(reason(good.substr(0, good.size() - 1)) == "its end is missing");
  std::string bad = good;
  bad[kHeaderBytes] ^= 1;
  CHECK(reason(bad) == "its checksum does not hold");
  bad = body;
  put(bad, 8, std::uint16_t{2});
  CHECK(reason(with_trailer(bad)) == "it is no entry of format 1");
  bad = body;
  put(bad, 10, std::uint16_t{5});
  CHECK(reason(with_trailer(bad)) == "its kind 5 is unknown");
  bad = body;
  put(bad, 16, std::uint64_t{1000});
  CHECK(reason(with_trailer(bad)) == "its sections are longer than the file");
  CHECK(reason(with_trailer(body + "x")) == "its sections end too early");
}

TEST_CASE("noise is no entry") {
  std::mt19937 random(7);
  for (int i = 0; i < 2000; ++i) {
    std::string noise(random() % 300, '\0');
    for (char& c : noise) {
      c = static_cast<char>(random());
    }
    REQUIRE(is_fault(noise));
  }
}
