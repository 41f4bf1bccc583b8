#include "stof/dtype.hpp"

#include <array>
#include <cstddef>

#include "base/check.hpp"

namespace stof {

namespace {

struct DTypeTraits {
  std::string_view name;
  int size_bytes;
  bool is_floating;
};

// In the order of the enumerators.
constexpr std::array<DTypeTraits, 7> kTraits = {{
    {"float16", 2, true},
    {"bfloat16", 2, true},
    {"float32", 4, true},
    {"int32", 4, false},
    {"int64", 8, false},
    {"uint8", 1, false},
    {"bool", 1, false},
}};

const DTypeTraits& traits(DType dtype) {
  const auto index = static_cast<std::size_t>(dtype);
  STOF_CHECK(index < kTraits.size()) << "dtype " << index;
  return kTraits[index];
}

}  // namespace

int size_bytes(DType dtype) {
  return traits(dtype).size_bytes;
}

std::string_view name(DType dtype) {
  return traits(dtype).name;
}

std::optional<DType> dtype_from_name(std::string_view name) {
  for (std::size_t index = 0; index < kTraits.size(); ++index) {
    if (kTraits[index].name == name) {
      return static_cast<DType>(index);
    }
  }
  return std::nullopt;
}

bool is_floating(DType dtype) {
  return traits(dtype).is_floating;
}

}  // namespace stof
