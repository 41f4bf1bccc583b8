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
        keys_(ir, order, planner.placement()),
        ending_at_(order.size() + 1) {
    for (int begin = 0; begin < size(); ++begin) {
      add_from(begin);
    }
  }

  int size() const { return static_cast<int>(order_.size()); }
  std::size_t kind_count() const { return us_.size(); }
  double us(int kind) const { return us_[static_cast<std::size_t>(kind)]; }
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
    if (us(known->second) < kNever) {
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

// A cut of the whole order, the best one without some kinds of segments.
struct Cut {
  double us = 0;
  std::vector<Segment> segments;
  std::vector<int> kinds;       // that it has, each once, in order
  std::vector<bool> forbidden;  // which kinds it may not have
};

// The best cut of the first operators, for each number of them.
std::optional<Cut> best_cut(const Steps& steps, std::vector<bool> forbidden) {
  struct Best {
    double us = kNever;
    Step last;
  };
  std::vector<Best> best(static_cast<std::size_t>(steps.size()) + 1);
  best[0].us = 0;
  for (int end = 1; end <= steps.size(); ++end) {
    Best& here = best[static_cast<std::size_t>(end)];
    for (const Step& step : steps.ending_at(end)) {
      const double us = best[static_cast<std::size_t>(step.begin)].us + steps.us(step.kind);
      if (us < here.us && !forbidden[static_cast<std::size_t>(step.kind)]) {
        here = {.us = us, .last = step};
      }
    }
  }
  if (best.back().us == kNever) {
    return std::nullopt;
  }
  std::vector<int> kinds;
  Cut cut{.us = best.back().us, .segments = {}, .kinds = {}, .forbidden = std::move(forbidden)};
  for (int end = steps.size(); end > 0;) {
    const Step& last = best[static_cast<std::size_t>(end)].last;
    cut.segments.push_back({.begin = last.begin, .end = end});
    kinds.push_back(last.kind);
    end = last.begin;
  }
  std::reverse(cut.segments.begin(), cut.segments.end());
  std::sort(kinds.begin(), kinds.end());
  kinds.erase(std::unique(kinds.begin(), kinds.end()), kinds.end());
  cut.kinds = std::move(kinds);
  return cut;
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
  if (auto cut = best_cut(steps, std::vector<bool>(steps.kind_count(), false))) {
    open.push_back(*std::move(cut));
  }
  while (!open.empty() && proposals.size() < count) {
    const auto next = std::min_element(open.begin(), open.end(),
                                       [](const Cut& a, const Cut& b) { return a.us < b.us; });
    const Cut cut = std::move(*next);
    open.erase(next);
    Scheme scheme = Scheme::of_segments(cut.segments);
    const bool is_known =
        std::any_of(proposals.begin(), proposals.end(),
                    [&](const Proposal& proposal) { return proposal.scheme == scheme; });
    if (!is_known) {
      proposals.push_back({.scheme = std::move(scheme), .predicted_us = cut.us});
    }
    for (const int kind : proposals.size() < count ? cut.kinds : std::vector<int>()) {
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
  const graph::Ir prepared = prepare(ir, masks);
  const OperatorOrder order = operator_order(prepared);
  const Decisions none;
  GroupPlanner planner(prepared, order, templates, device, masks, none);
  return propose_schemes(prepared, order, planner, count);
}

}  // namespace stof::fusion
