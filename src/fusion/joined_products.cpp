#include "fusion/joined_products.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "fusion/group_planner.hpp"
#include "fusion/match.hpp"
#include "fusion/memory.hpp"
#include "fusion/prepare.hpp"
#include "fusion/propose.hpp"
#include "fusion/view.hpp"
#include "graph/append.hpp"
#include "graph/op_info.hpp"

namespace stof::fusion {

namespace {

using graph::Ir;
using graph::OpKind;

// One product that can be joined with others.
struct Product {
  int op = -1;
  int weight = -1;
  int product = -1;  // its result
  int add = -1;      // the operator that adds the bias; -1
  int bias = -1;
  int result = -1;  // with the bias
};

// Products that become one.
using Family = std::vector<Product>;

class Finder {
 public:
  explicit Finder(const Ir& ir) : ir_(ir), readers_(ir) {}

  // In the order of their first products.
  std::vector<Family> families() const {
    std::map<std::tuple<int, DType, bool>, std::size_t> known;  // x, dtype of the weight, bias
    std::vector<Family> all;
    for (std::size_t op = 0; op < ir_.operators.size(); ++op) {
      if (const auto product = product_at(static_cast<int>(op))) {
        const auto key =
            std::tuple(ir_.operators[op].inputs[0], graph::value_at(ir_, product->weight).dtype,
                       product->bias >= 0);
        const auto [family, is_new] = known.emplace(key, all.size());
        if (is_new) {
          all.emplace_back();
        }
        all[family->second].push_back(*product);
      }
    }
    std::erase_if(all, [](const Family& family) { return family.size() < 2; });
    return all;
  }

 private:
  std::optional<Product> product_at(int index) const {
    const graph::Operator& op = ir_.operators[static_cast<std::size_t>(index)];
    const std::map<std::string, graph::Attribute> plain = {{"transpose_a", false},
                                                           {"transpose_b", true}};
    if (op.kind != OpKind::MatMul || op.segment >= 0 || op.attributes.size() != plain.size() ||
        graph::attribute<bool>(op, "transpose_a") || !graph::attribute<bool>(op, "transpose_b") ||
        !is_part(op.inputs[1], 2)) {
      return std::nullopt;
    }
    Product product{.op = index,
                    .weight = op.inputs[1],
                    .product = op.outputs[0],
                    .add = -1,
                    .bias = -1,
                    .result = op.outputs[0]};
    const auto reader = readers_.only(product.result);
    if (!reader || ir_.operators[static_cast<std::size_t>(*reader)].kind != OpKind::Add) {
      return product;
    }
    const graph::Operator& add = ir_.operators[static_cast<std::size_t>(*reader)];
    const int other = add.inputs[add.inputs[0] == product.result ? 1 : 0];
    if (is_part(other, 1) &&
        graph::value_at(ir_, other).shape[0] == graph::value_at(ir_, product.weight).shape[0]) {
      product.add = *reader;
      product.bias = other;
      product.result = add.outputs[0];
    }
    return product;
  }

  // Whether it is a weight of that rank that only one operator reads, once.
  bool is_part(int value, int rank) const {
    const graph::Value& weight = graph::value_at(ir_, value);
    return weight.role == graph::ValueRole::Weight && weight.shape.rank() == rank &&
           readers_.of(value).size() == 1 && readers_.only(value).has_value() &&
           weight.shape.element_count().value() * size_bytes(weight.dtype) % kAlignmentBytes == 0;
  }

