#include "fusion/propose.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "fusion/prepare.hpp"
#include "fusion/scheme_groups.hpp"
#include "fusion/segment_keys.hpp"

namespace stof::fusion {

namespace {

// A longer chain is cut. Each length of it is a kind of segment of its own, which costs time.
constexpr int kMostOperators = 32;

constexpr double kNever = std::numeric_limits<double>::infinity();

// One segment that a template runs.
struct Step {
  int begin = 0;
  int kind = 0;
};

// The segments that templates run, by where they end, and the time of each kind of them.
class Steps {
 public:
  Steps(const OperatorOrder& order, const graph::Ir& ir, GroupPlanner& planner)
      : ir_(ir),
        order_(order),
        planner_(planner),
        keys_(ir, order, planner.finder().readers(), planner.placement()),
        ending_at_(order.size() + 1) {
    for (int begin = 0; begin < size(); ++begin) {
      add_from(begin);
    }
  }

  int size() const { return static_cast<int>(order_.size()); }
  // Of each kind.
  const std::vector<double>& us() const { return us_; }
  // The longest first.
  const std::vector<Step>& ending_at(int end) const {
    return ending_at_[static_cast<std::size_t>(end)];
  }

 private:
  // Segments in which each operator but the last is read by a later one of them.
  void add_from(int begin) {
    int needed = begin + 1;  // the least end with which that is so
    int apart = 0;           // of its operators, those that no chain takes
    SegmentKeys::From keys(keys_, begin);
    for (int end = begin + 1; end <= size() && needed <= begin + kMostOperators; ++end) {
      const SchemeOperator& last = order_[static_cast<std::size_t>(end) - 1];
      apart += is_elementwise(ir_.operators[static_cast<std::size_t>(last.op)].kind) ? 0 : 1;
      if (apart > planner_.finder().most_in_pattern()) {
        return;
      }
      keys.add();
      if (end >= needed) {
        add({.begin = begin, .end = end}, keys.key());
      }
      const std::vector<int>& readers = last.readers;
      if (readers.empty()) {
        return;
      }
      needed = std::max(needed, *std::min_element(readers.begin(), readers.end()) + 1);
    }
  }

  void add(const Segment& segment, const base::Digest& key) {
    const auto [known, is_new] = kinds_.emplace(key, static_cast<int>(us_.size()));
    if (is_new) {
      const auto group = planner_.best_group(operators_of(order_, segment));
      us_.push_back(group ? planner_.predict(*group).value_or(kNever) : kNever);
    }
    if (us_[static_cast<std::size_t>(known->second)] < kNever) {
      ending_at_[static_cast<std::size_t>(segment.end)].push_back(
          {.begin = segment.begin, .kind = known->second});
    }
  }

  const graph::Ir& ir_;
  const OperatorOrder& order_;
  GroupPlanner& planner_;
  SegmentKeys keys_;
  std::map<base::Digest, int> kinds_;
  std::vector<double> us_;  // of kinds; kNever where no template runs them
  std::vector<std::vector<Step>> ending_at_;
};

// The best cut of the first operators, and the last segment of it.
struct Best {
  double us = kNever;
  Step last;
};

// The best cut of the whole order without some kinds of segments.
struct Cut {
  std::vector<bool> forbidden;  // the kinds that it may not have
  std::vector<Best> best;       // for each number of first operators

  double us() const { return best.back().us; }

  // Calls visit(begin, end, kind) for each segment, the last first.
  template <typename Visit>
  void for_each(const Visit& visit) const {
    for (int end = static_cast<int>(best.size()) - 1; end > 0;) {
      const Step& last = best[static_cast<std::size_t>(end)].last;
      visit(last.begin, end, last.kind);
      end = last.begin;
    }
  }

  Scheme scheme() const {
    std::vector<Segment> segments;
    for_each([&](int begin, int end, int) { segments.push_back({.begin = begin, .end = end}); });
    std::reverse(segments.begin(), segments.end());
    return Scheme::of_segments(segments);
  }

  std::set<int> kinds() const {
    std::set<int> kinds;
    for_each([&](int, int, int kind) { kinds.insert(kind); });
    return kinds;
  }
};

std::optional<Cut> best_cut(const Steps& steps, std::vector<bool> forbidden) {
  std::vector<double> us = steps.us();
  for (std::size_t kind = 0; kind < us.size(); ++kind) {
    us[kind] = forbidden[kind] ? kNever : us[kind];
  }
  std::vector<Best> best(static_cast<std::size_t>(steps.size()) + 1);
  best[0].us = 0;
  for (int end = 1; end <= steps.size(); ++end) {
    Best& here = best[static_cast<std::size_t>(end)];
    for (const Step& step : steps.ending_at(end)) {
      const double sum_us =
          best[static_cast<std::size_t>(step.begin)].us + us[static_cast<std::size_t>(step.kind)];
      if (sum_us < here.us) {
        here = {.us = sum_us, .last = step};
      }
    }
  }
  if (best.back().us == kNever) {
    return std::nullopt;
  }
  return Cut{.forbidden = std::move(forbidden), .best = std::move(best)};
}

}  // namespace

std::vector<Proposal> propose_schemes(const graph::Ir& ir, const OperatorOrder& order,
                                      GroupPlanner& planner, std::size_t count) {
  const Steps steps(order, ir, planner);
  // Whatever else is a cut lacks a kind of the best one, or has equal segments cut differently: so
  // the next best lacks one kind of it, and so on from there.
  std::vector<Cut> open;
  std::vector<Proposal> proposals;
  std::set<std::vector<bool>> tried;
  if (auto cut = best_cut(steps, std::vector<bool>(steps.us().size(), false))) {
    open.push_back(*std::move(cut));
  }
  while (!open.empty() && proposals.size() < count) {
    const auto next = std::min_element(open.begin(), open.end(),
                                       [](const Cut& a, const Cut& b) { return a.us() < b.us(); });
    const Cut cut = std::move(*next);
    open.erase(next);
    Scheme scheme = cut.scheme();
    const bool is_known =
        std::any_of(proposals.begin(), proposals.end(),
                    [&](const Proposal& proposal) { return proposal.scheme == scheme; });
    if (!is_known) {
      proposals.push_back({.scheme = std::move(scheme), .predicted_us = cut.us()});
    }
    for (const int kind : proposals.size() < count ? cut.kinds() : std::set<int>()) {
      std::vector<bool> forbidden = cut.forbidden;
      forbidden[static_cast<std::size_t>(kind)] = true;
      if (tried.insert(forbidden).second) {
        if (auto other = best_cut(steps, std::move(forbidden))) {
          open.push_back(*std::move(other));
        }
      }
    }
  }
  return proposals;
}

std::vector<Proposal> propose_schemes(const graph::Ir& ir, const TemplateLibrary& templates,
                                      const base::DeviceProfile& device,
                                      const BuildLayout& build_layout, std::size_t count) {
  MaskArraysByMask masks(build_layout);
  const graph::Ir prepared = prepare(ir, templates, device, masks);
  const OperatorOrder order = operator_order(prepared);
  const Decisions none;
  GroupPlanner planner(prepared, order, templates, device, masks, none);
  return propose_schemes(prepared, order, planner, count);
}

}  // namespace stof::fusion
