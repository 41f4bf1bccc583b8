#include "fusion/deferred_norms.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "fusion/best_scheme.hpp"
#include "fusion/chain.hpp"
#include "fusion/match.hpp"
#include "fusion/rewritten_graph.hpp"
#include "fusion/weighted_product.hpp"
#include "graph/op_info.hpp"

namespace stof::fusion {

namespace {

using graph::Ir;
using graph::OpKind;

struct Norm {
  int op = -1;
  std::vector<WeightedProduct> products;  // of what it gives
  std::vector<int> others;                // operators that read it too, each once; Readers::kBorder
};

class NormFinder {
 public:
  explicit NormFinder(const Ir& ir) : ir_(ir), readers_(ir) {}

  // In the order of the graph.
  std::vector<Norm> norms() const {
    std::vector<Norm> all;
    for (std::size_t op = 0; op < ir_.operators.size(); ++op) {
      if (auto norm = norm_at(static_cast<int>(op))) {
        all.push_back(*std::move(norm));
      }
    }
    return all;
  }

 private:
  const graph::Operator& at(int op) const { return ir_.operators[static_cast<std::size_t>(op)]; }

  bool is_weight(int value, int rank) const {
    const graph::Value& weight = graph::value_at(ir_, value);
    return weight.role == graph::ValueRole::Weight && weight.shape.rank() == rank &&
           is_floating(weight.dtype);
  }

  std::optional<Norm> norm_at(int index) const {
    const graph::Operator& op = at(index);
    if (op.kind != OpKind::LayerNorm && op.kind != OpKind::RmsNorm) {
      return std::nullopt;
    }
    const bool has_weights = std::all_of(op.inputs.begin() + 1, op.inputs.end(),
                                         [&](int value) { return is_weight(value, 1); });
    const graph::Value& y = graph::value_at(ir_, op.outputs[0]);
    const bool is_captured =
        std::any_of(ir_.captures.begin(), ir_.captures.end(),
                    [&](const auto& capture) { return capture.second == op.outputs[0]; });
    if (!has_weights || is_captured || size_bytes(y.dtype) != 2 || op.segment >= 0) {
      return std::nullopt;
    }
    Norm norm{.op = index, .products = {}, .others = {}};
    for (const int reader : readers_.of(op.outputs[0])) {
      if (const auto product = product_at(reader, op.outputs[0])) {
        norm.products.push_back(*product);
      } else if (std::find(norm.others.begin(), norm.others.end(), reader) == norm.others.end()) {
        norm.others.push_back(reader);
      }
    }
    return norm.products.empty() ? std::nullopt : std::optional(std::move(norm));
  }

  std::optional<WeightedProduct> product_at(int index, int x) const {
    if (index == Readers::kBorder || at(index).inputs[0] != x) {
      return std::nullopt;
    }
    auto product = weighted_product_at(ir_, readers_, index,
                                       [&](int value, int rank) { return is_weight(value, rank); });
    const bool is_own =
        product && readers_.of(product->weight).size() == 1 &&
        graph::value_at(ir_, product->weight).dtype == graph::value_at(ir_, x).dtype;
    return is_own ? product : std::nullopt;
  }

  const Ir& ir_;
  Readers readers_;
};

// Rebuilds a graph with some norms put off.
class Deferrer {
 public:
  Deferrer(const Ir& from, const std::vector<JoinedWeight>& joined, const std::vector<Norm>& norms)
      : to_(from), joined_(joined) {
    for (const Norm& norm : norms) {
      norms_.emplace(norm.op, &norm);
      for (const WeightedProduct& product : norm.products) {
        products_.emplace(product.op, std::pair(&norm, &product));
        is_gone_.insert(product.add);
      }
      for (const int other : norm.others) {
        readers_[other].push_back(&norm);
      }
    }
  }

  DeferredNorms run() && {
    for (std::size_t op = 0; op < from().operators.size(); ++op) {
      const auto index = static_cast<int>(op);
      if (const auto norm = norms_.find(index); norm != norms_.end()) {
        add_moments(*norm->second);
      } else if (const auto product = products_.find(index); product != products_.end()) {
        add_product(*product->second.first, *product->second.second);
      } else if (!is_gone_.contains(index)) {
        add_reader(index);
      }
    }
    for (const Norm* norm : readers_[Readers::kBorder]) {
      renewed(*norm);
    }
    result_.ir = std::move(to_).end();
    return std::move(result_);
  }

