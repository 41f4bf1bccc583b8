#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "contract/contract.hpp"
#include "graph/ir.hpp"

namespace stof::fusion {

// Inputs and captures of an operator, those that are absent left out.
std::vector<int> values_read(const graph::Operator& op);

// The operators that read each value; one for the border of the graph where it is an output.
class Readers {
 public:
  static constexpr int kBorder = -1;

  explicit Readers(const graph::Ir& ir);

  const std::vector<int>& of(int value) const { return readers_[static_cast<std::size_t>(value)]; }
  // The only operator that reads a value; nothing where there is another reader or none.
  std::optional<int> only(int value) const;

 private:
  std::vector<std::vector<int>> readers_;
};

// Where a pattern lies in a graph.
struct Match {
  std::vector<int> operators;         // in the order of the steps; absent ones are left out
  std::map<std::string, int> values;  // of the pattern's names, those of absent operators too
  std::map<std::string, double> attributes;
  std::map<std::string, std::string> alternatives;  // operators that stand in the place of others
};

// What patterns may ask of an operator: its attributes, of rotary and rotary_heads whether it is
// "interleaved" for its style, and of the latter the rows of a sequence as "seq".
std::vector<std::string> pattern_attributes(graph::OpKind kind);

// Whether the port is the second factor of a product that lies as [n, k] in the graph and is [k, n]
// to the template, which has asked how it lies: "matmul(x, w; transpose_b: bool)".
bool is_turned(const contract::TemplateContract& contract, const Match& match,
               const std::string& port);

// The ways in which the pattern fits with its first required step at that operator. Values inside
// it are read by nobody outside but where the contract lets them escape. Dtypes, shapes and
// constraints are not looked at; `is_free` says which operators may take part.
std::vector<Match> find_matches(const contract::TemplateContract& contract, const graph::Ir& ir,
                                const Readers& readers, int op, const std::vector<bool>& is_free);

}  // namespace stof::fusion
