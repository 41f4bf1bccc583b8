#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "stof/graph.hpp"

namespace stof::graph {

// What an operator is; op_info.hpp has its name, class, arity and attributes.
enum class OpKind : std::uint8_t {
  // composites, which normalise() takes apart
  Linear,
  Attention,
  // compute-intensive
  MatMul,
  // memory-intensive
  Add,
  Subtract,
  Multiply,
  Divide,
  Maximum,
  Minimum,
  Scale,
  Shift,
  Relu,
  Gelu,
  GeluTanh,
  Silu,
  Tanh,
  Sigmoid,
  Exp,
  Sqrt,
  Reciprocal,
  ApplyMoments,  // what row_moments is for, element by element
  Cast,
  LayerNorm,
  RmsNorm,
  RowMoments,  // what a norm takes of a row: made by rewrites of it
  Softmax,
  Score,  // score modifier of attention
  Mask,   // attention mask: hidden scores become -inf
  ReduceSum,
  ReduceMean,
  ReduceMax,
  Embedding,
  Rotary,
  RotaryHeads,  // rotary of heads that lie side by side: made by rewrites of it
  Patches,
  Concat,
  // views
  Reshape,
  Transpose,
  Slice,
  Broadcast,
};

// Masks and scores are attributes; what they capture, Operator::captures tells.
using Attribute = std::variant<bool, std::int64_t, double, std::string, std::vector<std::int64_t>,
                               DType, Dim, Shape, Mask, Expr>;

struct Operator {
  OpKind kind = OpKind::Add;
  // Ids of values; -1 for an optional one that is absent before one that is not. The last is never
  // -1.
  std::vector<int> inputs = {};
  std::vector<int> outputs = {};                     // ids of values
  std::map<std::string, Attribute> attributes = {};  // as op_info.hpp lists them
  std::map<std::string, int> captures = {};          // name in the mask or score -> id of the value
  int segment = -1;  // operators that share one >= 0 are never fused apart
};

enum class ValueRole : std::uint8_t { Input, Weight, Result };

struct Value {
  std::string name;  // unique in the graph
  Shape shape;
  DType dtype = DType::Float32;
  ValueRole role = ValueRole::Result;
  WeightLayout layout = WeightLayout::OutIn;  // of weights
  int producer = -1;                          // index of an operator
};

struct Output {
  std::string name;
  int value = -1;
};

// A graph as plain data. Operators stand in topological order.
struct Ir {
  std::string name;
  std::map<std::string, Dim> dims;
  std::vector<std::shared_ptr<const Value>> values;
  std::map<std::string, int, std::less<>> ids;  // name of a value -> its id
  std::vector<Operator> operators;
  std::vector<Output> outputs;
  std::map<std::string, int> captures;  // what Graph::capture handed out: name -> id of the value
};

// An id as an index.
constexpr std::size_t at(int id) {
  return static_cast<std::size_t>(id);
}

inline const Value& value_at(const Ir& ir, int id) {
  return *ir.values[at(id)];
}

}  // namespace stof::graph
