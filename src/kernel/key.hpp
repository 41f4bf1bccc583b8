#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/hash.hpp"

namespace stof::kernel {

// Names a thing for ever: the material is every byte that decides what the thing is, the digest is
// its name. Keys are equal where their material is, whatever the digests say.
class Key {
 public:
  explicit Key(std::string material);

  const std::string& material() const { return material_; }
  const base::Digest& digest() const { return digest_; }

  friend bool operator==(const Key& a, const Key& b) { return a.material_ == b.material_; }

 private:
  std::string material_;
  base::Digest digest_;
};

// Writes key material in its canonical form: fields of a tag (16 bits), a length (32 bits) and that
// many bytes, numbers with their lowest byte first. No two lists of fields give the same bytes.
class KeyWriter {
 public:
  KeyWriter& field(std::uint16_t tag, std::string_view bytes);
  Key key() const { return Key(material_); }

 private:
  std::string material_;
};

}  // namespace stof::kernel
