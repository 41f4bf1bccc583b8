#pragma once

#include <cstddef>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "fusion/chain.hpp"
#include "fusion/match.hpp"
#include "fusion/template_library.hpp"
#include "graph/ir.hpp"

namespace stof::fusion {

// One template that may run a group, and where its pattern lies.
struct Candidate {
  const KernelTemplate* kernel = nullptr;
  Match match;
};

// Operators that one kernel runs: a pattern, and a chain behind it for the hook. An elementwise
// group is a chain alone, for templates of "y = copy(x)": their x is the chain's value. A concat is
// a copy of each of its parts.
struct Group {
  std::vector<int> operators;
  // Structural matches, the largest patterns only. Without a chain behind them some may have no
  // hook.
  std::vector<Candidate> candidates;
  Chain chain;  // its value: what the hook sees
};

// The templates of "y = copy(x)". Throws GraphError where there is none.
std::vector<Candidate> copy_candidates(const TemplateLibrary& templates);

// The port whose shape the tensor of a match of several operators cannot have: which of two addends
// is the bias, say. Null where all can; patterns of one operator have canonical forms of their own
// (see make_use).
const contract::Port* misshapen_port(const contract::TemplateContract& contract, const Match& match,
                                     const graph::Ir& ir);

// Finds what one kernel can run together. Dtypes, constraints and restrictions of the templates are
// not looked at: they need a place in memory and a device (see Use).
class GroupFinder {
 public:
  // Both are kept by reference. Throws GraphError where no template copies tensors.
  GroupFinder(const graph::Ir& ir, const TemplateLibrary& templates);

  // The groups without a chain behind them in which the operator is the first required step of a
  // pattern, or is copied; most operators first. Others that take part are free.
  std::vector<Group> groups_at(int op, const std::vector<bool>& is_free) const;

  // The group with one more operator in the chain, for those that have the hook; nothing where none
  // fits there that is free.
  std::optional<Group> longer(const Group& group, const std::vector<bool>& is_free) const;

  // The groups of just these operators: those with the most of them in the pattern first. None
  // where no template takes them together.
  std::vector<Group> groups_of(std::span<const int> operators) const;

  // The most operators that a group can have which are not elementwise.
  int most_in_pattern() const { return most_in_pattern_; }

  const Readers& readers() const { return readers_; }

 private:
  const graph::Operator& at(int op) const { return ir_.operators[static_cast<std::size_t>(op)]; }

  // A template by what can tell early that its pattern does not fit.
  struct Pattern {
    const KernelTemplate* kernel = nullptr;
    std::size_t required = 0;  // steps
    int apart = 0;             // steps, optional ones too, that no chain takes: not elementwise
  };
  // Of the operators that are free, and how many of those no chain takes, where a group has to have
  // all of them.
  struct Wanted {
    std::size_t most = std::numeric_limits<std::size_t>::max();
    int apart = 0;
  };

  std::vector<Group> groups_at(int op, const std::vector<bool>& is_free, Wanted wanted) const;
  void add_pattern(const KernelTemplate& kernel);
  Group copy_group(int op) const;
  static int hooked_value(const Candidate& candidate);
  // Sets what a chain follows, and takes out the candidates that would have it follow another
  // value.
  static std::optional<Group> split_by_hook(Group& group);
  std::size_t count_operands(const Chain& chain) const;
  bool operands_join(const Group& group) const;
  // Whether a kernel would read from memory what it writes itself: the result of a pattern as an
  // operand of the chain, or a view of any result.
  bool reads_its_own(const Group& group) const;

  const graph::Ir& ir_;
  std::vector<Candidate> copies_;
  Readers readers_;
  std::map<graph::OpKind, std::vector<Pattern>>
      patterns_;  // by what the first required step can be
  int most_in_pattern_ = 1;
};

}  // namespace stof::fusion
