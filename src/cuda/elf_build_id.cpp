#include "cuda/elf_build_id.hpp"

#include <cstdint>
#include <cstring>
#include <string_view>

#include <elf.h>
#include <fmt/format.h>

#include "base/byte_view.hpp"

namespace stof::cuda {

namespace {

using base::read;
using base::slice;
using Bytes = std::span<const std::byte>;

std::string hex(Bytes bytes) {
  std::string text;
  for (const std::byte byte : bytes) {
    text += fmt::format("{:02x}", static_cast<unsigned>(byte));
  }
  return text;
}

std::uint64_t padded(std::uint32_t size) {
  return (std::uint64_t{size} + 3) / 4 * 4;
}

std::optional<std::string> build_id_in_notes(Bytes notes) {
  constexpr std::string_view kOwner("GNU", sizeof("GNU"));  // with its NUL
  while (const auto note = read<Elf64_Nhdr>(notes, 0)) {
    const Bytes owner = slice(notes, sizeof *note, note->n_namesz);
    const std::uint64_t start = sizeof *note + padded(note->n_namesz);
    const Bytes id = slice(notes, start, note->n_descsz);
    if (note->n_type == NT_GNU_BUILD_ID && owner.size() == kOwner.size() &&
        std::memcmp(owner.data(), kOwner.data(), kOwner.size()) == 0 && !id.empty() &&
        id.size() == note->n_descsz) {
      return hex(id);
    }
    const std::uint64_t next = start + padded(note->n_descsz);
    notes = slice(notes, next, notes.size());
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> elf_build_id(Bytes file) {
  const auto header = read<Elf64_Ehdr>(file, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
      header->e_ident[EI_CLASS] != ELFCLASS64) {
    return std::nullopt;
  }
  for (std::uint64_t i = 0; i < header->e_phnum; ++i) {
    const Bytes table = slice(file, header->e_phoff, file.size());
    const auto segment = read<Elf64_Phdr>(table, i * header->e_phentsize);
    if (segment && segment->p_type == PT_NOTE) {
      if (auto id = build_id_in_notes(slice(file, segment->p_offset, segment->p_filesz))) {
        return id;
      }
    }
  }
  return std::nullopt;
}

}  // namespace stof::cuda
