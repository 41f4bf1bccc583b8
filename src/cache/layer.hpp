#pragma once

#include <memory>
#include <string_view>

#include "cache/entry.hpp"

namespace stof::cache {

// One place where entries are looked for: memory, the user's directory, a pack that ships with an
// application. May be called from any thread, and never throws: what is wrong with a layer is a
// miss.
class Layer {
 public:
  virtual ~Layer() = default;

  // "memory", "disk": for a person to read.
  virtual std::string_view name() const = 0;
  // An entry of that kind whose key has that digest, or null. Shared, since it stays in memory for
  // the next who asks, and may leave it while the first still uses it.
  virtual std::shared_ptr<const Entry> find(EntryKind kind, const base::Digest& digest) = 0;
};

}  // namespace stof::cache
