#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "graph/inference.hpp"
#include "graph/masking.hpp"

namespace stof::graph {

namespace {

constexpr std::string_view kQueryAxes = "[batch, heads, q_len, head_dim]";
constexpr std::string_view kKeyAxes = "[batch, kv_heads, kv_len, head_dim]";
constexpr std::string_view kValueAxes = "[batch, kv_heads, kv_len, value_dim]";
constexpr std::string_view kScoreAxes = "[batch, heads, q_len, kv_len]";

void take_equal(const Inference& inference, std::string_view what, int a, int b, int axis) {
  const Dim& of_a = inference.shape(a)[axis];
  const Dim& of_b = inference.shape(b)[axis];
  if (!(of_a == of_b)) {
    inference.fail("{} of {} is {}, that of {} is {}", what, inference.text(a), of_a.text(),
                   inference.text(b), of_b.text());
  }
}

void check_heads(const Inference& inference) {
  const Dim& heads = inference.shape(0)[1];
  const Dim& kv_heads = inference.shape(1)[1];
  if (heads == kv_heads) {
    return;
  }
  const bool is_static = heads.is_static() && kv_heads.is_static();
  if (!is_static || kv_heads.value() <= 0 || heads.value() % kv_heads.value() != 0) {
    inference.fail("{} heads of {} do not divide {} heads of {}", kv_heads.text(),
                   inference.text(1), heads.text(), inference.text(0));
  }
}

}  // namespace

std::vector<TensorType> infer_attention(const Inference& inference) {
  inference.take_floating(0);
  inference.take_same_dtype(1, 0);
  inference.take_same_dtype(2, 0);
  inference.take_axes(0, 4, kQueryAxes);
  inference.take_axes(1, 4, kKeyAxes);
  inference.take_axes(2, 4, kValueAxes);
  take_equal(inference, "batch", 0, 1, 0);
  take_equal(inference, "batch", 0, 2, 0);
  take_equal(inference, "kv_heads", 1, 2, 1);
  take_equal(inference, "kv_len", 1, 2, 2);
  take_equal(inference, "head_dim", 0, 1, 3);
  check_heads(inference);
  inference.take_finite("scale");
  const Shape& q = inference.shape(0);
  const ScoreExtent extent{
      .batch = q[0], .heads = q[1], .q_len = q[2], .kv_len = inference.shape(1)[2]};
  check_masking(inference, 3, extent);
  check_captures(inference);
  std::vector<TensorType> results = {
      {Shape{q[0], q[1], q[2], inference.shape(2)[3]}, inference.dtype(0)}};
  if (inference.output_count() == 2) {
    results.push_back({Shape{q[0], q[1], q[2]}, DType::Float32});
  }
  return results;
}

std::vector<TensorType> infer_score(const Inference& inference) {
  inference.take_floating(0);
  inference.take_axes(0, 4, kScoreAxes);
  check_captures(inference);
  return {inference.like(0)};
}

std::vector<TensorType> infer_mask(const Inference& inference) {
  inference.take_floating(0);
  inference.take_axes(0, 4, kScoreAxes);
  const ScoreExtent extent = score_extent(inference.shape(0));
  check_masking(inference, 1, extent);
  check_captures(inference);
  return {inference.like(0)};
}

}  // namespace stof::graph
