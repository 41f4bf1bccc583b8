#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/files.hpp"
#include "io/safetensors.hpp"
#include "io/safetensors_writer.hpp"
#include "stof/error.hpp"
#include "stof/graph.hpp"

namespace stof {

namespace {

constexpr std::size_t kMaxJsonBytes = std::size_t{256} << 20;

}  // namespace

void Graph::save(const std::filesystem::path& json, const std::filesystem::path& data) const {
  Saved saved = to_json();
  if (!saved.data.empty() && data.empty()) {
    throw GraphError(
        fmt::format("{}: the graph has {} tensors of masks or tables, and no file for them is "
                    "named: the second argument of Graph::save, --data of the command",
                    json.string(), saved.data.size()));
  }
  if (!data.empty()) {
    std::vector<NamedTensor> tensors;
    for (auto& [digest, tensor] : saved.data) {
      tensors.push_back({digest, tensor.view()});
    }
    io::write_safetensors(data, tensors);
  }
  base::write_file_atomically(json, saved.json);
}

Graph Graph::load(const std::filesystem::path& json, const std::filesystem::path& data) {
  std::map<std::string, HostTensor> tensors;
  if (!data.empty()) {
    const io::SafetensorsFile file = io::SafetensorsFile::open(data);
    for (const std::string& name : file.names()) {
      tensors.emplace(name, HostTensor(file.view(name)));
    }
  }
  const std::string text = base::read_file(json, kMaxJsonBytes);
  try {
    return from_json(text, tensors);
  } catch (const GraphError& error) {
    throw GraphError(fmt::format("{}: {}", json.string(), error.what()));
  }
}

}  // namespace stof
