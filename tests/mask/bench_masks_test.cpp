// The bench masks in C++ are those of tools/bench/peers/masks.py, bit for bit; the fixture says
// what that script gives (fixtures/make_bench_masks.py).
#include <bit>
#include <fstream>
#include <span>
#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "../../tools/bench/masks.hpp"
#include "base/hash.hpp"
#include "mask/evaluate.hpp"

namespace bench = stof::bench;
namespace mask = stof::mask;

namespace {

nlohmann::json fixture() {
  std::ifstream file(STOF_SOURCE_DIR "/tests/mask/fixtures/bench_masks.json");
  return nlohmann::json::parse(file);
}

}  // namespace

TEST_CASE("bench masks have the bits of the script") {
  const nlohmann::json masks = fixture().at("masks");
  CHECK(masks.size() == bench::mask_names().size());
  for (const std::string_view name : bench::mask_names()) {
    for (const auto& [key, expected] : masks.at(std::string(name)).items()) {
      const std::string length = key;  // a lambda of INFO takes no structured binding under Clang
      INFO(name, " at ", length);
      const std::int64_t n = std::stoll(length);
      const mask::BitTensor bits =
          mask::evaluate_all(bench::mask(name, n), {.q_len = n, .kv_len = n});
      std::int64_t seen = 0;
      for (const std::uint64_t word : bits.words) {
        seen += std::popcount(word);
      }
      CHECK(seen == expected.at("seen").get<std::int64_t>());
      CHECK(stof::base::hash(std::as_bytes(std::span(bits.words))).hex() ==
            expected.at("xxh3_128").get<std::string>());
    }
  }
}

TEST_CASE("documents have the offsets of the script") {
  const nlohmann::json documents = fixture().at("documents");
  CHECK_FALSE(documents.empty());
  for (const auto& [length, expected] : documents.items()) {
    CHECK(bench::document_offsets(std::stoll(length)) == expected.get<std::vector<std::int32_t>>());
  }
}

TEST_CASE("a name that is none is refused") {
  CHECK_THROWS_AS(bench::mask("fractal", 64), std::invalid_argument);
}
