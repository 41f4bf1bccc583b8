#pragma once

#include <string>
#include <vector>

#include "graph/ir.hpp"

namespace stof::fusion {

std::string name_of(const graph::Ir& ir, int value);

// Builds a graph that is another one but for some operators: inputs and weights are there from the
// beginning, operators come in topological order, and outputs last.
class RewrittenGraph {
 public:
  explicit RewrittenGraph(const graph::Ir& from);  // which is kept by reference

  const graph::Ir& from() const { return from_; }
  const graph::Ir& ir() const { return to_; }
  // In the new graph, of what stands in the old one; -1 of -1.
  int id(int value) const { return value < 0 ? -1 : ids_[static_cast<std::size_t>(value)]; }

  // An operator over values of the new graph; it makes these of the old one.
  void finish(graph::Operator op, const std::vector<int>& outputs);
  // One of the old graph, as it is.
  void copy(const graph::Operator& of) { finish(translated(of), of.outputs); }
  // One of the old graph over values of the new one.
  graph::Operator translated(const graph::Operator& of) const;
  // What no value of the old graph stands for: its result, called `name` or nearly so.
  int append(graph::Operator op, std::string name);
  std::vector<int> append(graph::Operator op, std::vector<std::string> names);
  // From here on a value of the new graph stands for one of the old.
  void replace(int old, int value) { ids_[static_cast<std::size_t>(old)] = value; }
  // A weight, behind those of the old graph; its name may change.
  int append(graph::Value weight);

  // With the outputs and captures of the old one.
  graph::Ir end() &&;

 private:
  std::string free_name(std::string name) const;  // no name of either graph

  const graph::Ir& from_;
  graph::Ir to_;
  std::vector<int> ids_;  // of values of the old graph, in the new one
};

}  // namespace stof::fusion
