#include "engine/rewrites.hpp"

#include <cstdint>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "graph/canonical.hpp"
#include "stof/error.hpp"

namespace stof::engine {

using cache::EntryKind;

namespace {

// Their numbers are part of every key that was ever written (cache/README.md): add, but never
// change.
enum Tag : std::uint16_t { Schema = 1, Version, GraphDigest, Templates, Profile, Deferral, Built };

constexpr std::string_view kSchema = "stof rewrites 2";

// What the digest of a graph leaves out, and rewrites and schemes go by: the order in which its
// operators were built, those that no output needs, and the ids of values.
std::string built(const graph::Ir& ir) {
  std::string text;
  for (const graph::Operator& op : ir.operators) {
    text += fmt::format("{} {} {}\n", static_cast<int>(op.kind), fmt::join(op.inputs, ","),
                        fmt::join(op.outputs, ","));
  }
  return text;
}

}  // namespace

kernel::Key rewrites_key(const graph::Ir& ir, const base::DeviceProfile& profile,
                         const base::Digest& templates, NormDeferral deferral) {
  return kernel::KeyWriter()
      .field(Schema, kSchema)
      .field(Version, STOF_VERSION)
      .field(GraphDigest, graph::canonicalise(ir).digest.hex())
      .field(Templates, templates.hex())
      .field(Profile, base::to_json(profile))
      .field(Deferral, std::to_string(static_cast<int>(deferral)))
      .field(Built, built(ir))
      .key();
}

std::optional<Rewrites> find_rewrites(cache::Cache& cache, const kernel::Key& key) {
  const auto hit = cache.find(EntryKind::Plan, key);
  if (!hit) {
    return std::nullopt;
  }
  try {
    const auto plan = nlohmann::json::parse(hit->entry->payload());
    Rewrites rewrites{.joined = plan.at("joined"),
                      .deferred = plan.at("deferred"),
                      .rotated = plan.at("rotated"),
                      .scheme = {}};
    if (plan.contains("scheme")) {
      rewrites.scheme = fusion::Scheme::from_text(plan["scheme"].get<std::string>());
    }
    return rewrites;
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  } catch (const GraphError&) {
    return std::nullopt;
  }
}

void add_rewrites(cache::Cache& cache, const kernel::Key& key, const Rewrites& rewrites) {
  nlohmann::json plan = {
      {"joined", rewrites.joined}, {"deferred", rewrites.deferred}, {"rotated", rewrites.rotated}};
  if (rewrites.scheme) {
    plan["scheme"] = rewrites.scheme->text();
  }
  cache.add({EntryKind::Plan, key, {.payload = plan.dump()}});
}

}  // namespace stof::engine
