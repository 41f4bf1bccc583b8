#include "io/npy.hpp"

#include <array>
#include <bit>
#include <optional>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/files.hpp"
#include "base/text.hpp"
#include "io/npy_header.hpp"
#include "stof/error.hpp"

namespace stof::io {

static_assert(std::endian::native == std::endian::little);

namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kMaxRank = 32;            // NPY_MAXDIMS of NumPy 1
constexpr std::size_t kMaxHeaderBytes = 65535;  // what version 1 can say
constexpr std::size_t kAlignment = 64;

struct Descr {
  std::string_view text;  // as numpy.dtype.str
  DType dtype;
};

constexpr std::array<Descr, 6> kDescrs = {{
    {"<f2", DType::Float16},
    {"<f4", DType::Float32},
    {"<i4", DType::Int32},
    {"<i8", DType::Int64},
    {"|u1", DType::UInt8},
    {"|b1", DType::Bool},
}};

DType dtype_from_descr(const std::string& descr) {
  for (const Descr& known : kDescrs) {
    if (known.text == descr) {
      return known.dtype;
    }
  }
  const std::string shown = base::quote(descr);
  if (descr.starts_with('>')) {
    throw GraphError(fmt::format("dtype {} is big-endian; in Python, a.astype({}) converts it",
                                 shown, base::quote('<' + descr.substr(1))));
  }
  const bool is_float = descr.starts_with("<f");
  const bool is_integer = descr.starts_with("<i") || descr.starts_with("<u") || descr == "|i1";
  const std::string_view near = is_float ? "float32" : "int64";
  throw GraphError(fmt::format(
      "dtype {} is none of float16, float32, int32, int64, uint8, bool{}", shown,
      is_float || is_integer ? fmt::format("; in Python, a.astype(\"{}\") converts it", near)
                             : ""));
}

// The bytes of the header text and of the elements behind it.
struct Parts {
  std::string_view header;
  std::span<const std::byte> data;
};

Parts split(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!text.starts_with(kMagic) || text.size() < kMagic.size() + 2) {
    throw GraphError("does not begin as an .npy file does");
  }
  const int major = static_cast<unsigned char>(text[kMagic.size()]);
  const int minor = static_cast<unsigned char>(text[kMagic.size() + 1]);
  if (major < 1 || major > 3 || minor != 0) {
    throw GraphError(fmt::format("has version {}.{}, not 1.0, 2.0 or 3.0", major, minor));
  }
  const std::size_t length_size = major == 1 ? 2 : 4;
  const std::size_t begin = kMagic.size() + 2 + length_size;
  if (text.size() < begin) {
    throw GraphError("ends inside the length of its header");
  }
  std::size_t length = 0;
  for (std::size_t i = begin; i-- > begin - length_size;) {
    length = length << 8 | static_cast<unsigned char>(text[i]);
  }
  if (length > kMaxHeaderBytes) {
    throw GraphError(
        fmt::format("has a header of {} bytes, over the limit of {}", length, kMaxHeaderBytes));
  }
  if (length > text.size() - begin) {
    throw GraphError(
        fmt::format("has a header of {} bytes, {} of them there", length, text.size() - begin));
  }
  return {.header = text.substr(begin, length), .data = bytes.subspan(begin + length)};
}

std::vector<std::int64_t> fortran_strides(const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> strides;
  std::int64_t stride = 1;
  for (const std::int64_t extent : shape) {
    strides.push_back(stride);
    stride *= extent;
  }
  return strides;
}

HostTensor parse(std::span<const std::byte> bytes) {
  const Parts parts = split(bytes);
  const NpyHeader header = parse_npy_header(parts.header);
  if (header.shape.size() > kMaxRank) {
    throw GraphError(
        fmt::format("has rank {}, over the limit of {}", header.shape.size(), kMaxRank));
  }
  // The library only reads through this view.
  TensorView view = {.data = const_cast<std::byte*>(parts.data.data()),
                     .dtype = dtype_from_descr(header.descr),
                     .shape = header.shape};
  const std::int64_t count = view.element_count();
  const auto needed = static_cast<std::uint64_t>(count * size_bytes(view.dtype));
  if (needed != parts.data.size()) {
    throw GraphError(fmt::format("[{}] of {} takes {} bytes, {} follow the header",
                                 fmt::join(view.shape, ", "), stof::name(view.dtype), needed,
                                 parts.data.size()));
  }
  if (header.is_fortran_order && count > 0) {
    view.strides = fortran_strides(view.shape);
  }
  return HostTensor(view);
}

}  // namespace

HostTensor parse_npy(std::span<const std::byte> bytes, const std::string& name) {
  try {
    return parse(bytes);
  } catch (const GraphError& error) {
    throw GraphError(fmt::format("npy: {}: {}", name, error.what()));
  }
}

HostTensor read_npy(const std::filesystem::path& path) {
  const base::MappedFile file(path);
  return parse_npy(file.bytes(), path.string());
}

std::string npy_header(DType dtype, std::span<const std::int64_t> shape) {
  if (shape.size() > kMaxRank) {
    throw GraphError(fmt::format("npy: rank {} is over the limit of {}", shape.size(), kMaxRank));
  }
  std::optional<std::string_view> descr;
  for (const Descr& known : kDescrs) {
    descr = known.dtype == dtype ? known.text : descr;
  }
  if (!descr) {
    throw GraphError(fmt::format("npy: NumPy has no {}", stof::name(dtype)));
  }
  std::string dict = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}",
                                 *descr, fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
  const std::size_t before = kMagic.size() + 4;
  const std::size_t unpadded = before + dict.size() + 1;
  dict.append((kAlignment - unpadded % kAlignment) % kAlignment, ' ');
  dict += '\n';
  std::string header(kMagic);
  header += {1, 0, static_cast<char>(dict.size()), static_cast<char>(dict.size() >> 8)};
  return header + dict;
}

void write_npy(const std::filesystem::path& path, const TensorView& view) {
  const HostTensor copy(view);
  const HostTensor tensor = view.dtype == DType::BFloat16 ? copy.cast(DType::Float32) : copy;
  base::AtomicFile file(path);
  file.write(npy_header(tensor.dtype(), tensor.shape()));
  file.write(tensor.bytes());
  file.commit();
}

}  // namespace stof::io
