#include "compile/kernel_parameters.hpp"

#include <map>
#include <optional>
#include <string_view>

#include <elf.h>

#include "base/byte_view.hpp"

namespace stof::compile {

namespace {

using base::read;
using base::slice;
using Bytes = std::span<const std::byte>;

// The section of that name of an ELF file of 64 bits; empty where there is none.
Bytes find_section(Bytes file, std::string_view name) {
  const auto header = read<Elf64_Ehdr>(file, 0);
  if (!header) {
    return {};
  }
  const auto section = [&](std::uint64_t index) {
    return read<Elf64_Shdr>(slice(file, header->e_shoff, file.size()), index * sizeof(Elf64_Shdr));
  };
  const auto bytes = [&](const Elf64_Shdr& one) { return slice(file, one.sh_offset, one.sh_size); };
  const std::optional<Elf64_Shdr> names = section(header->e_shstrndx);
  for (std::uint64_t i = 0; names && i < header->e_shnum; ++i) {
    const std::optional<Elf64_Shdr> one = section(i);
    const Bytes text = one ? slice(bytes(*names), one->sh_name, name.size() + 1) : Bytes();
    if (text.size() == name.size() + 1 && text.back() == std::byte{0} &&
        std::memcmp(text.data(), name.data(), name.size()) == 0) {
      return bytes(*one);
    }
  }
  return {};
}

// How the section .nv.info.KERNEL lists what the driver must know: an attribute and a short, which
// are all, or, in the last format, are followed by as many bytes as the short says. `cuobjdump
// -elf` prints it; no document describes it.
struct Attribute {
  std::uint8_t format = 0;
  std::uint8_t name = 0;
  std::uint16_t value = 0;
};

constexpr std::uint8_t kSizedFormat = 4;
constexpr std::uint8_t kParameter = 0x17;
constexpr std::uint8_t kLargeParameter = 0x45;  // where all together are of more than 4 KiB

struct Parameter {
  std::uint32_t index = 0;
  std::uint16_t ordinal = 0;
  std::uint16_t offset = 0;
  std::uint32_t layout = 0;  // the size from bit 18 on; of a large one in the bits below 16
};

}  // namespace

std::vector<std::int64_t> parameter_bytes(Bytes cubin, const std::string& kernel) {
  std::map<std::uint16_t, std::int64_t> sizes;  // by ordinal: they may come in any order
  Bytes rest = find_section(cubin, ".nv.info." + kernel);
  while (const auto attribute = read<Attribute>(rest, 0)) {
    const std::uint64_t size = attribute->format == kSizedFormat ? attribute->value : 0;
    const auto parameter = read<Parameter>(slice(rest, sizeof(Attribute), size), 0);
    if (attribute->name == kParameter && parameter) {
      sizes.emplace(parameter->ordinal, parameter->layout >> 18U);
    } else if (attribute->name == kLargeParameter && parameter) {
      sizes.emplace(parameter->ordinal, parameter->layout & 0xffffU);
    }
    rest = slice(rest, sizeof(Attribute) + size, rest.size());
  }
  std::vector<std::int64_t> bytes;
  bytes.reserve(sizes.size());
  for (const auto& [ordinal, size] : sizes) {
    bytes.push_back(size);
  }
  return bytes;
}

}  // namespace stof::compile
