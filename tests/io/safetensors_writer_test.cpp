#include "io/safetensors_writer.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <unistd.h>

#include "base/files.hpp"
#include "io/safetensors.hpp"
#include "stof/error.hpp"

using stof::DType;
using stof::GraphError;
using stof::HostTensor;
using stof::NamedTensor;
using stof::TensorView;
using stof::io::SafetensorsFile;
using stof::io::write_safetensors;

namespace {

const std::filesystem::path kPath = std::filesystem::temp_directory_path() /
                                    ("stof_safetensors_writer_test." + std::to_string(getpid()));

struct Remove {
  ~Remove() { std::filesystem::remove(kPath); }
};

std::vector<double> values(const TensorView& view) {
  const HostTensor tensor(view);
  std::vector<double> values;
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) {
    values.push_back(tensor.at(i));
  }
  return values;
}

HostTensor numbers(DType dtype, std::int64_t count) {
  HostTensor tensor(dtype, {count});
  for (std::int64_t i = 0; i < count; ++i) {
    tensor.set(i, static_cast<double>(dtype == DType::Bool ? i % 2 : i));
  }
  return tensor;
}

}  // namespace

TEST_CASE("what is written is read back, each tensor aligned in the file") {
  const Remove remove;
  std::vector<HostTensor> tensors;
  std::vector<NamedTensor> named(7);
  for (const DType dtype : {DType::Bool, DType::UInt8, DType::Float16, DType::BFloat16,
                            DType::Float32, DType::Int32, DType::Int64}) {
    tensors.push_back(numbers(dtype, 3));
  }
  for (std::size_t i = 0; i < named.size(); ++i) {
    named[i] = {std::string(name(tensors[i].dtype())), tensors[i].view()};
  }
  write_safetensors(kPath, named, {{"format", "pt"}, {"quote\"", "line\n"}});
  const SafetensorsFile file = SafetensorsFile::open(kPath);
  CHECK(file.metadata().at("quote\"") == "line\n");
  CHECK(file.names().size() == tensors.size());
  for (const NamedTensor& tensor : named) {
    const TensorView view = file.view(tensor.name);
    CHECK(view.dtype == tensor.view.dtype);
    CHECK(view.shape == tensor.view.shape);
    CHECK(values(view) == values(tensor.view));
  }
  const std::string text = stof::base::read_file(kPath, 1 << 20);
  CHECK(text.size() % 8 == (3 * (8 + 4 + 4 + 2 + 2 + 1 + 1)) % 8);
  CHECK(static_cast<unsigned char>(text[0]) % 8 == 0);
}

TEST_CASE("strides are resolved, and nothing is a tensor too") {
  const Remove remove;
  HostTensor tensor = numbers(DType::Float32, 6);
  TensorView transposed = tensor.view();
  transposed.shape = {3, 2};
  transposed.strides = {1, 3};
  const NamedTensor named[] = {{"t", transposed}, {"none", {.dtype = DType::Int32, .shape = {0}}}};
  write_safetensors(kPath, named);
  const SafetensorsFile file = SafetensorsFile::open(kPath);
  CHECK(values(file.view("t")) == std::vector<double>{0, 3, 1, 4, 2, 5});
  CHECK(values(file.view("none")).empty());
  write_safetensors(kPath, {});
  CHECK(SafetensorsFile::open(kPath).names().empty());
}

TEST_CASE("a file stays readable when it is replaced") {
  const Remove remove;
  HostTensor old_tensor = numbers(DType::Int32, 4);
  HostTensor new_tensor = numbers(DType::Int32, 2);
  write_safetensors(kPath, std::vector<NamedTensor>{{"a", old_tensor.view()}});
  const SafetensorsFile file = SafetensorsFile::open(kPath);
  write_safetensors(kPath, std::vector<NamedTensor>{{"a", new_tensor.view()}});
  CHECK(values(file.view("a")) == std::vector<double>{0, 1, 2, 3});
  CHECK(values(SafetensorsFile::open(kPath).view("a")) == std::vector<double>{0, 1});
}

TEST_CASE("what cannot be written is refused, and the old file stays") {
  const Remove remove;
  stof::base::write_file_atomically(kPath, "old");
  HostTensor tensor = numbers(DType::UInt8, 1);
  const auto write = [&](std::vector<NamedTensor> tensors) { write_safetensors(kPath, tensors); };
  CHECK_THROWS_WITH_AS(write({{"a", tensor.view()}, {"a", tensor.view()}}),
                       "safetensors: two tensors are named \"a\"", GraphError);
  CHECK_THROWS_WITH_AS(write({{"__metadata__", tensor.view()}}),
                       "safetensors: a tensor may not be named \"__metadata__\"", GraphError);
  CHECK_THROWS_WITH_AS(write({{"\xff", tensor.view()}}), "safetensors: \"\xff\" is not UTF-8",
                       GraphError);
  CHECK_THROWS_WITH_AS(write({{"a", {.shape = {1}, .location = stof::Location::Device}}}),
                       "safetensors: \"a\" is in device memory", GraphError);
  CHECK_THROWS_WITH_AS(write({{"a", {.shape = std::vector<std::int64_t>(33, 1)}}}),
                       "safetensors: \"a\" has rank 33, over the limit of 32", GraphError);
  CHECK_THROWS_WITH_AS(write({{"a", {.shape = {3}}}}), "tensor: [3] has no data", GraphError);
  const TensorView huge = {
      .data = tensor.bytes().data(), .shape = {std::int64_t{1} << 60}, .strides = {0}};
  CHECK_THROWS_WITH_AS(write({{"a", huge}, {"b", huge}}),
                       "safetensors: the tensors are over 64 bits of bytes", GraphError);
  CHECK(stof::base::read_file(kPath, 9) == "old");
  CHECK_THROWS_AS(write_safetensors("/", {}), GraphError);
}
