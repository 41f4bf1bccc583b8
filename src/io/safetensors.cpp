#include "io/safetensors.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/files.hpp"
#include "base/text.hpp"
#include "io/safetensors_header.hpp"
#include "stof/error.hpp"

namespace stof::io {

static_assert(std::endian::native == std::endian::little);

namespace {

using base::quote;

struct Start {
  std::string_view bytes;
  std::string_view meaning;
};

// How files begin that are mistaken for safetensors.
constexpr std::array<Start, 9> kStarts = {{
    {"PK\x03\x04", "a zip archive, such as PyTorch's .pt and .bin or NumPy's .npz"},
    {"\x80\x02", "a Python pickle, such as older .pt and .bin of PyTorch"},
    {"GGUF", "a GGUF file"},
    {"\x89HDF", "an HDF5 file, such as .h5 of Keras"},
    {"\x93NUMPY", "a NumPy array"},
    {"\x1F\x8B", "a gzip archive"},
    {"version https://git-lfs", "a pointer of Git LFS, which does not hold the file itself"},
    {"<", "a web page"},
    {"{", "JSON text, such as the index of a model in several files"},
}};

// What the file is instead, as far as its first bytes tell.
std::string found_instead(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto* const found = std::ranges::find_if(
      kStarts, [&](const Start& start) { return text.starts_with(start.bytes); });
  return found == kStarts.end() ? "" : fmt::format("; it begins like {}", found->meaning);
}

// Where the data begins, once the header is known to fit.
std::size_t find_data(std::span<const std::byte> bytes) {
  if (bytes.size() < kSafetensorsLengthBytes) {
    throw GraphError(fmt::format("has {} bytes, the length of a header takes {}{}", bytes.size(),
                                 kSafetensorsLengthBytes, found_instead(bytes)));
  }
  std::uint64_t length = 0;
  for (std::size_t i = kSafetensorsLengthBytes; i-- > 0;) {
    length = length << 8 | static_cast<std::uint64_t>(bytes[i]);
  }
  if (length > kMaxSafetensorsHeaderBytes) {
    throw GraphError(fmt::format("has a header of {} bytes, over the limit of {}{}", length,
                                 kMaxSafetensorsHeaderBytes, found_instead(bytes)));
  }
  if (length > bytes.size() - kSafetensorsLengthBytes) {
    throw GraphError(fmt::format("has a header of {} bytes, {} of them there{}", length,
                                 bytes.size() - kSafetensorsLengthBytes, found_instead(bytes)));
  }
  return kSafetensorsLengthBytes + static_cast<std::size_t>(length);
}

SafetensorsHeader read_header(std::span<const std::byte> bytes, std::size_t data_begin) {
  const std::string_view json(reinterpret_cast<const char*>(bytes.data()) + kSafetensorsLengthBytes,
                              data_begin - kSafetensorsLengthBytes);
  if (!json.starts_with('{')) {
    throw GraphError("header does not begin with {");
  }
  return parse_safetensors_header(json, bytes.size() - data_begin);
}

}  // namespace

struct SafetensorsFile::Content {
  std::string name;
  std::optional<base::MappedFile> file;  // where the bytes are not the caller's
  std::span<const std::byte> data;
  SafetensorsHeader header;
  std::mutex mutex;
  std::map<std::string, HostTensor, std::less<>> copies;  // of misaligned tensors
};

SafetensorsFile::SafetensorsFile(std::unique_ptr<Content> content) : content_(std::move(content)) {}
SafetensorsFile::~SafetensorsFile() = default;
SafetensorsFile::SafetensorsFile(SafetensorsFile&& other) noexcept = default;
SafetensorsFile& SafetensorsFile::operator=(SafetensorsFile&& other) noexcept = default;

SafetensorsFile SafetensorsFile::open(const std::filesystem::path& path) {
  base::MappedFile file(path);
  SafetensorsFile result = parse(file.bytes(), path.string());
  result.content_->file = std::move(file);
  return result;
}

SafetensorsFile SafetensorsFile::parse(std::span<const std::byte> bytes, const std::string& name) {
  auto content = std::make_unique<Content>();
  content->name = name;
  try {
    const std::size_t data_begin = find_data(bytes);
    content->header = read_header(bytes, data_begin);
    content->data = bytes.subspan(data_begin);
  } catch (const GraphError& error) {
    throw GraphError(fmt::format("safetensors: {}: {}", name, error.what()));
  }
  return SafetensorsFile(std::move(content));
}

std::vector<std::string> SafetensorsFile::names() const {
  std::vector<std::string> names;
  names.reserve(content_->header.entries.size());
  for (const auto& [name, entry] : content_->header.entries) {
    names.push_back(name);
  }
  return names;
}

bool SafetensorsFile::contains(std::string_view name) const {
  return content_->header.entries.contains(name);
}

const std::map<std::string, std::string, std::less<>>& SafetensorsFile::metadata() const {
  return content_->header.metadata;
}

TensorView SafetensorsFile::view(std::string_view name) const {
  const auto found = content_->header.entries.find(name);
  if (found == content_->header.entries.end()) {
    throw GraphError(
        fmt::format("safetensors: {}: there is no tensor {}", content_->name, quote(name)));
  }
  const SafetensorsEntry& entry = found->second;
  const std::optional<DType> dtype = dtype_from_safetensors(entry.dtype);
  if (!dtype) {
    throw GraphError(
        fmt::format("safetensors: {}: {} is of dtype {}, none of F16, BF16, F32, I32, I64, U8, "
                    "BOOL; convert it "
                    "first",
                    content_->name, quote(name), quote(entry.dtype)));
  }
  // The library only reads through the view of an input.
  TensorView view = {.data = const_cast<std::byte*>(content_->data.data() + entry.begin),
                     .dtype = *dtype,
                     .shape = entry.shape};
  if (reinterpret_cast<std::uintptr_t>(view.data) % static_cast<std::size_t>(size_bytes(*dtype)) ==
      0) {
    return view;
  }
  const std::scoped_lock lock(content_->mutex);
  auto copy = content_->copies.find(name);
  if (copy == content_->copies.end()) {
    copy = content_->copies.emplace(name, HostTensor(view)).first;
  }
  return copy->second.view();
}

}  // namespace stof::io
