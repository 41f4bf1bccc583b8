#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/device_profile.hpp"
#include "fusion/joined_products.hpp"
#include "fusion/mask_arrays.hpp"
#include "fusion/scheme.hpp"
#include "fusion/template_library.hpp"
#include "graph/ir.hpp"

// Norms that products alone read, put off until behind the product: with W' = gain W, centred along
// k for a layer norm, norm(x) W + b = factor (x W') + (shift W + b), where only the factor, one
// number a row, is known at run time. So products read x itself, and what normalises it is neither
// written nor read. Others who read the norm have it made again where they read it.
//
// What it costs in digits: W' is rounded once, and the product is not rounded ahead of the factor.
// For a layer norm the mean of a row meets the sum of the roundings of a column of W', which
// fold_weight() keeps below one rounding of one of its elements e: what is off is at most
// |mean| factor u |e|, with u = 2^-11 in float16 and 2^-8 in bfloat16, beside a result of about
// sqrt(k) |e|.
namespace stof::fusion {

// What stands in place of a weight and a bias behind a norm, and what it is made of: all are
// weights of the graph.
struct FoldedProduct {
  std::string weight;               // its name: as large as its parts together, and of their dtype
  std::string offset;               // float32 [n]; empty: it would be 0
  std::vector<std::string> parts;   // one behind the other along n
  bool is_turned = false;           // they lie [n, k]
  std::string gain;                 // [k]
  std::string shift;                // [k]; empty: none
  std::vector<std::string> biases;  // as the parts; or none
  bool is_centred = false;

  friend bool operator==(const FoldedProduct&, const FoldedProduct&) = default;
};

struct DeferredNorms {
  // The weights of products stand behind those of the graph: weight and offset of each.
  graph::Ir ir;
  std::vector<FoldedProduct> products = {};
  std::vector<std::string> norms = {};  // names of what is put off
  std::optional<Scheme> scheme = {};    // the best of `ir`, where it was looked for
  std::set<std::string> kinds = {};     // of what is put off, where only some of it is
};

// Puts off all norms that a product reads which can: of 16 bits, with gain, shift, weight and bias
// that are weights, of which nobody else reads the matrix. `joined` says what joined weights of the
// graph are made of.
DeferredNorms defer_norms(const graph::Ir& ir, const std::vector<JoinedWeight>& joined = {});

// Those of these kinds, as DeferredNorms has them.
DeferredNorms defer_norms(const JoinedProducts& joined, const std::set<std::string>& kinds);

// Puts off those of a static graph with which it should take less time, equal ones alike.
DeferredNorms defer_norms_if_faster(const JoinedProducts& joined, const TemplateLibrary& templates,
                                    const base::DeviceProfile& device,
                                    const BuildLayout& build_layout = {});

}  // namespace stof::fusion
