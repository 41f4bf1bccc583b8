#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/device_profile.hpp"
#include "fusion/mask_arrays.hpp"
#include "fusion/scheme.hpp"
#include "fusion/template_library.hpp"
#include "graph/ir.hpp"

// Products that read one x, such as those of Q, K and V, as one product: of x with their weights
// one behind the other.
namespace stof::fusion {

// Weights that are rows of one: along axis 0, in this order, without gaps.
struct JoinedWeight {
  std::string name;
  std::vector<std::string> parts;  // names of weights of the graph

  friend bool operator==(const JoinedWeight&, const JoinedWeight&) = default;
};

// All weights that joining may want to lie together; each name is in one of them at most. A product
// takes part if its weight [n, k] lies (out, in), it is the only reader of it, and no other
// attribute sets it apart from those that it is joined with; its bias [n] too, where it has one, as
// those of the others then do. Weights and biases are of one dtype and of multiples of 16 bytes
// each, so that every part is aligned.
std::vector<JoinedWeight> joinable_weights(const graph::Ir& ir);

struct JoinedProducts {
  graph::Ir ir;                       // weights that are joined stand behind those of the graph
  std::vector<JoinedWeight> weights;  // what they are made of, in their order
  std::optional<Scheme> scheme = {};  // the best of `ir`, where it was looked for
  std::set<std::string> kinds = {};   // of what was joined, where only some of it was
};

// Joins all products that can be.
JoinedProducts join_products(const graph::Ir& ir);

// Those of these kinds, as JoinedProducts has them.
JoinedProducts join_products(const graph::Ir& ir, const std::set<std::string>& kinds);

// Joins those of a static graph that should take less time that way, equal ones alike (see
// propose_schemes).
JoinedProducts join_products_if_faster(const graph::Ir& ir, const TemplateLibrary& templates,
                                       const base::DeviceProfile& device,
                                       const BuildLayout& build_layout = {});

}  // namespace stof::fusion
