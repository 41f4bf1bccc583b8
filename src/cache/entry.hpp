#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "kernel/key.hpp"

namespace stof::cache {

// What an entry holds. The numbers are in every file.
enum class EntryKind : std::uint16_t { Kernel = 1, Plan = 2, Rendering = 3, Verdict = 4 };

struct EntryContents {
  std::string_view payload = {};  // a cubin, a plan, the name of a rendered kernel, JSON
  std::string_view meta = {};     // JSON that describes the payload; may be empty
  std::string_view log = {};      // what the compiler said; may be empty
};

// Bytes that are no entry, and why.
struct EntryFault {
  std::string reason;
  std::string bytes;
};

// One entry as the bytes of its file (cache/README.md), checked; never altered once it is made.
// The views that it gives live as long as it does. The payload is aligned as an ELF image wants.
class Entry {
 public:
  Entry(EntryKind kind, const kernel::Key& key, const EntryContents& contents);

  // The same from a file. Whatever the bytes are, the answer is the entry that somebody wrote or a
  // fault.
  static std::variant<Entry, EntryFault> parse(std::string bytes);

  EntryKind kind() const { return kind_; }
  const base::Digest& digest() const { return digest_; }  // of the key
  std::string_view key_material() const { return section(key_); }
  std::string_view payload() const { return section(payload_); }
  std::string_view meta() const { return section(meta_); }
  std::string_view log() const { return section(log_); }
  const std::string& bytes() const { return bytes_; }

 private:
  struct Section {
    std::size_t offset = 0;
    std::size_t size = 0;
  };

  Entry() = default;
  std::string_view section(Section s) const {
    return std::string_view(bytes_).substr(s.offset, s.size);
  }

  std::string bytes_;
  EntryKind kind_ = EntryKind::Kernel;
  base::Digest digest_;
  Section payload_, key_, meta_, log_;
};

}  // namespace stof::cache
