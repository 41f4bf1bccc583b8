#include "kernel/key.hpp"

#include <limits>
#include <utility>

#include "base/check.hpp"

namespace stof::kernel {

namespace {

void append_little_endian(std::string& text, std::uint64_t value, int byte_count) {
  for (int i = 0; i < byte_count; ++i) {
    text += static_cast<char>(value >> (8 * i) & 0xff);
  }
}

}  // namespace

Key::Key(std::string material) : material_(std::move(material)), digest_(base::hash(material_)) {}

KeyWriter& KeyWriter::field(std::uint16_t tag, std::string_view bytes) {
  STOF_CHECK(bytes.size() <= std::numeric_limits<std::uint32_t>::max())
      << "key: field " << tag << " has " << bytes.size() << " bytes";
  append_little_endian(material_, tag, 2);
  append_little_endian(material_, bytes.size(), 4);
  material_ += bytes;
  return *this;
}

}  // namespace stof::kernel
