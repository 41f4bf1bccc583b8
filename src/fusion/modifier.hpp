#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "expr/cuda_text.hpp"
#include "expr/skeleton.hpp"
#include "fusion/placement.hpp"
#include "graph/ir.hpp"
#include "kernel/program.hpp"
#include "mask/extent.hpp"

namespace stof::fusion {

// An argument that an expression brings along: a literal, an array or a tensor's pointer, extents
// and strides.
struct ModifierArgument {
  std::string type;  // of C: "const int*", "float"
  std::string name;
  kernel::LaunchArgument value = nullptr;  // of a scalar
  kernel::ConstantArray table = nullptr;   // of a pointer to a table
  View capture = {};                       // of a pointer to a tensor, where root >= 0
};

// The predicate and the score of one attention as CUDA text, and what they read: literals are
// arguments, so that expressions of one form share a kernel.
class Modifier {
 public:
  // Values of captures by their names in the expressions.
  using Captures = std::map<std::string, int>;

  Modifier(const graph::Ir& ir, const Placement& placement, const mask::Extent& extent);

  // `field` is "predicate" or "score". Throws GraphError for a captured tensor without strides.
  void add(const char* field, const Expr& expression, const Captures& captures);

  // What templates call `mod`, and the arguments of its parameters, in their order.
  const nlohmann::json& variables() const { return variables_; }
  const std::vector<ModifierArgument>& arguments() const { return arguments_; }
  bool has_score() const { return variables_.at("score").is_string(); }
  // Whether a score reads tables or tensors at places that depend on the key; whether what it
  // computes takes many registers, as tanh and random numbers do; and of how many tensors kernels
  // keep tiles, since their rows lie along keys, be it of bytes and no others that depend on it.
  bool score_reads_by_key() const { return variables_.at("score_reads_by_key").get<bool>(); }
  bool score_reads_bytes_alone() const {
    return variables_.at("score_reads_bytes_alone").get<bool>();
  }
  bool score_takes_registers() const { return takes_registers_; }
  std::int64_t tile_count() const;
  bool has_tiles() const { return tile_count() > 0; }
  bool reads_captures() const { return !variables_.at("captures").empty(); }

 private:
  // One expression on its way to text.
  struct Text {
    std::string field;
    Expr expr;
    expr::CudaNames names;
    expr::Ranges ranges;
    expr::CudaUse use;  // of scores, which are those of queries and keys that exist
  };

  void add_literal(Text& text, const expr::Skeleton::Argument& literal);
  void add_table(Text& text, const std::string& name, const Table& table);
  void add_capture(Text& text, const std::string& name, const Capture& capture, int value);
  // The number of entries of a table, or of a captured tensor along an axis.
  void add_size(Text& text, const std::string& name, const std::string& called, std::int64_t size);
  void add_argument(ModifierArgument argument);

  const graph::Ir& ir_;
  const Placement& placement_;
  mask::Extent extent_;
  nlohmann::json variables_;
  bool takes_registers_ = false;
  std::vector<ModifierArgument> arguments_;
};

}  // namespace stof::fusion
