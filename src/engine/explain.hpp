#pragma once

#include <cstdint>
#include <string>

#include "engine/gpu_plan.hpp"
#include "stof/engine.hpp"

namespace stof::engine {

// What Plan::explain says of a plan for a GPU, a line a launch.
std::string explain_text(const PlanDescription& description);

// What Plan::explain says, as JSON for programs: backend, precision or device and target, inputs,
// weights and outputs, and on a GPU the launches. Throws as it does.
std::string explain_json(const Plan& plan, const DimValues& dims = {});

// Such as "3 launches of 1 kernel".
std::string launches_of_kernels(std::int64_t launches, std::int64_t kernels);

}  // namespace stof::engine
