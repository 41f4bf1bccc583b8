#include "engine/tuning_space.hpp"

#include <algorithm>

#include "fusion/placement.hpp"
#include "fusion/prepare.hpp"
#include "fusion/propose.hpp"
#include "fusion/scheme_groups.hpp"
#include "fusion/scheme_moves.hpp"
#include "fusion/segment_graph.hpp"
#include "stof/error.hpp"

namespace stof::engine {

using fusion::Decisions;
using fusion::Lowered;
using fusion::Scheme;

namespace {

graph::Ir prepared(const graph::Ir& ir, const fusion::TemplateLibrary& templates,
                   const base::DeviceProfile& device, const fusion::BuildLayout& build_layout) {
  fusion::MaskArraysByMask masks(build_layout);
  return fusion::prepare(ir, templates, device, masks);
}

// A segment alone, in one piece.
Decisions in_one_piece(const graph::Ir& segment) {
  const std::size_t count = fusion::operator_order(segment).size();
  return {.scheme = Scheme(std::vector<bool>(count, false)),
          .settings = {},
          .lists_all = false,
          .is_prepared = true};
}

// The launch that a setting is for: copies in front of it are none.
std::size_t main_launch(const Lowered& lowered) {
  const auto found = std::ranges::find_if(lowered.origins, [](const fusion::LaunchOrigin& origin) {
    return origin.group == 0 && origin.problem["operators"][0]["op"] != "copy";
  });
  return found == lowered.origins.end() ? 0
                                        : static_cast<std::size_t>(found - lowered.origins.begin());
}

}  // namespace

TuningSpace::TuningSpace(const graph::Ir& ir, const fusion::TemplateLibrary& templates,
                         const base::DeviceProfile& device, fusion::BuildLayout build_layout)
    : templates_(templates),
      device_(device),
      build_layout_(fusion::remembering(std::move(build_layout))),
      ir_(prepared(ir, templates_, device_, build_layout_)),
      order_(fusion::operator_order(ir_)),
      keys_(ir_, order_, fusion::Readers(ir_), fusion::Placement(ir_)) {}

tune::Space TuningSpace::space() {
  tune::Space space{
      .proposals = {},
      .moves = [this](const Scheme& scheme) { return moves(scheme); },
      .problem = [this](const fusion::Segment& segment) { return problem_of(segment); },
      .few_settings = [this](const std::string& problem) { return few_settings(problem); },
      .settings = [this](const std::string& problem) { return settings(problem); }};
  for (fusion::Proposal& proposal :
       fusion::propose_schemes(ir_, templates_, device_, build_layout_)) {
    space.proposals.push_back(std::move(proposal.scheme));
  }
  if (space.proposals.empty()) {
    fusion::lower(ir_, templates_, device_, build_layout_);  // throws, saying what fits nothing
  }
  return space;
}

// What a template lets escape, lowering knows: a move too many is found out there.
std::vector<Scheme> TuningSpace::moves(const Scheme& scheme) const {
  const auto may_escape = [](const fusion::Segment&, int) { return true; };
  std::vector<Scheme> all;
  for (const auto& move : {fusion::expand, fusion::seize, fusion::compete}) {
    std::vector<Scheme> moved = move(order_, scheme, may_escape);
    all.insert(all.end(), moved.begin(), moved.end());
  }
  return all;
}

std::optional<std::string> TuningSpace::problem_of(const fusion::Segment& segment) {
  const auto [known, is_new] = known_.try_emplace(keys_.key(segment));
  if (!is_new) {
    return known->second;
  }
  try {
    std::vector<int> operators = fusion::operators_of(order_, segment);
    std::ranges::sort(operators);
    graph::Ir graph = fusion::segment_graph(ir_, operators);
    Main main = lower_plainly(graph, false);
    problems_.try_emplace(main.problem, Problem{.graph = std::move(graph),
                                                .label = std::move(main.label),
                                                .few = std::move(main.settings),
                                                .all = {}});
    known->second = std::move(main.problem);
  } catch (const GraphError&) {  // no template takes them together
  }
  return known->second;
}

TuningSpace::Main TuningSpace::lower_plainly(const graph::Ir& segment, bool lists_all) const {
  Decisions decisions = in_one_piece(segment);
  decisions.lists_all = lists_all;
  const Lowered lowered = fusion::lower(segment, templates_, device_, build_layout_, decisions);
  if (lowered.program.launches.empty()) {
    throw GraphError("tune: nothing is launched for '" + segment.name + "'");
  }
  const std::size_t place = main_launch(lowered);
  Main main{.problem = fusion::problem_key(lowered.origins[place].problem),
            .label = lowered.program.launches[place].label,
            .settings = {}};
  for (const fusion::Option& option : lowered.options[place]) {
    main.settings.push_back(
        {.kernel = option.kernel, .config = option.config, .predicted_us = option.time.total_us()});
  }
  return main;
}

const std::vector<tune::Setting>& TuningSpace::few_settings(const std::string& problem) const {
  return problems_.at(problem).few;
}

const std::vector<tune::Setting>& TuningSpace::settings(const std::string& problem) {
  Problem& of = problems_.at(problem);
  if (of.all.empty()) {
    of.all = lower_plainly(of.graph, true).settings;
  }
  return of.all;
}

const std::string& TuningSpace::label(const std::string& problem) const {
  return problems_.at(problem).label;
}

const graph::Ir& TuningSpace::graph(const std::string& problem) const {
  return problems_.at(problem).graph;
}

Lowered TuningSpace::lower(const tune::Trial& trial) const {
  return lower(trial, device_);
}

double TuningSpace::predict(const tune::Trial& trial, const base::DeviceProfile& device) const {
  const Lowered lowered = lower(trial, device);
  return lowered.options[main_launch(lowered)].front().time.total_us();
}

Lowered TuningSpace::lower(const tune::Trial& trial, const base::DeviceProfile& device) const {
  const graph::Ir& segment = graph(trial.problem);
  Decisions decisions = in_one_piece(segment);
  decisions.settings.emplace(trial.problem, fusion::Setting{.kernel = trial.setting.kernel,
                                                            .config = trial.setting.config});
  Lowered lowered = fusion::lower(segment, templates_, device, build_layout_, decisions);
  for (const fusion::LaunchOrigin& origin : lowered.origins) {
    if (!origin.refusal.empty()) {
      throw GraphError("tune: " + origin.refusal);
    }
  }
  return lowered;
}

}  // namespace stof::engine
