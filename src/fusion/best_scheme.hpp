#pragma once

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/device_profile.hpp"
#include "fusion/mask_arrays.hpp"
#include "fusion/propose.hpp"
#include "fusion/template_library.hpp"
#include "graph/ir.hpp"

namespace stof::fusion {

// The scheme of a static graph that should take the least time, which counts the copies to outputs
// that no kernel can write itself. Nothing where some operator fits no template.
std::optional<Proposal> best_scheme(const graph::Ir& ir, const TemplateLibrary& templates,
                                    const base::DeviceProfile& device, MaskArraysByMask& masks);

// What a rewrite makes of a static graph, with those parts taken with which it should take less
// time, parts of one kind alike: one kind after another is tried beside those that were taken.
// `given` is the graph as it is. Rewritten has the graph as `ir`, and gets its best `scheme` and
// the `kinds` that were taken; kind_of(part), rewrite(parts) -> Rewritten, scheme_of(ir) ->
// optional<Proposal>.
template <typename Rewritten, typename Part, typename KindOf, typename Rewrite, typename SchemeOf>
Rewritten rewritten_if_faster(Rewritten given, const std::vector<Part>& parts,
                              const KindOf& kind_of, const Rewrite& rewrite,
                              const SchemeOf& scheme_of) {
  std::set<std::string> kinds;
  for (const Part& part : parts) {
    kinds.insert(kind_of(part));
  }
  if (kinds.empty()) {
    return given;
  }
  Rewritten best = given;
  double least = std::numeric_limits<double>::infinity();
  const auto take_if_faster = [&](Rewritten other) {
    std::optional<Proposal> proposal = scheme_of(other.ir);
    if (!proposal || proposal->predicted_us >= least) {
      return false;
    }
    least = proposal->predicted_us;
    best = std::move(other);
    best.scheme = std::move(proposal->scheme);
    return true;
  };
  take_if_faster(std::move(given));
  std::set<std::string> taken;
  for (const std::string& kind : kinds) {
    std::vector<Part> chosen;
    std::copy_if(parts.begin(), parts.end(), std::back_inserter(chosen), [&](const Part& part) {
      const std::string of = kind_of(part);
      return of == kind || taken.contains(of);
    });
    if (take_if_faster(rewrite(chosen))) {
      taken.insert(kind);
    }
  }
  best.kinds = std::move(taken);
  return best;
}

}  // namespace stof::fusion
