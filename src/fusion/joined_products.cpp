#include "fusion/joined_products.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
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
#include "fusion/weighted_product.hpp"
#include "graph/op_info.hpp"

namespace stof::fusion {

namespace {

using graph::Ir;
using graph::OpKind;

using Product = WeightedProduct;

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
  // Its weight lies (out, in).
  std::optional<Product> product_at(int index) const {
    auto product = weighted_product_at(ir_, readers_, index,
                                       [&](int value, int rank) { return is_part(value, rank); });
    const graph::Operator& op = ir_.operators[static_cast<std::size_t>(index)];
    return product && graph::attribute<bool>(op, "transpose_b") ? product : std::nullopt;
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

JoinedProducts join_products(const Ir& ir, const std::set<std::string>& kinds) {
  std::vector<Family> families = Finder(ir).families();
  std::erase_if(families,
                [&](const Family& family) { return !kinds.contains(kind_of(ir, family)); });
  return families.empty() ? JoinedProducts{.ir = ir, .weights = {}} : Joiner(ir, families).run();
}

JoinedProducts join_products_if_faster(const Ir& ir, const TemplateLibrary& templates,
                                       const base::DeviceProfile& device,
                                       const BuildLayout& build_layout) {
  MaskArraysByMask masks(build_layout);
  return rewritten_if_faster(
      JoinedProducts{.ir = ir, .weights = {}}, Finder(ir).families(),
      [&](const Family& family) { return kind_of(ir, family); },
      [&](const std::vector<Family>& families) { return Joiner(ir, families).run(); },
      [&](const Ir& of) { return best_scheme(of, templates, device, masks); });
}

}  // namespace stof::fusion