 private:
  struct Moments {
    int factor = -1;
    int mean = -1;  // where anybody reads it
  };

  const Ir& from() const { return to_.from(); }
  const graph::Operator& at(int op) const { return from().operators[static_cast<std::size_t>(op)]; }
  bool is_centred(const Norm& norm) const { return at(norm.op).kind == OpKind::LayerNorm; }
  int norm_input(const Norm& norm, int position) const {
    return graph::input_or_none(at(norm.op), position);
  }

  void add_moments(const Norm& norm) {
    const graph::Operator& op = at(norm.op);
    const std::string name = name_of(from(), op.outputs[0]);
    std::vector<std::string> names = {name + ".factor"};
    if (is_centred(norm) && !norm.others.empty()) {
      names.push_back(name + ".mean");
    }
    const std::vector<int> results =
        to_.append({.kind = OpKind::RowMoments,
                    .inputs = {to_.id(op.inputs[0])},
                    .attributes = {{"epsilon", graph::attribute<double>(op, "epsilon")},
                                   {"centred", is_centred(norm)}}},
                   std::move(names));
    moments_[norm.op] = {.factor = results[0], .mean = results.size() > 1 ? results[1] : -1};
    result_.norms.push_back(name);
  }

  void add_product(const Norm& norm, const WeightedProduct& product) {
    graph::Operator matmul = at(product.op);
    const DType dtype = graph::value_at(from(), product.result).dtype;
    const std::string name = name_of(from(), product.product);
    const bool is_turned = graph::attribute<bool>(matmul, "transpose_b");
    const std::vector<int> weights = add_weights(norm, product, is_turned);
    matmul.inputs = {to_.id(norm_input(norm, 0)), weights[0]};
    matmul.attributes.emplace("dtype", DType::Float32);
    int y = to_.append(std::move(matmul), name + ".sums");
    y = to_.append({.kind = OpKind::Multiply, .inputs = {moments_.at(norm.op).factor, y}},
                   name + ".scaled");
    if (weights.size() > 1) {
      y = to_.append({.kind = OpKind::Add, .inputs = {y, weights[1]}}, name + ".moved");
    }
    to_.finish({.kind = OpKind::Cast, .inputs = {y}, .attributes = {{"dtype", dtype}}},
               {product.result});
  }

  // The weight, and the offset where there is one.
  std::vector<int> add_weights(const Norm& norm, const WeightedProduct& product, bool is_turned) {
    const int shift = norm_input(norm, 2);
    FoldedProduct folded{.weight = {},
                         .offset = {},
                         .parts = parts_of(product.weight),
                         .is_turned = is_turned,
                         .gain = name_of(from(), norm_input(norm, 1)),
                         .shift = shift < 0 ? "" : name_of(from(), shift),
                         .biases = {},
                         .is_centred = is_centred(norm)};
    graph::Value weight = graph::value_at(from(), product.weight);
    const Dim n = weight.shape[is_turned ? 0 : 1];
    weight.name = fmt::format("{}*{}", folded.gain, weight.name);
    std::vector<int> ids = {to_.append(std::move(weight))};
    folded.weight = name_of(to_.ir(), ids[0]);
    if (product.bias >= 0) {
      folded.biases = parts_of(product.bias);
    }
    if (shift >= 0 || product.bias >= 0) {
      ids.push_back(to_.append(graph::Value{.name = folded.weight + ".offset",
                                            .shape = {n},
                                            .dtype = DType::Float32,
                                            .role = graph::ValueRole::Weight}));
      folded.offset = name_of(to_.ir(), ids[1]);
    }
    result_.products.push_back(std::move(folded));
    return ids;
  }

  std::vector<std::string> parts_of(int weight) const {
    const std::string name = name_of(from(), weight);
    const auto joined = std::find_if(joined_.begin(), joined_.end(),
                                     [&](const JoinedWeight& one) { return one.name == name; });
    return joined == joined_.end() ? std::vector<std::string>{name} : joined->parts;
  }

