#include "fusion/rewritten_graph.hpp"

#include <utility>

#include "graph/append.hpp"

namespace stof::fusion {

std::string name_of(const graph::Ir& ir, int value) {
  return graph::value_at(ir, value).name;
}

RewrittenGraph::RewrittenGraph(const graph::Ir& from) : from_(from), ids_(from.values.size(), -1) {
  to_.name = from.name;
  to_.dims = from.dims;
  for (std::size_t value = 0; value < from.values.size(); ++value) {
    if (from.values[value]->role != graph::ValueRole::Result) {
      ids_[value] = graph::append_value(to_, *from.values[value]);
    }
  }
}

void RewrittenGraph::finish(graph::Operator op, const std::vector<int>& outputs) {
  std::vector<std::string> names;
  names.reserve(outputs.size());
  for (const int value : outputs) {
    names.push_back(name_of(from_, value));
  }
  op.outputs.assign(outputs.size(), -1);
  const std::vector<int> results = graph::append(to_, std::move(op), names);
  for (std::size_t i = 0; i < results.size(); ++i) {
    ids_[static_cast<std::size_t>(outputs[i])] = results[i];
  }
}

graph::Operator RewrittenGraph::translated(const graph::Operator& of) const {
  graph::Operator op = of;
  for (int& value : op.inputs) {
    value = id(value);
  }
  for (auto& [name, value] : op.captures) {
    value = id(value);
  }
  return op;
}

std::vector<int> RewrittenGraph::append(graph::Operator op, std::vector<std::string> names) {
  for (std::string& name : names) {
    name = free_name(std::move(name));
  }
  op.outputs.assign(names.size(), -1);
  return graph::append(to_, std::move(op), names);
}

int RewrittenGraph::append(graph::Operator op, std::string name) {
  return append(std::move(op), std::vector<std::string>{std::move(name)}).front();
}

int RewrittenGraph::append(graph::Value weight) {
  weight.name = free_name(std::move(weight.name));
  return graph::append_value(to_, std::move(weight));
}

graph::Ir RewrittenGraph::end() && {
  for (const graph::Output& output : from_.outputs) {
    graph::append_output(to_, output.name, id(output.value));
  }
  for (const auto& [name, value] : from_.captures) {
    to_.captures.emplace(name, id(value));
  }
  return std::move(to_);
}

std::string RewrittenGraph::free_name(std::string name) const {
  while (to_.ids.contains(name) || from_.ids.contains(name)) {
    name += '_';
  }
  return name;
}

}  // namespace stof::fusion
