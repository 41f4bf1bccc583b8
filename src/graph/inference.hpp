#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "graph/infer.hpp"
#include "graph/op_info.hpp"
#include "stof/error.hpp"

namespace stof::graph {

// One operator while its result is worked out: its inputs by position, and errors that begin with
// its name.
class Inference {
 public:
  Inference(const Ir& ir, const Operator& op) : ir_(ir), op_(op) {}

  const Operator& op() const { return op_; }
  int input_count() const { return static_cast<int>(op_.inputs.size()); }
  int output_count() const { return static_cast<int>(op_.outputs.size()); }
  bool has(int position) const { return input_or_none(op_, position) >= 0; }
  const Value& in(int position) const;
  const Shape& shape(int position) const { return in(position).shape; }
  DType dtype(int position) const { return in(position).dtype; }
  const Value& value(int id) const;

  std::string label(int position) const;  // "gamma"
  std::string text(int position) const;   // "gamma [768]"

  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    throw GraphError(
        fmt::format("{}: {}", name(op_.kind), fmt::format(format, std::forward<Args>(args)...)));
  }

  // Each throws where the input is another.
  void take_rank(int position, int rank) const;
  void take_axes(int position, int rank, std::string_view axes) const;  // "[batch, heads, …]"
  void take_floating(int position) const;
  void take_dtype(int position, DType dtype) const;
  void take_same_dtype(int position, int other) const;
  void take_finite(std::string_view attribute_name) const;
  // An axis attribute that is at least 0 and below the rank.
  int take_axis(int rank) const;

  TensorType like(int position) const { return {shape(position), dtype(position)}; }

 private:
  const Ir& ir_;
  const Operator& op_;
};

// infer() by kind of operator.
std::vector<TensorType> infer_linear(const Inference& inference);
std::vector<TensorType> infer_matmul(const Inference& inference);
std::vector<TensorType> infer_attention(const Inference& inference);
std::vector<TensorType> infer_score(const Inference& inference);
std::vector<TensorType> infer_mask(const Inference& inference);
std::vector<TensorType> infer_reduction(const Inference& inference);
std::vector<TensorType> infer_embedding(const Inference& inference);
std::vector<TensorType> infer_rotary(const Inference& inference);
std::vector<TensorType> infer_rotary_heads(const Inference& inference);
std::vector<TensorType> infer_patches(const Inference& inference);
std::vector<TensorType> infer_concat(const Inference& inference);
std::vector<TensorType> infer_reshape(const Inference& inference);
std::vector<TensorType> infer_transpose(const Inference& inference);
std::vector<TensorType> infer_slice(const Inference& inference);
std::vector<TensorType> infer_broadcast(const Inference& inference);

}  // namespace stof::graph