  // An elementwise operator has what it reads of a norm made for itself, so that one kernel does
  // both; the others share it.
  void add_reader(int index) {
    graph::Operator op = at(index);
    const auto reads = readers_.find(index);
    for (const Norm* norm : reads == readers_.end() ? std::vector<const Norm*>() : reads->second) {
      const int value = at(norm->op).outputs[0];
      if (is_elementwise(op.kind) &&
          graph::value_at(from(), op.outputs[0]).shape == graph::value_at(from(), value).shape) {
        own_[value] = to_.append(apply(*norm), name_of(from(), value));
      } else {
        renewed(*norm);
      }
    }
    // The sum that a product is part of comes first: then the norm is made behind the product.
    if (op.kind == OpKind::Add && own_.contains(op.inputs[0])) {
      std::swap(op.inputs[0], op.inputs[1]);
    }
    graph::Operator translated = to_.translated(op);
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      if (const auto own = own_.find(op.inputs[i]); own != own_.end()) {
        translated.inputs[i] = own->second;
      }
    }
    own_.clear();
    to_.finish(std::move(translated), op.outputs);
  }

  graph::Operator apply(const Norm& norm) const {
    const Moments& moments = moments_.at(norm.op);
    graph::Operator op{
        .kind = OpKind::ApplyMoments,
        .inputs = {to_.id(norm_input(norm, 0)), moments.factor, to_.id(norm_input(norm, 1))}};
    if (is_centred(norm)) {
      op.inputs.push_back(moments.mean);
    }
    if (norm_input(norm, 2) >= 0) {
      op.inputs.push_back(to_.id(norm_input(norm, 2)));
    }
    return op;
  }

  // What the norm gave, once for all.
  void renewed(const Norm& norm) {
    const int value = at(norm.op).outputs[0];
    if (to_.id(value) < 0) {
      to_.finish(apply(norm), {value});
    }
  }

  RewrittenGraph to_;
  const std::vector<JoinedWeight>& joined_;
  std::map<int, const Norm*> norms_;
  std::map<int, std::pair<const Norm*, const WeightedProduct*>> products_;
  std::map<int, std::vector<const Norm*>> readers_;  // others, by operator
  std::set<int> is_gone_;
  std::map<int, Moments> moments_;  // by norm
  std::map<int, int> own_;          // of the operator that is being added: norm -> what it reads
  DeferredNorms result_;
};

// What is equal for norms that are alike.
std::string kind_of(const Ir& ir, const Norm& norm) {
  const graph::Operator& op = ir.operators[static_cast<std::size_t>(norm.op)];
  const graph::Value& x = graph::value_at(ir, op.inputs[0]);
  std::string kind = fmt::format("{} {} {} {}", graph::name(op.kind), x.shape.text(), name(x.dtype),
                                 norm.others.size());
  for (const WeightedProduct& product : norm.products) {
    kind += fmt::format(" {}", graph::value_at(ir, product.result).shape[-1].text());
  }
  return kind;
}

}  // namespace

DeferredNorms defer_norms(const Ir& ir, const std::vector<JoinedWeight>& joined) {
  return Deferrer(ir, joined, NormFinder(ir).norms()).run();
}

DeferredNorms defer_norms(const JoinedProducts& joined, const std::set<std::string>& kinds) {
  std::vector<Norm> norms = NormFinder(joined.ir).norms();
  std::erase_if(norms, [&](const Norm& norm) { return !kinds.contains(kind_of(joined.ir, norm)); });
  return norms.empty() ? DeferredNorms{.ir = joined.ir}
                       : Deferrer(joined.ir, joined.weights, norms).run();
}

DeferredNorms defer_norms_if_faster(const JoinedProducts& joined, const TemplateLibrary& templates,
                                    const base::DeviceProfile& device,
                                    const BuildLayout& build_layout) {
  MaskArraysByMask masks(build_layout);
  return rewritten_if_faster(
      DeferredNorms{.ir = joined.ir, .products = {}, .norms = {}, .scheme = joined.scheme},
      NormFinder(joined.ir).norms(), [&](const Norm& norm) { return kind_of(joined.ir, norm); },
      [&](const std::vector<Norm>& norms) {
        return Deferrer(joined.ir, joined.weights, norms).run();
      },
      [&](const Ir& of) { return best_scheme(of, templates, device, masks); });
}

}  // namespace stof::fusion
