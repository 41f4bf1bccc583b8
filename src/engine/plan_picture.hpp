#pragma once

#include <string>

#include "engine/gpu_plan.hpp"
#include "stof/engine.hpp"

namespace stof::engine {

// A plan for a GPU as an SVG diagram: launches from the top downwards, each with what it computes,
// its template, and bars for its predicted time and, where tuning has measured it, that. Launches
// that repeat, as those of equal layers do, are drawn once.
std::string plan_svg(const PlanDescription& description, const std::string& title);

// The same of a plan, as Plan::explain describes it. Throws as it does, and GraphError for a plan
// of the reference backend, which launches nothing.
std::string plan_svg(const Plan& plan, const DimValues& dims = {});

}  // namespace stof::engine
