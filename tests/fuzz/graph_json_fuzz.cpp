// Any bytes are a graph or a GraphError, and a graph that was read is written as it was read.
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/check.hpp"
#include "stof/error.hpp"
#include "stof/graph.hpp"

namespace {

using Data = std::map<std::string, stof::HostTensor>;

std::optional<stof::Graph> parse(std::string_view text, const Data& data) {
  try {
    return stof::Graph::from_json(text, data);
  } catch (const stof::GraphError&) {
    return std::nullopt;
  }
}

// The data of the masks and tables in the seeds.
Data sample_data() {
  stof::HostTensor keep(stof::DType::Bool, {8, 8});
  for (std::int64_t i = 0; i < keep.element_count(); i += 3) {
    keep.set(i, 1);
  }
  stof::Graph graph;
  const stof::Tensor x = graph.input("x", {1, 2, 8, 4}, stof::DType::Float16);
  graph.attention(x, x, x, {.mask = stof::Mask::dense(keep.view())});
  graph.attention(x, x, x, {.mask = stof::documents({0, 3, 8})});
  return graph.to_json().data;
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer calls it by this name
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  static const Data data = sample_data();
  const auto graph = parse({reinterpret_cast<const char*>(bytes), size}, data);
  if (!graph) {
    return 0;
  }
  const stof::Graph::Saved saved = graph->to_json();
  const auto again = parse(saved.json, data);
  STOF_CHECK(again && again->to_json().json == saved.json) << saved.json;
  STOF_CHECK(again->canonical_digest() == graph->canonical_digest()) << saved.json;
  return 0;
}