  const Ir& ir_;
  Readers readers_;
};

std::string name_of(const Ir& ir, int value) {
  return graph::value_at(ir, value).name;
}

// "wq+wk+wv"
std::string joined_name(const Ir& ir, const Family& family, int Product::*part) {
  constexpr std::size_t kMostNamed = 3;
  const std::string first = name_of(ir, family[0].*part);
  if (family.size() > kMostNamed) {
    return fmt::format("{}+{} more", first, family.size() - 1);
  }
  std::string name = first;
  for (std::size_t i = 1; i < family.size(); ++i) {
    name += '+';
    name += name_of(ir, family[i].*part);
  }
  return name;
}

JoinedWeight joined_weight(const Ir& ir, const Family& family, int Product::*part) {
  JoinedWeight weight{.name = joined_name(ir, family, part), .parts = {}};
  for (const Product& product : family) {
    weight.parts.push_back(name_of(ir, product.*part));
  }
  return weight;
}

// Rebuilds a graph with some families joined.
class Joiner {
 public:
  Joiner(const Ir& from, const std::vector<Family>& families)
      : from_(from), ids_(from.values.size(), -1) {
    for (const Family& family : families) {
      first_.emplace(family.front().op, &family);
      for (const Product& product : family) {
        is_gone_.insert({product.op, product.add});
      }
    }
  }

  JoinedProducts run() {
    Ir& to = result_.ir;
    to.name = from_.name;
    to.dims = from_.dims;
    for (std::size_t id = 0; id < from_.values.size(); ++id) {
      if (from_.values[id]->role != graph::ValueRole::Result) {
        ids_[id] = graph::append_value(to, *from_.values[id]);
      }
    }
    for (std::size_t op = 0; op < from_.operators.size(); ++op) {
      const auto index = static_cast<int>(op);
      if (const auto family = first_.find(index); family != first_.end()) {
        join(*family->second);
      } else if (!is_gone_.contains(index)) {
        copy(from_.operators[op]);
      }
    }
    for (const graph::Output& output : from_.outputs) {
      graph::append_output(to, output.name, id(output.value));
    }
    for (const auto& [name, value] : from_.captures) {
      to.captures.emplace(name, id(value));
    }
    return std::move(result_);
  }

 private:
  int id(int value) const { return value < 0 ? -1 : ids_[static_cast<std::size_t>(value)]; }

  void finish(graph::Operator op, const std::vector<int>& outputs) {
    std::vector<std::string> names;
    names.reserve(outputs.size());
    for (const int value : outputs) {
      names.push_back(name_of(from_, value));
    }
    op.outputs.assign(outputs.size(), -1);
    const std::vector<int> results = graph::append(result_.ir, std::move(op), names);
    for (std::size_t i = 0; i < results.size(); ++i) {
      ids_[static_cast<std::size_t>(outputs[i])] = results[i];
    }
  }

  void copy(const graph::Operator& of) {
    graph::Operator op = of;
    for (int& value : op.inputs) {
      value = id(value);
    }
    for (auto& [name, value] : op.captures) {
      value = id(value);
    }
    finish(std::move(op), of.outputs);
  }

  // No name of either graph.
  std::string free_name(std::string name) const {
    while (result_.ir.ids.contains(name) || from_.ids.contains(name)) {
      name += '_';
    }
    return name;
  }

  int append(graph::Operator op, std::string name) {
    op.outputs = {-1};
    const std::vector<std::string> names = {free_name(std::move(name))};
    return graph::append(result_.ir, std::move(op), names).front();
  }

  int add_weight(const Family& family, int Product::*part) {
    JoinedWeight joined = joined_weight(from_, family, part);
    joined.name = free_name(std::move(joined.name));
    graph::Value weight = graph::value_at(from_, family.front().*part);
    std::vector<Dim> dims(weight.shape.dims().begin(), weight.shape.dims().end());
    dims[0] = std::accumulate(family.begin(), family.end(), Dim(0),
                              [&](const Dim& sum, const Product& product) {
                                return sum + graph::value_at(from_, product.*part).shape[0];
                              });
    weight.name = joined.name;
    weight.shape = Shape(std::move(dims));
    result_.weights.push_back(std::move(joined));
    return graph::append_value(result_.ir, std::move(weight));
  }

  void join(const Family& family) {
    graph::Operator product = from_.operators[static_cast<std::size_t>(family.front().op)];
    product.inputs = {id(product.inputs[0]), add_weight(family, &Product::weight)};
    int all = append(std::move(product), joined_name(from_, family, &Product::product));
    if (family.front().bias >= 0) {
      const int bias = add_weight(family, &Product::bias);
      all = append({.kind = OpKind::Add, .inputs = {all, bias}},
                   joined_name(from_, family, &Product::result));
    }
    const std::int64_t axis = graph::value_at(result_.ir, all).shape.rank() - 1;
    Dim start = 0;
    for (const Product& one : family) {
      const Dim length = graph::value_at(from_, one.weight).shape[0];
      finish({.kind = OpKind::Slice,
              .inputs = {all},
              .attributes = {{"axis", axis}, {"start", start}, {"length", length}}},
             {one.result});
      start = start + length;
    }
  }

