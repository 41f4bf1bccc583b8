#include "engine/template_trust.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/gpu_target.hpp"
#include "contract/header.hpp"
#include "render/include_closure.hpp"
#include "render/renderer.hpp"
#include "validate/check_template.hpp"
#include "validate/verdict.hpp"

namespace stof::engine {

using validate::Climb;
using validate::TemplateCheck;

namespace {

bool is_foreign(const render::TemplateStore& store, const std::string& file) {
  return store.find(file)->origin != render::kEmbeddedOrigin;
}

bool has_foreign_part(const render::TemplateStore& store, const std::string& file) {
  return std::ranges::any_of(render::include_closure(store, file),
                             [&](const auto& one) { return is_foreign(store, one); });
}

// Kernel templates into which something comes from a user's folder.
std::vector<std::string> foreign_templates(const render::TemplateStore& store) {
  std::vector<std::string> files;
  for (const auto& [path, file] : store.files()) {
    if (!path.ends_with(".jinja") || !contract::has_contract(file.text)) {
      continue;
    }
    if (has_foreign_part(store, path)) {
      files.push_back(path);
    }
  }
  return files;
}

Trust wanted(const TrustTools& tools) {
  return tools.trust.value_or(tools.device && tools.may_compile ? Trust::Validated
                                                                : Trust::Compiled);
}

std::optional<TemplateCheck> known(const TrustTools& tools, const render::TemplateStore& store,
                                   const std::string& file) {
  const base::GpuTarget target = base::parse_gpu_target(tools.profile->target);
  const auto find = [&](Climb climb) {
    return validate::find_verdict(*tools.cache, store, file, target, climb);
  };
  std::optional<TemplateCheck> verdict = find(Climb::Validated);
  return verdict || wanted(tools) == Trust::Validated ? verdict : find(Climb::Compiled);
}

// Sends it up the ladder, and keeps what comes of it.
TemplateCheck checked(const TrustTools& tools, const render::Renderer& renderer,
                      const std::string& file) {
  const bool is_run = wanted(tools) == Trust::Validated;
  const auto start = std::chrono::steady_clock::now();
  validate::CheckTools ladder{.renderer = &renderer,
                              .compiler = tools.compiler,
                              .devices = std::span(tools.profile, 1),
                              .gpu = {},
                              .stop = tools.stop};
  if (is_run) {
    ladder.gpu = validate::Gpu{.device = *tools.device, .profile = *tools.profile};
  }
  TemplateCheck check = validate::check_template(ladder, file);
  validate::add_verdict(*tools.cache, renderer.store(),
                        base::parse_gpu_target(tools.profile->target),
                        is_run ? Climb::Validated : Climb::Compiled, check);
  const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
  tools.report({.stage = "check",
                .name = file,
                .milliseconds = time.count(),
                .detail = check.is_passed() ? "passed" : check.rungs.back().name + " failed"});
  return check;
}

ForeignTemplate judged(const TrustTools& tools, const render::Renderer& renderer,
                       const std::string& file) {
  std::optional<TemplateCheck> check = known(tools, renderer.store(), file);
  if (!check && !tools.may_compile) {
    return {file, false, "it was never checked, and JitMode::Off compiles nothing"};
  }
  if (!check && wanted(tools) == Trust::Validated && !tools.device) {
    return {file, false, "it was never validated, and there is no GPU to do that on"};
  }
  if (!check) {
    check = checked(tools, renderer, file);
  }
  if (!check->is_passed()) {
    return {file, false,
            fmt::format("{}: {}", check->rungs.back().name, check->rungs.back().detail)};
  }
  const validate::Rung* race = check->find("race");
  return {file, true,
          !check->is_validated() ? "it compiles, its numbers were not checked"
          : race == nullptr      ? "validated"
                                 : "validated; " + race->detail,
          check->is_validated()};
}

// The paths of the shipped kernel templates, by name.
std::map<std::string, std::string> shipped_names() {
  std::map<std::string, std::string> files;
  for (const render::EmbeddedTemplate& one : render::embedded_templates()) {
    const std::string path(one.path);
    if (path.ends_with(".jinja") && contract::has_contract(one.text)) {
      files.emplace(contract::parse_contract(path, one.text).name, path);
    }
  }
  return files;
}

// Whether a kernel template may include it, or import or extend it.
bool is_part(const render::TemplateStore& store, const std::string& file) {
  return std::ranges::any_of(store.files(), [&](const auto& one) {
    return one.first.ends_with(".jinja") && contract::has_contract(one.second.text) &&
           render::include_closure(store, one.first).contains(file);
  });
}

bool looks_like_kernel(std::string_view text) {
  return text.find("\"contract\"") != std::string_view::npos ||
         text.find("__global__") != std::string_view::npos;
}

// Files of a user's that would be overlooked: their headers do not come first, or they have none
// and hide shipped kernel templates, or are kernels that no template has a part of.
std::vector<ForeignTemplate> overlooked(const render::TemplateStore& store,
                                        const std::map<std::string, std::string>& shipped) {
  std::vector<ForeignTemplate> files;
  for (const auto& [path, file] : store.files()) {
    if (!path.ends_with(".jinja") || !is_foreign(store, path) ||
        contract::has_contract(file.text)) {
      continue;
    }
    if (contract::has_late_header(file.text)) {
      files.push_back({path, false, "contract: something stands ahead of the header"});
    } else if (std::ranges::any_of(
                   shipped, [&path = path](const auto& one) { return one.second == path; })) {
      files.push_back({path, false, "contract: it hides a shipped template, and has no header"});
    } else if (looks_like_kernel(file.text) && !is_part(store, path)) {
      files.push_back({path, false,
                       "contract: it has no header, '{#', a JSON object and '#}', and no template "
                       "includes it"});
    }
  }
  return files;
}

// Every foreign template of a store, and whether it may be used.
std::vector<ForeignTemplate> judge_all(const TrustTools& tools,
                                       const std::shared_ptr<const render::TemplateStore>& store,
                                       const std::map<std::string, std::string>& shipped) {
  std::vector<ForeignTemplate> all = overlooked(*store, shipped);
  const render::Renderer renderer(store);
  for (const std::string& file : foreign_templates(*store)) {
    all.push_back(judged(tools, renderer, file));
  }
  return all;
}

// Whether it is a user's, in the place of a shipped file.
bool hides_shipped(const render::TemplateStore& store, const std::string& file) {
  return std::ranges::any_of(store.shadows(), [&](const render::Shadow& shadow) {
    return shadow.path == file && shadow.hides_embedded();
  });
}

// A store with shipped files again in the place of these.
std::shared_ptr<const render::TemplateStore> without(const render::TemplateStore& store,
                                                     std::span<const ForeignTemplate> gone) {
  std::vector<std::string> files;
  for (const ForeignTemplate& one : gone) {
    files.push_back(one.file);
  }
  return std::make_shared<const render::TemplateStore>(store.with_embedded(files));
}

// What has to give way to shipped files for a kernel template that does not pass: a part of a
// user's without which it does, the template itself where that is a user's, or all such parts.
std::vector<ForeignTemplate> culprits(const TrustTools& tools, const render::TemplateStore& store,
                                      const ForeignTemplate& failing) {
  std::vector<ForeignTemplate> parts;
  for (const std::string& part : render::include_closure(store, failing.file)) {
    if (part != failing.file && hides_shipped(store, part)) {
      parts.push_back(
          {part, false, fmt::format("{} includes it: {}", failing.file, failing.detail)});
    }
  }
  for (const ForeignTemplate& part : parts) {
    const render::Renderer renderer(without(store, std::span(&part, 1)));
    if (!has_foreign_part(renderer.store(), failing.file) ||
        judged(tools, renderer, failing.file).is_used) {
      return {part};
    }
  }
  return is_foreign(store, failing.file) ? std::vector{failing} : parts;
}

// Files of a user's that hide shipped ones which are needed: they do not pass, or shipped kernel
// templates do not pass with them.
std::vector<ForeignTemplate> faulty(const TrustTools& tools, const render::TemplateStore& store,
                                    std::span<const ForeignTemplate> all) {
  std::vector<ForeignTemplate> files;
  for (const ForeignTemplate& one : all) {
    if (one.is_used || (is_foreign(store, one.file) && !hides_shipped(store, one.file))) {
      continue;
    }
    for (ForeignTemplate& culprit : culprits(tools, store, one)) {
      if (std::ranges::find(files, culprit.file, &ForeignTemplate::file) == files.end()) {
        files.push_back(std::move(culprit));
      }
    }
  }
  return files;
}

// Of several templates with one name the first may be used. Gives those that now may no more.
std::vector<ForeignTemplate> leave_out_equal_names(const render::TemplateStore& store,
                                                   std::map<std::string, std::string> files,
                                                   std::vector<ForeignTemplate>& all) {
  std::vector<ForeignTemplate> left_out;
  for (ForeignTemplate& one : all) {
    if (one.is_used) {
      const contract::TemplateContract contract =
          contract::parse_contract(one.file, store.find(one.file)->text);
      std::string& first = files.emplace(contract.name, one.file).first->second;
      if (contract.replaces == contract.name && !is_foreign(store, first)) {
        first = one.file;
      } else if (first != one.file) {
        one = {one.file, false,
               fmt::format("its name '{}' is that of {} too", contract.name, first)};
        left_out.push_back(one);
      }
    }
  }
  return left_out;
}

// Without what only all of them together show to be wrong: a template that replaces one which
// another hides.
fusion::TemplateLibrary read_all(std::map<std::string, std::string> texts,
                                 std::vector<ForeignTemplate>& foreign) {
  while (true) {
    try {
      return fusion::read_templates(texts);
    } catch (const TemplateError& error) {
      const auto found = std::ranges::find_if(foreign, [&](const ForeignTemplate& one) {
        return one.is_used && one.file == error.file();
      });
      if (found == foreign.end()) {
        throw;
      }
      *found = {found->file, false, std::string("contract: ") + error.what()};
      texts.erase(found->file);
    }
  }
}

}  // namespace

TrustedTemplates trusted_templates(const TrustTools& tools,
                                   const std::shared_ptr<const render::TemplateStore>& store) {
  TrustedTemplates trusted{.store = store, .library = {}, .foreign = {}, .digest = store->digest()};
  for (const render::UnreadFile& file : store->unread()) {
    trusted.foreign.push_back({file.path, false, file.reason});
  }
  std::vector<ForeignTemplate> all;
  if (std::ranges::any_of(store->files(),
                          [&](const auto& file) { return is_foreign(*store, file.first); })) {
    const std::map<std::string, std::string> shipped = shipped_names();
    // With a shipped file back in its place, others are what they were not, and judged again.
    for (bool is_settled = false; !is_settled;) {
      all = judge_all(tools, trusted.store, shipped);
      std::vector<ForeignTemplate> gone = faulty(tools, *trusted.store, all);
      if (gone.empty()) {
        gone = leave_out_equal_names(*trusted.store, shipped, all);
        std::erase_if(gone, [&](const ForeignTemplate& one) {
          return !hides_shipped(*trusted.store, one.file);
        });
      }
      trusted.foreign.insert(trusted.foreign.end(), gone.begin(), gone.end());
      is_settled = gone.empty();
      if (!is_settled) {
        trusted.store = without(*trusted.store, gone);
      }
    }
    trusted.foreign.insert(trusted.foreign.end(), all.begin(), all.end());
  }
  std::map<std::string, std::string> texts = trusted.store->texts();
  for (const ForeignTemplate& one : all) {
    if (!one.is_used) {
      texts.erase(one.file);
    }
  }
  trusted.library = read_all(std::move(texts), trusted.foreign);
  for (const ForeignTemplate& one : trusted.foreign) {
    if (!one.is_used) {
      trusted.digest = base::hash(trusted.digest.hex() + one.file);
      tools.report({.stage = "quarantine", .name = one.file, .detail = one.detail});
    }
  }
  return trusted;
}

}  // namespace stof::engine
