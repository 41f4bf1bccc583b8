#include "fusion/segment_graph.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "fusion/match.hpp"
#include "fusion/placement.hpp"
#include "graph/append.hpp"

namespace stof::fusion {

namespace {

using graph::Ir;

class Extraction {
 public:
  Extraction(const Ir& from, std::span<const int> operators)
      : from_(from), operators_(operators.begin(), operators.end()), placement_(from) {
    to_.name = from.name;
  }

  Ir run() {
    for (const int index : operators_) {
      add(at(index));
    }
    const Readers readers(from_);
    for (const int index : operators_) {
      for (const int value : at(index).outputs) {
        const std::vector<int>& of = readers.of(value);
        if (std::any_of(of.begin(), of.end(), [&](int reader) { return !is_inside(reader); })) {
          const int shown = shown_value(at(index), value);
          graph::append_output(to_, graph::value_at(from_, shown).name, id(shown));
        }
      }
    }
    return std::move(to_);
  }

 private:
  const graph::Operator& at(int op) const { return from_.operators[static_cast<std::size_t>(op)]; }

  bool is_inside(int op) const {
    return std::find(operators_.begin(), operators_.end(), op) != operators_.end();
  }

  // A result, or what views make of that of an attention, which lies as they want it.
  int shown_value(const graph::Operator& op, int value) const {
    if (op.kind != graph::OpKind::Attention || value != op.outputs[0]) {
      return value;
    }
    const std::vector<int> chain = view_chain(from_, value);
    const auto shown = std::find_if(chain.rbegin(), chain.rend(), [&](int end) {
      const auto view = placement_.view(end);
      return view && view->is_packed();
    });
    return shown == chain.rend() ? value : *shown;
  }

  void add(const graph::Operator& of) {
    graph::Operator op = of;
    for (int& value : op.inputs) {
      value = value < 0 ? -1 : id(value);
    }
    for (auto& [name, value] : op.captures) {
      value = id(value);
    }
    std::vector<std::string> names;
    for (const int value : of.outputs) {
      names.push_back(graph::value_at(from_, value).name);
    }
    const std::vector<int> results = graph::append(to_, std::move(op), names);
    for (std::size_t i = 0; i < results.size(); ++i) {
      ids_.emplace(of.outputs[i], results[i]);
    }
  }

  // Of a value in the new graph, which is given all that it takes.
  int id(int value) {
    if (!ids_.contains(value)) {
      const int producer = graph::value_at(from_, value).producer;
      if (producer >= 0 && is_view(at(producer)) && !lies_packed(value)) {
        add(at(producer));
      } else {
        add_border(value);
      }
    }
    return ids_.at(value);
  }

  // As an input of its own would; what comes from inside is none.
  bool lies_packed(int value) const {
    const auto view = placement_.view(value);
    if (!view || !view->is_packed() || view->alignment_bytes() != kAlignmentBytes) {
      return false;
    }
    const int maker = graph::value_at(from_, view->root).producer;
    return maker < 0 || !is_inside(maker);
  }

  void add_border(int value) {
    graph::Value border = graph::value_at(from_, value);
    border.producer = -1;
    if (border.role == graph::ValueRole::Result) {
      border.role = graph::ValueRole::Input;
    }
    ids_.emplace(value, graph::append_value(to_, std::move(border)));
  }

  const Ir& from_;
  std::vector<int> operators_;
  Placement placement_;
  Ir to_;
  std::map<int, int> ids_;
};

}  // namespace

Ir segment_graph(const Ir& ir, std::span<const int> operators) {
  return Extraction(ir, operators).run();
}

}  // namespace stof::fusion
