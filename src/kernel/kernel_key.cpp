#include "kernel/kernel_key.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/check.hpp"

namespace stof::kernel {

namespace {

// Their numbers are part of every key that was ever written: add, but never change.
enum Tag : std::uint16_t {
  Schema = 1,
  Source,
  HeaderName,
  HeaderContent,
  Option,
  NameExpression,
  Architecture,
  Compiler
};

constexpr std::string_view kSchema = "stof kernel 1";

// Options of NVRTC 13 that read or write files, or whose cubin holds the working directory.
constexpr std::array<std::string_view, 15> kOutsideOptions = {"-I",
                                                              "--include-path",
                                                              "-include",
                                                              "--pre-include",
                                                              "-pch",
                                                              "--pch",
                                                              "--create-pch",
                                                              "--use-pch",
                                                              "-lineinfo",
                                                              "--generate-line-info",
                                                              "-time",
                                                              "--time",
                                                              "--fdevice-time-trace",
                                                              "-G",
                                                              "--device-debug"};

void check_option(const std::string& option) {
  STOF_CHECK(option.starts_with('-'))
      << "kernel key: option '" << option << "' does not start with '-'";
  for (const std::string_view outside : kOutsideOptions) {
    STOF_CHECK(!option.starts_with(outside))
        << "kernel key: option '" << option << "' depends on what is not in the key";
  }
}

}  // namespace

Key make_kernel_key(const KernelIdentity& identity) {
  std::vector<HeaderDigest> headers = identity.headers;
  std::vector<std::string> options = identity.options;
  std::ranges::sort(headers, {}, &HeaderDigest::name);
  std::ranges::sort(options);
  STOF_CHECK(std::ranges::adjacent_find(headers, {}, &HeaderDigest::name) == headers.end())
      << "kernel key: one header name stands for two contents";

  KeyWriter writer;
  writer.field(Schema, kSchema).field(Source, identity.source);
  for (const HeaderDigest& header : headers) {
    writer.field(HeaderName, header.name).field(HeaderContent, header.digest.hex());
  }
  for (const std::string& option : options) {
    check_option(option);
    writer.field(Option, option);
  }
  for (const std::string& expression : identity.name_expressions) {
    writer.field(NameExpression, expression);
  }
  writer.field(Architecture, identity.architecture).field(Compiler, identity.compiler);
  return writer.key();
}

}  // namespace stof::kernel
