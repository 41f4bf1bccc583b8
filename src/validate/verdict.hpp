#pragma once

#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "base/gpu_target.hpp"
#include "cache/cache.hpp"
#include "render/template_store.hpp"
#include "validate/check_template.hpp"

// What the ladder said of a template, kept in the cache: the next process asks no compiler and no
// GPU.
namespace stof::validate {

// As far as a template was sent up the ladder.
enum class Climb : std::uint8_t { Compiled, Validated };

// What is known of a template as it lies in the store, with all that it includes, on such GPUs.
std::optional<TemplateCheck> find_verdict(cache::Cache& cache, const render::TemplateStore& store,
                                          const std::string& file, const base::GpuTarget& target,
                                          Climb climb);
void add_verdict(cache::Cache& cache, const render::TemplateStore& store,
                 const base::GpuTarget& target, Climb climb, const TemplateCheck& check);

// {"file": …, "passed": …, "rungs": [{"rung", "passed", "detail"}, …], "warnings": […]}
nlohmann::ordered_json to_json(const TemplateCheck& check);

}  // namespace stof::validate
