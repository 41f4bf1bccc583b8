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
  std::vector<Kernel> kernels;
  for (Outcome& outcome : try_each(specs, target, stop)) {
    if (outcome.error) {
      std::rethrow_exception(outcome.error);
    }
    kernels.push_back(*std::move(outcome.kernel));
  }
  return kernels;
}

std::vector<Outcome> TemplateJit::try_each(std::span<const KernelSpec> specs,
                                           const base::GpuTarget& target,
                                           const std::stop_token& stop) const {
  std::vector<Outcome> kernels(specs.size());
  std::vector<CompileTask> tasks;
  std::vector<std::pair<std::size_t, kernel::Key>> misses;  // position in kernels, key
  for (std::size_t i = 0; i < specs.size(); ++i) {
    try {
      kernel::Key rendering = key(specs[i], target);
      const std::optional<base::Digest> digest = find(rendering);
      kernels[i].kernel = digest ? jit_.find(*digest, specs[i].file) : std::nullopt;
      if (!kernels[i].kernel) {
        tasks.push_back(
            {.source = renderer_.render(specs[i].file, render::from_json(specs[i].variables)),
             .target = target});
        misses.emplace_back(i, std::move(rendering));
      }
    } catch (...) {
      kernels[i].error = std::current_exception();
    }
  }
  std::vector<Outcome> outcomes = jit_.get_or_compile(tasks, stop);
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const auto& [position, rendering] = misses[i];
    if (outcomes[i].kernel) {
      cache_.add({EntryKind::Rendering, rendering, {.payload = outcomes[i].kernel->digest.hex()}});
    }
    kernels[position] = std::move(outcomes[i]);
  }
  return kernels;
}

std::optional<base::Digest> TemplateJit::known(const KernelSpec& spec,
                                               const base::GpuTarget& target) const {
  return find(key(spec, target));
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

std::optional<base::Digest> TemplateJit::find(const kernel::Key& key) const {
  const std::optional<cache::Cache::Hit> hit = cache_.find(EntryKind::Rendering, key);
  return hit ? base::Digest::from_hex(hit->entry->payload()) : std::nullopt;
}

}  // namespace stof::jit
