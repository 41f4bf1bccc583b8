#pragma once

#include <optional>
#include <set>
#include <string>

#include "base/device_profile.hpp"
#include "fusion/mask_arrays.hpp"
#include "fusion/scheme.hpp"
#include "fusion/template_library.hpp"
#include "graph/ir.hpp"

// Rotary embeddings of heads that are views of a product, as those of Q and K are, turned as the
// product has them: one rotary_heads right behind it, which a kernel can do with the sums of its
// tile, instead of a rotary for each view. What reads the heads reads them from the product.
namespace stof::fusion {

struct RotatedProducts {
  graph::Ir ir;
  std::optional<Scheme> scheme = {};  // the best of `ir`, where it was looked for
  std::set<std::string> kinds = {};   // of what is turned, where only some of it is
};

// Of a static graph all that can: rotary embeddings alike, of heads that lie side by side from the
// first column of a product, or of its sum with a bias, on. Nobody else reads these columns.
RotatedProducts rotate_products(const graph::Ir& ir);

// Those of these kinds, as RotatedProducts has them.
RotatedProducts rotate_products(const graph::Ir& ir, const std::set<std::string>& kinds);

// Those with which the graph should take less time, equal ones alike.
RotatedProducts rotate_products_if_faster(RotatedProducts given, const TemplateLibrary& templates,
                                          const base::DeviceProfile& device,
                                          const BuildLayout& build_layout = {});

}  // namespace stof::fusion
