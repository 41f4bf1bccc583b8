#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stof/tensor.hpp"

// Files of named tensors in the safetensors format of Hugging Face: the length of a header, the
// header in JSON, the data.
namespace stof::io {

// An open file. What is wrong with its form throws GraphError "safetensors: NAME: …" when it is
// opened; a dtype that stof does not have, when that tensor is asked for.
class SafetensorsFile {
 public:
  // Maps the file: a tensor is read from the disk when it is touched.
  static SafetensorsFile open(const std::filesystem::path& path);
  // Reads bytes that outlive this.
  static SafetensorsFile parse(std::span<const std::byte> bytes, const std::string& name);

  ~SafetensorsFile();
  SafetensorsFile(SafetensorsFile&& other) noexcept;
  SafetensorsFile& operator=(SafetensorsFile&& other) noexcept;

  std::vector<std::string> names() const;  // in order
  bool contains(std::string_view name) const;
  const std::map<std::string, std::string, std::less<>>& metadata() const;

  // To read, as long as this lives; from any thread. Without a copy, but for a tensor that is not
  // aligned for its dtype: that is copied when first asked for. Throws GraphError: no such tensor,
  // or a dtype such as F64.
  TensorView view(std::string_view name) const;

 private:
  struct Content;
  explicit SafetensorsFile(std::unique_ptr<Content> content);

  std::unique_ptr<Content> content_;
};

}  // namespace stof::io
