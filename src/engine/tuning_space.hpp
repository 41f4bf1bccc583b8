#pragma once

#include <map>
#include <optional>
#include <span>
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

  // The schemes; nothing where the groups of the graph have no code.
  std::optional<tune::Space> schemes();
  // The problems of what runs without a search. Those that no one kernel is are left out.
  std::vector<tune::Part> parts();
  // The settings that a problem has, what runs without a search first.
  const std::vector<tune::Setting>& settings(const std::string& problem) const;
  // What the first segment that is the problem computes: "linear_3, gelu_4".
  const std::string& label(const std::string& problem) const;

  // That segment as a graph, and as launches with a setting. Throws GraphError where the kernel
  // does not take it.
  const graph::Ir& graph(const std::string& problem) const;
  fusion::Lowered lower(const tune::Trial& trial) const;

 private:
  struct Problem {
    graph::Ir graph;
    std::string label;
    std::vector<tune::Setting> settings;
  };

  std::optional<std::string> problem_of(const fusion::Segment& segment);
  // Of operators that one kernel runs; nothing where none does.
  std::optional<std::string> add(std::span<const int> operators);
  std::vector<fusion::Scheme> moves(const fusion::Scheme& scheme) const;

  graph::Ir ir_;
  const fusion::TemplateLibrary& templates_;
  const base::DeviceProfile& device_;
  fusion::BuildLayout build_layout_;  // each layout once
  fusion::OperatorOrder order_;
  fusion::Lowered plain_;
  std::map<std::string, Problem> problems_;
  std::map<std::vector<int>, std::optional<std::string>> known_;  // by operators
};

}  // namespace stof::engine
