#include "validate/verdict.hpp"

#include <exception>
#include <utility>

#include "kernel/key.hpp"
#include "render/include_closure.hpp"

namespace stof::validate {

using cache::EntryKind;
using nlohmann::ordered_json;

namespace {

// Their numbers are part of every key that was ever written (cache/README.md): add, but never
// change.
enum Tag : std::uint16_t { Schema = 1, Version, File, Files, Architecture, Ladder };

constexpr std::string_view kSchema = "stof verdict 1";

kernel::Key key_of(const render::TemplateStore& store, const std::string& file,
                   const base::GpuTarget& target, Climb climb) {
  return kernel::KeyWriter()
      .field(Schema, kSchema)
      .field(Version, STOF_VERSION)
      .field(File, file)
      .field(Files, render::closure_digest(store, file).hex())
      .field(Architecture, target.text())
      .field(Ladder, climb == Climb::Validated ? "validated" : "compiled")
      .key();
}

// Nothing for what to_json does not write.
std::optional<TemplateCheck> from_json(const ordered_json& verdict) {
  try {
    TemplateCheck check{
        .file = verdict.at("file"), .rungs = {}, .warnings = verdict.at("warnings")};
    for (const ordered_json& rung : verdict.at("rungs")) {
      check.rungs.push_back(
          {.name = rung.at("rung"), .is_passed = rung.at("passed"), .detail = rung.at("detail")});
    }
    return check.rungs.empty() ? std::nullopt : std::optional(std::move(check));
  } catch (const ordered_json::exception&) {
    return std::nullopt;
  }
}

}  // namespace

std::optional<TemplateCheck> find_verdict(cache::Cache& cache, const render::TemplateStore& store,
                                          const std::string& file, const base::GpuTarget& target,
                                          Climb climb) {
  const auto hit = cache.find(EntryKind::Verdict, key_of(store, file, target, climb));
  if (!hit) {
    return std::nullopt;
  }
  const ordered_json verdict = ordered_json::parse(hit->entry->payload(), nullptr, false);
  return verdict.is_discarded() ? std::nullopt : from_json(verdict);
}

void add_verdict(cache::Cache& cache, const render::TemplateStore& store,
                 const base::GpuTarget& target, Climb climb, const TemplateCheck& check) {
  cache.add(
      {EntryKind::Verdict,
       key_of(store, check.file, target, climb),
       {.payload = to_json(check).dump(-1, ' ', false, ordered_json::error_handler_t::replace)}});
}

ordered_json to_json(const TemplateCheck& check) {
  ordered_json rungs = ordered_json::array();
  for (const Rung& rung : check.rungs) {
    rungs.push_back({{"rung", rung.name}, {"passed", rung.is_passed}, {"detail", rung.detail}});
  }
  return {{"file", check.file},
          {"passed", check.is_passed()},
          {"rungs", rungs},
          {"warnings", check.warnings}};
}

}  // namespace stof::validate
