#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

namespace stof::cuda {

// The GNU build-id note of an ELF file of 64 bits, as lower-case hexadecimal digits; nothing where
// there is none, whatever the bytes are.
std::optional<std::string> elf_build_id(std::span<const std::byte> file);

}  // namespace stof::cuda
