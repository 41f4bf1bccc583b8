#include "cache/entry.hpp"

#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/check.hpp"

namespace stof::cache {

namespace {

static_assert(std::endian::native == std::endian::little, "files are written as memory is");

constexpr std::array<char, 8> kMagic = {'s', 't', 'o', 'f', '.', 'e', 'n', 't'};
constexpr std::uint16_t kFormat = 1;

// Sections follow in the order of their sizes. 48 bytes, so that the payload is aligned to 16.
struct Header {
  std::array<char, 8> magic = kMagic;
  std::uint16_t format = kFormat;
  std::uint16_t kind = 0;
  std::uint32_t reserved = 0;
  std::uint64_t payload_size = 0;
  std::uint64_t key_size = 0;
  std::uint64_t meta_size = 0;
  std::uint64_t log_size = 0;
};
static_assert(sizeof(Header) == 48);

struct Trailer {
  std::uint64_t digest_low = 0;  // of everything before the trailer
  std::uint64_t digest_high = 0;
  std::uint64_t file_size = 0;
  std::array<char, 8> magic = kMagic;
};
static_assert(sizeof(Trailer) == 32);

template <typename T>
void append(std::string& bytes, const T& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

template <typename T>
T read(std::string_view bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

// What is wrong with the file as a whole, if anything is: every byte of it is looked at.
std::optional<std::string> find_fault(std::string_view bytes) {
  if (bytes.size() < sizeof(Header) + sizeof(Trailer)) {
    return fmt::format("{} bytes, fewer than an empty entry has", bytes.size());
  }
  const auto trailer = read<Trailer>(bytes, bytes.size() - sizeof(Trailer));
  if (trailer.magic != kMagic || trailer.file_size != bytes.size()) {
    return "its end is missing";
  }
  const base::Digest digest = base::hash(bytes.substr(0, bytes.size() - sizeof(Trailer)));
  if (digest != base::Digest{.high = trailer.digest_high, .low = trailer.digest_low}) {
    return "its checksum does not hold";
  }
  const auto header = read<Header>(bytes, 0);
  if (header.magic != kMagic || header.format != kFormat) {
    return fmt::format("it is no entry of format {}", kFormat);
  }
  if (header.kind < static_cast<std::uint16_t>(EntryKind::Kernel) ||
      header.kind > static_cast<std::uint16_t>(EntryKind::Verdict)) {
    return fmt::format("its kind {} is unknown", header.kind);
  }
  std::size_t rest = bytes.size() - sizeof(Header) - sizeof(Trailer);
  for (const std::uint64_t size :
       {header.payload_size, header.key_size, header.meta_size, header.log_size}) {
    if (size > rest) {
      return "its sections are longer than the file";
    }
    rest -= size;
  }
  return rest == 0 ? std::nullopt : std::optional<std::string>("its sections end too early");
}

}  // namespace

Entry::Entry(EntryKind kind, const kernel::Key& key, const EntryContents& contents) {
  const Header header = {.kind = static_cast<std::uint16_t>(kind),
                         .payload_size = contents.payload.size(),
                         .key_size = key.material().size(),
                         .meta_size = contents.meta.size(),
                         .log_size = contents.log.size()};
  std::string bytes;
  bytes.reserve(sizeof(Header) + header.payload_size + header.key_size + header.meta_size +
                header.log_size + sizeof(Trailer));
  append(bytes, header);
  bytes.append(contents.payload).append(key.material()).append(contents.meta).append(contents.log);
  const base::Digest digest = base::hash(bytes);
  append(bytes, Trailer{.digest_low = digest.low,
                        .digest_high = digest.high,
                        .file_size = bytes.size() + sizeof(Trailer)});
  std::variant<Entry, EntryFault> parsed = parse(std::move(bytes));
  STOF_CHECK(std::holds_alternative<Entry>(parsed))
      << "cache: what was written does not parse: " << std::get<EntryFault>(parsed).reason;
  *this = std::get<Entry>(std::move(parsed));
}

std::variant<Entry, EntryFault> Entry::parse(std::string bytes) {
  if (std::optional<std::string> fault = find_fault(bytes)) {
    return EntryFault{.reason = *std::move(fault), .bytes = std::move(bytes)};
  }
  const auto header = read<Header>(bytes, 0);
  Entry entry;
  entry.kind_ = EntryKind{header.kind};
  entry.payload_ = {.offset = sizeof(Header), .size = header.payload_size};
  entry.key_ = {.offset = entry.payload_.offset + header.payload_size, .size = header.key_size};
  entry.meta_ = {.offset = entry.key_.offset + header.key_size, .size = header.meta_size};
  entry.log_ = {.offset = entry.meta_.offset + header.meta_size, .size = header.log_size};
  entry.bytes_ = std::move(bytes);
  entry.digest_ = base::hash(entry.key_material());
  return entry;
}

}  // namespace stof::cache
