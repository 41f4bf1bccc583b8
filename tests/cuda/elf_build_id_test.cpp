#include "cuda/elf_build_id.hpp"

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <elf.h>

using stof::cuda::elf_build_id;

namespace {

using Bytes = std::vector<std::byte>;

template <typename T>
void append(Bytes& bytes, const T& value) {
  const auto* const data = reinterpret_cast<const std::byte*>(&value);
  bytes.insert(bytes.end(), data, data + sizeof value);
}

void append_text(Bytes& bytes, std::string text) {
  text.resize((text.size() + 3) / 4 * 4, '\0');
  for (const char c : text) {
    bytes.push_back(static_cast<std::byte>(c));
  }
}

void append_note(Bytes& bytes, const std::string& owner, Elf64_Word type, const std::string& data) {
  append(bytes, Elf64_Nhdr{.n_namesz = static_cast<Elf64_Word>(owner.size() + 1),
                           .n_descsz = static_cast<Elf64_Word>(data.size()),
                           .n_type = type});
  append_text(bytes, owner + '\0');
  append_text(bytes, data);
}

// A header, a segment that is no note, and one that holds these notes.
Bytes elf_file(const Bytes& notes) {
  Elf64_Ehdr header = {};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_phoff = sizeof header;
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = 2;
  Elf64_Phdr code = {};
  code.p_type = PT_LOAD;
  Elf64_Phdr note = {};
  note.p_type = PT_NOTE;
  note.p_offset = sizeof header + 2 * sizeof note;
  note.p_filesz = notes.size();
  Bytes file;
  append(file, header);
  append(file, code);
  append(file, note);
  file.insert(file.end(), notes.begin(), notes.end());
  return file;
}

}  // namespace

TEST_CASE("the build-id is found among other notes") {
  Bytes notes;
  append_note(notes, "GNU", NT_GNU_ABI_TAG, "0123");
  append_note(notes, "CUDA1", NT_GNU_BUILD_ID, "no");
  append_note(notes, "GNU", NT_GNU_BUILD_ID, "\x01\xfe\x80");
  CHECK(elf_build_id(elf_file(notes)) == "01fe80");
}

TEST_CASE("a file without the note, or that is none of ELF, has no build-id") {
  Bytes notes;
  append_note(notes, "GNU", NT_GNU_ABI_TAG, "0123");
  CHECK(elf_build_id(elf_file(notes)) == std::nullopt);
  CHECK(elf_build_id({}) == std::nullopt);
  CHECK(elf_build_id(Bytes(1000)) == std::nullopt);
}

TEST_CASE("no cut and no flipped byte leads out of the file") {
  Bytes notes;
  append_note(notes, "GNU", NT_GNU_BUILD_ID, "0123456789");
  const Bytes file = elf_file(notes);
  for (std::size_t size = 0; size < file.size(); ++size) {
    // On the heap and of that very size, so that ASan sees a read beyond it.
    const Bytes cut(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size));
    const auto id = elf_build_id(cut);
    CHECK((id == std::nullopt || size + 2 >= file.size()));
  }
  for (std::size_t at = 0; at < file.size(); ++at) {
    Bytes changed = file;
    changed[at] = std::byte{0xff};
    CHECK_NOTHROW(elf_build_id(changed));
  }
}