  const Ir& from_;
  std::map<int, const Family*> first_;  // by its first product
  std::set<int> is_gone_;               // operators that are part of a family
  std::vector<int> ids_;                // of values, in the new graph
  JoinedProducts result_;
};

// The best scheme, with the copies to outputs, which a joined product cannot write itself. Nothing
// where some operator fits no template.
std::optional<Proposal> best_scheme(const Ir& ir, const TemplateLibrary& templates,
                                    const base::DeviceProfile& device, MaskArraysByMask& masks) {
  const Ir prepared = prepare(ir, masks);
  const OperatorOrder order = operator_order(prepared);
  const Decisions none;
  GroupPlanner planner(prepared, order, templates, device, masks, none);
  std::vector<Proposal> proposals = propose_schemes(prepared, order, planner, 1);
  if (proposals.empty()) {
    return std::nullopt;
  }
  Proposal best = std::move(proposals.front());
  kernel::Program program;
  for (const int output : Memory(prepared, planner.placement(), program).outputs_to_copy()) {
    best.predicted_us +=
        predicted_us(planner.plan_output(prepared.outputs[static_cast<std::size_t>(output)]));
  }
  return best;
}

// What is equal for families that are alike: x, and the rows of each weight.
std::string kind_of(const Ir& ir, const Family& family) {
  const int x = ir.operators[static_cast<std::size_t>(family.front().op)].inputs[0];
  std::string kind = fmt::format("{} {} {}", graph::value_at(ir, x).shape.text(),
                                 name(graph::value_at(ir, x).dtype), family.front().bias >= 0);
  for (const Product& product : family) {
    kind += fmt::format(" {}", graph::value_at(ir, product.weight).shape[0].value());
  }
  return kind;
}

}  // namespace

std::vector<JoinedWeight> joinable_weights(const Ir& ir) {
  std::vector<JoinedWeight> weights;
  for (const Family& family : Finder(ir).families()) {
    weights.push_back(joined_weight(ir, family, &Product::weight));
    if (family.front().bias >= 0) {
      weights.push_back(joined_weight(ir, family, &Product::bias));
    }
  }
  return weights;
}

JoinedProducts join_products(const Ir& ir) {
  return Joiner(ir, Finder(ir).families()).run();
}

JoinedProducts join_products_if_faster(const Ir& ir, const TemplateLibrary& templates,
                                       const base::DeviceProfile& device,
                                       const BuildLayout& build_layout) {
  JoinedProducts best{.ir = ir, .weights = {}};
  const std::vector<Family> families = Finder(ir).families();
  std::set<std::string> kinds;
  for (const Family& family : families) {
    kinds.insert(kind_of(ir, family));
  }
  if (kinds.empty()) {
    return best;
  }
  MaskArraysByMask masks(build_layout);
  double least = std::numeric_limits<double>::infinity();
  const auto take_if_faster = [&](JoinedProducts other) {
    std::optional<Proposal> proposal = best_scheme(other.ir, templates, device, masks);
    if (!proposal || proposal->predicted_us >= least) {
      return false;
    }
    least = proposal->predicted_us;
    best = std::move(other);
    best.scheme = std::move(proposal->scheme);
    return true;
  };
  take_if_faster(best);
  std::set<std::string> taken;
  for (const std::string& kind : kinds) {
    std::vector<Family> joined;
    std::copy_if(families.begin(), families.end(), std::back_inserter(joined),
                 [&](const Family& family) {
                   const std::string of = kind_of(ir, family);
                   return of == kind || taken.contains(of);
                 });
    if (take_if_faster(Joiner(ir, joined).run())) {
      taken.insert(kind);
    }
  }
  return best;
}

}  // namespace stof::fusion
