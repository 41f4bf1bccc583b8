#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/device_profile.hpp"
#include "fusion/lower.hpp"
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

  // The schemes, and all below them. Valid as long as this.
  tune::Space schemes();
  // The settings that a problem has, what runs without a search first.
  const std::vector<tune::Setting>& settings(const std::string& problem) const;
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
    std::vector<tune::Setting> settings;
  };

  fusion::Lowered lower(const tune::Trial& trial, const base::DeviceProfile& device) const;
  // Nothing where no kernel runs the segment.
  std::optional<std::string> problem_of(const fusion::Segment& segment);
  std::vector<fusion::Scheme> moves(const fusion::Scheme& scheme) const;

  const fusion::TemplateLibrary& templates_;
  const base::DeviceProfile& device_;
  fusion::BuildLayout build_layout_;  // each layout once
  graph::Ir ir_;
  fusion::OperatorOrder order_;
  std::vector<fusion::Scheme> proposals_;
  std::map<std::string, Problem> problems_;
  std::map<std::vector<int>, std::optional<std::string>> known_;  // by operators
};

}  // namespace stof::engine
