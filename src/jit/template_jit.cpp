#include "jit/template_jit.hpp"

#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <utility>

namespace stof::jit {

using cache::EntryKind;
using compile::CompileTask;
using kernel::KernelSpec;

namespace {

// Their numbers are part of every key that was ever written (cache/README.md): add, but never
// change.
enum Tag : std::uint16_t {
  Schema = 1,
  Version,
  File,
  Variables,
  Templates,
  Architecture,
  Option,
  Compiler
};

constexpr std::string_view kSchema = "stof rendering 1";

}  // namespace

std::vector<Kernel> TemplateJit::get_or_compile(std::span<const KernelSpec> specs,
                                                const base::GpuTarget& target,
                                                const std::stop_token& stop) const {
  std::vector<std::optional<Kernel>> kernels;
  std::vector<CompileTask> tasks;
  std::vector<std::pair<std::size_t, kernel::Key>> misses;  // position in kernels, key
  for (const KernelSpec& spec : specs) {
    kernel::Key rendering = key(spec, target);
    kernels.push_back(find(spec, rendering));
    if (!kernels.back()) {
      tasks.push_back({.source = renderer_.render(spec.file, render::from_json(spec.variables)),
                       .target = target});
      misses.emplace_back(kernels.size() - 1, std::move(rendering));
    }
  }
  std::vector<Outcome> outcomes = jit_.get_or_compile(tasks, stop);
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    if (outcomes[i].error) {
      std::rethrow_exception(outcomes[i].error);
    }
    const auto& [position, rendering] = misses[i];
    cache_.add({EntryKind::Rendering, rendering, {.payload = outcomes[i].kernel->digest.hex()}});
    kernels[position] = std::move(outcomes[i].kernel);
  }
  std::vector<Kernel> result;
  result.reserve(kernels.size());
  for (std::optional<Kernel>& kernel : kernels) {
    result.push_back(*std::move(kernel));
  }
  return result;
}

kernel::Key TemplateJit::key(const KernelSpec& spec, const base::GpuTarget& target) const {
  // Of a source that is not there yet: what is the same for every source.
  const compile::CompileInputs inputs = compiler_.inputs({.source = {}, .target = target});
  kernel::KeyWriter writer;
  writer.field(Schema, kSchema)
      .field(Version, STOF_VERSION)
      .field(File, spec.file)
      .field(Variables, spec.variables.dump())
      .field(Templates, renderer_.store().digest().hex())
      .field(Architecture, target.text());
  for (const std::string& option : inputs.options) {
    writer.field(Option, option);
  }
  return writer.field(Compiler, inputs.compiler).key();
}

std::optional<Kernel> TemplateJit::find(const KernelSpec& spec, const kernel::Key& key) const {
  const std::optional<cache::Cache::Hit> hit = cache_.find(EntryKind::Rendering, key);
  const auto digest = hit ? base::Digest::from_hex(hit->entry->payload()) : std::nullopt;
  return digest ? jit_.find(*digest, spec.file) : std::nullopt;
}

}  // namespace stof::jit
