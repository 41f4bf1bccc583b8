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

#include "fusion/best_scheme.hpp"
#include "fusion/match.hpp"
#include "fusion/rewritten_graph.hpp"
#include "fusion/view.hpp"
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
  Joiner(const Ir& from, const std::vector<Family>& families) : to_(from) {
    for (const Family& family : families) {
      first_.emplace(family.front().op, &family);
      for (const Product& product : family) {
        is_gone_.insert({product.op, product.add});
      }
    }
  }

  JoinedProducts run() && {
    for (std::size_t op = 0; op < from().operators.size(); ++op) {
      const auto index = static_cast<int>(op);
      if (const auto family = first_.find(index); family != first_.end()) {
        join(*family->second);
      } else if (!is_gone_.contains(index)) {
        to_.copy(from().operators[op]);
      }
    }
    return {.ir = std::move(to_).end(), .weights = std::move(weights_)};
  }

 private:
  const Ir& from() const { return to_.from(); }

  int add_weight(const Family& family, int Product::*part) {
    JoinedWeight joined = joined_weight(from(), family, part);
    graph::Value weight = graph::value_at(from(), family.front().*part);
    std::vector<Dim> dims(weight.shape.dims().begin(), weight.shape.dims().end());
    dims[0] = std::accumulate(family.begin(), family.end(), Dim(0),
                              [&](const Dim& sum, const Product& product) {
                                return sum + graph::value_at(from(), product.*part).shape[0];
                              });
    weight.name = joined.name;
    weight.shape = Shape(std::move(dims));
    const int id = to_.append(std::move(weight));
    joined.name = name_of(to_.ir(), id);
    weights_.push_back(std::move(joined));
    return id;
  }

  void join(const Family& family) {
    graph::Operator product = from().operators[static_cast<std::size_t>(family.front().op)];
    product.inputs = {to_.id(product.inputs[0]), add_weight(family, &Product::weight)};
    int all = to_.append(std::move(product), joined_name(from(), family, &Product::product));
    if (family.front().bias >= 0) {
      const int bias = add_weight(family, &Product::bias);
      all = to_.append({.kind = OpKind::Add, .inputs = {all, bias}},
                       joined_name(from(), family, &Product::result));
    }
    const std::int64_t axis = graph::value_at(to_.ir(), all).shape.rank() - 1;
    Dim start = 0;
    for (const Product& one : family) {
      const Dim length = graph::value_at(from(), one.weight).shape[0];
      to_.finish({.kind = OpKind::Slice,
                  .inputs = {all},
                  .attributes = {{"axis", axis}, {"start", start}, {"length", length}}},
                 {one.result});
      start = start + length;
    }
  }

  RewrittenGraph to_;
  std::map<int, const Family*> first_;  // by its first product
  std::set<int> is_gone_;               // operators that are part of a family
  std::vector<JoinedWeight> weights_;
};

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
