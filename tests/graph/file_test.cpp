#include <cstdint>
#include <filesystem>
#include <string>

#include <doctest/doctest.h>

#include "base/files.hpp"
#include "error_of.hpp"
#include "stof/error.hpp"
#include "stof/graph.hpp"
#include "temporary_folder.hpp"

namespace stof {
namespace {

using test::error_of;

// Every query sees key 5.
Mask key_5() {
  HostTensor keep(DType::Bool, {8, 8});
  for (std::int64_t q = 0; q < 8; ++q) {
    keep.set(8 * q + 5, 1);
  }
  return Mask::dense(keep.view());
}

Graph attention(const Mask& mask) {
  Graph graph("attention");
  const Tensor x = graph.input("x", {1, 2, 8, 16}, DType::Float16);
  graph.output("o", graph.attention(x, x, x, {.mask = mask}));
  return graph;
}

TEST_CASE("graph files: a graph comes back, with its data where it has any") {
  const test::TemporaryFolder folder;
  const Graph plain = attention(causal());
  plain.save(folder / "plain.json");
  CHECK(Graph::load(folder / "plain.json").canonical_digest() == plain.canonical_digest());
  plain.save(folder / "plain.json", folder / "none.safetensors");
  CHECK(Graph::load(folder / "plain.json", folder / "none.safetensors").canonical_digest() ==
        plain.canonical_digest());

  const Graph masked = attention(key_5());
  masked.save(folder / "masked.json", folder / "masked.safetensors");
  const Graph again = Graph::load(folder / "masked.json", folder / "masked.safetensors");
  CHECK(again.canonical_digest() == masked.canonical_digest());
  CHECK(again.to_json().json == masked.to_json().json);
}

TEST_CASE("graph files: errors name the file") {
  const test::TemporaryFolder folder;
  const Graph masked = attention(key_5());
  CHECK(error_of<GraphError>([&] { masked.save(folder / "m.json"); }) ==
        (folder / "m.json").string() +
            ": the graph has 1 tensors of masks or tables, and no file for them is named: the "
            "second argument of Graph::save, --data of the command");
  CHECK_FALSE(std::filesystem::exists(folder / "m.json"));

  masked.save(folder / "m.json", folder / "m.safetensors");
  const auto load_error = [&](const char* json, const std::filesystem::path& data = {}) {
    return error_of<GraphError>([&] { Graph::load(folder / json, data); });
  };
  CHECK(load_error("m.json").starts_with((folder / "m.json").string() + ": /operators/0/"));
  CHECK(load_error("none.json").find("none.json") != std::string::npos);
  CHECK(load_error("m.json", folder / "n.safetensors").find("n.safetensors") != std::string::npos);
  base::write_file_atomically(folder / "bad.json", "{");
  CHECK(load_error("bad.json").starts_with((folder / "bad.json").string() + ": "));
}

}  // namespace
}  // namespace stof
