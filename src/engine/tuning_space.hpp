#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/device_profile.hpp"
#include "fusion/lower.hpp"
#include "fusion/segment_keys.hpp"
#include "graph/ir.hpp"
#include "tune/search.hpp"

namespace stof::engine {

// What the search may try for a graph: its segments as graphs of their own, and their settings.
// From one thread.
class TuningSpace {
 public:
  // All are used for as long as this lives, the graph is copied. Throws what lower does.
  TuningSpace(const graph::Ir& ir, const fusion::TemplateLibrary& templates,
              const base::DeviceProfile& device, fusion::BuildLayout build_layout);

  // What the search is given: schemes that should be fast, and the way from one to others.
  tune::Space space();
  // The settings that a problem has, what runs without a search first: a few, and all of them.
  const std::vector<tune::Setting>& few_settings(const std::string& problem) const;
  const std::vector<tune::Setting>& settings(const std::string& problem);
  // What the first segment that is the problem computes: "linear_3, gelu_4".
  const std::string& label(const std::string& problem) const;

  // That segment as a graph, and as launches with a setting. Throws GraphError where the kernel
  // does not take it.
  const graph::Ir& graph(const std::string& problem) const;
  fusion::Lowered lower(const tune::Trial& trial) const;
  // What it should take on a GPU of other rates, in microseconds. Throws as lower.
  double predict(const tune::Trial& trial, const base::DeviceProfile& device) const;

 private:
  struct Problem {
    graph::Ir graph;
    std::string label;
    std::vector<tune::Setting> few;
    std::vector<tune::Setting> all;  // empty until they are asked for
  };
  // How a problem lowers by the model's choice.
  struct Main {
    std::string problem;
    std::string label;
    std::vector<tune::Setting> settings;  // that are listed
  };

  fusion::Lowered lower(const tune::Trial& trial, const base::DeviceProfile& device) const;
  // Nothing where no template runs the segment.
  std::optional<std::string> problem_of(const fusion::Segment& segment);
  Main lower_plainly(const graph::Ir& segment, bool lists_all) const;
  std::vector<fusion::Scheme> moves(const fusion::Scheme& scheme) const;

  const fusion::TemplateLibrary& templates_;
  const base::DeviceProfile& device_;
  fusion::BuildLayout build_layout_;  // each layout once
  graph::Ir ir_;
  fusion::OperatorOrder order_;
  fusion::SegmentKeys keys_;
  std::map<std::string, Problem> problems_;
  std::map<base::Digest, std::optional<std::string>> known_;  // by the keys of segments
};

}  // namespace stof::engine
