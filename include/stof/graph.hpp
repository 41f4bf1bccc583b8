#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stof/dtype.hpp"
#include "stof/mask.hpp"
#include "stof/tensor.hpp"

namespace stof {

namespace graph {
struct Ir;
struct Operator;
struct Value;
}  // namespace graph

// A value of a graph: a handle that may be copied freely and outlives the graph. An empty handle
// stands for "no tensor" where one is optional.
class Tensor {
 public:
  Tensor() = default;

  // Of an empty handle these throw GraphError.
  const std::string& name() const;
  const Shape& shape() const;
  DType dtype() const;
  explicit operator bool() const { return value_ != nullptr; }

 private:
  friend class Graph;

  Tensor(int id, std::shared_ptr<const graph::Value> value) : id_(id), value_(std::move(value)) {}

  int id_ = -1;
  std::shared_ptr<const graph::Value> value_;
};

// How a weight matrix of `in` inputs and `out` outputs lies in memory.
enum class WeightLayout : std::uint8_t { OutIn, InOut };  // [out, in] (PyTorch), [in, out]

struct WeightOptions {
  WeightLayout layout = WeightLayout::OutIn;
};

enum class Activation : std::uint8_t { Relu, Gelu, GeluTanh, Silu, Tanh, Sigmoid };

enum class MaskForm : std::uint8_t { KeyLengths, CuSeqlens, Dense, Csr };

struct MaskInputOptions {
  MaskForm form = MaskForm::Dense;
  // Bound on the 64 x 64 tiles that are neither empty nor full for which there is room on a GPU;
  // 0 = no bound. With a bound, Dense masks always have tiles; without one they have none where
  // reading all of their bytes should be faster.
  std::int64_t max_part_tiles = 0;
  Mask like = {};  // a sample of what arrives, which shows a key: drives selection and tuning
};

// A mask whose content is known at run time, with the graph inputs that carry it:
// KeyLengths "m" int32 [batch]; CuSeqlens "m" int32 [documents + 1]; Dense "m" bool
// [batch or 1, heads or 1, q_len, kv_len]; Csr "m.row_ptr" int32 [q_len + 1], "m.col_idx" int32
// [n]. KeyLengths where the attention has no kv_lengths are what those are.
struct MaskInput {
  MaskForm form = MaskForm::Dense;
  std::vector<Tensor> tensors = {};
  std::int64_t max_part_tiles = 0;
  Mask like = {};
};

struct AttentionOptions {
  // What is not seen may be multiplied by zero all the same: values of all keys have to be finite.
  Mask mask = {};                            // fixed mask …
  std::optional<MaskInput> mask_input = {};  // … and, or, one that arrives at run time
  std::optional<Score> score = {};           // changes q·k * scale before the mask
  std::optional<double> scale = {};          // 1 / sqrt(head_dim) by default
  // int32 [batch]: keys from there on are not seen, and they and their values may be anything, NaN
  // too. One outside [0, kv_len] is an error on the
  // reference backend and is moved to its nearest end on a GPU.
  Tensor kv_lengths = {};
};

struct AttentionResult {
  Tensor output;  // [batch, heads, q_len, value_dim]
  Tensor
      lse;  // float32 [batch, heads, q_len]: log of the sum of exponentials; -inf for an empty row
};

enum class RotaryStyle : std::uint8_t {
  Half,        // pairs (i, i + dim / 2), as LLaMA in Hugging Face
  Interleaved  // pairs (2 i, 2 i + 1)
};

struct RotaryOptions {
  double theta = 10000.0;
  RotaryStyle style = RotaryStyle::Half;
  int rotary_dim = 0;         // leading channels that turn; 0 for all
  std::int64_t position = 0;  // of the first row, where no positions are given
};

struct SplitHeads {
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;  // 0: as many as heads
};

struct QkvHeads {
  Tensor q;  // [batch, heads, seq, head_dim]
  Tensor k;  // [batch, kv_heads, seq, head_dim]
  Tensor v;
};

// Builds a Transformer graph. A call whose shapes, dtypes or names do not fit throws GraphError
// that names the operator, the shapes and the rule. A copy is independent, and handles made before
// it serve both. Elementwise operators broadcast as NumPy does. Unless said otherwise a result has
// the dtype of the first argument.
class Graph {
 public:
  explicit Graph(std::string_view name = "graph");
  Graph(const Graph& other);
  Graph(Graph&& other) noexcept;
  Graph& operator=(const Graph& other);
  Graph& operator=(Graph&& other) noexcept;
  ~Graph();

  const std::string& name() const;

  // A symbolic extent with its inclusive range. The same name must have the same range, also where
  // a shape brings a Dim::symbol.
  Dim dim(const std::string& name, std::int64_t min, std::int64_t max);

  // Names are unique among inputs and weights, 1 to 256 printable ASCII characters; outputs have
  // their own names. A result has the name of its operator and a number, such as add_7.
  Tensor input(const std::string& name, const Shape& shape, DType dtype);
  Tensor weight(const std::string& name, const Shape& shape, DType dtype,
                WeightOptions options = {});
  // shape is that of the tensor that carries the mask; for Csr it is {q_len, n}.
  MaskInput mask_input(const std::string& name, const Shape& shape,
                       const MaskInputOptions& options);
  void output(const std::string& name, const Tensor& value);

  // The input, weight or result of this name. Throws GraphError where there is none.
  Tensor tensor(std::string_view name) const;

  // Makes a tensor of rank 1 to 4 readable in masks and scores, under its own name or another one.
  Capture capture(const Tensor& value, const std::string& name = {});

  // x [..., rows, in] times the weight, plus bias [out]: [..., rows, out].
  Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {});
  // [..., m, k] x [..., k, n]; leading extents broadcast; a transposed operand is [..., k, m] or
  // [..., n, k].
  Tensor matmul(const Tensor& a, const Tensor& b, bool transpose_a = false,
                bool transpose_b = false);

  // q [batch, heads, q_len, head_dim], k [batch, kv_heads, kv_len, head_dim], v [batch, kv_heads,
  // kv_len, value_dim]; kv_heads divides heads.
  Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v,
                   const AttentionOptions& options = {});
  AttentionResult attention_with_lse(const Tensor& q, const Tensor& k, const Tensor& v,
                                     const AttentionOptions& options = {});

  Tensor add(const Tensor& a, const Tensor& b);
  Tensor subtract(const Tensor& a, const Tensor& b);
  Tensor multiply(const Tensor& a, const Tensor& b);
  Tensor divide(const Tensor& a, const Tensor& b);
  Tensor maximum(const Tensor& a, const Tensor& b);
  Tensor minimum(const Tensor& a, const Tensor& b);
  Tensor scale(const Tensor& x, double factor);
  Tensor shift(const Tensor& x, double addend);

  Tensor activation(const Tensor& x, Activation kind);
  Tensor relu(const Tensor& x);
  Tensor gelu(const Tensor& x);       // x Φ(x), exact
  Tensor gelu_tanh(const Tensor& x);  // the tanh approximation
  Tensor silu(const Tensor& x);
  Tensor tanh(const Tensor& x);
  Tensor sigmoid(const Tensor& x);
  Tensor exp(const Tensor& x);
  Tensor sqrt(const Tensor& x);
  Tensor reciprocal(const Tensor& x);
  Tensor cast(const Tensor& x, DType dtype);

  // Over the last axis; gamma and beta [hidden], beta may be empty.
  Tensor layer_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta,
                    double epsilon = 1e-5);
  Tensor rms_norm(const Tensor& x, const Tensor& gain, double epsilon = 1e-6);
  Tensor softmax(const Tensor& x);  // over the last axis
  Tensor reduce_sum(const Tensor& x, int axis, bool keep_axis = false);
  Tensor reduce_mean(const Tensor& x, int axis, bool keep_axis = false);
  Tensor reduce_max(const Tensor& x, int axis, bool keep_axis = false);

  // Rows of table [vocabulary, hidden] at ids (int32 or int64) [...]: [..., hidden]. An id outside
  // the table is an error on the reference backend and reads the nearest row on the GPU.
  Tensor embedding(const Tensor& table, const Tensor& ids);
  // Rotary position embedding (Su et al., "RoFormer", 2021) of x [batch, heads, seq, head_dim], at
  // `positions` (int32 [seq] or [batch, seq]) or options.position, + 1, ….
  Tensor rotary(const Tensor& x, const RotaryOptions& options = {}, const Tensor& positions = {});
  // Images [batch, channels, height, width] to rows of patches [batch, (height / size) * (width /
  // size), channels * size * size], each row in the order channel, row, column.
  Tensor patches(const Tensor& images, std::int64_t size);

  // Views, no copy. One extent of reshape may be -1.
  Tensor reshape(const Tensor& x, const Shape& shape);
  Tensor transpose(const Tensor& x, std::span<const int> permutation);
  Tensor transpose(const Tensor& x, std::initializer_list<int> permutation);
  Tensor slice(const Tensor& x, int axis, const Dim& start, const Dim& length);
  Tensor concat(std::span<const Tensor> parts, int axis);  // copies
  Tensor concat(std::initializer_list<Tensor> parts, int axis);
  Tensor broadcast(const Tensor& x, const Shape& shape);

  // [batch, seq, heads * head_dim] to [batch, heads, seq, head_dim], and back.
  Tensor split_heads(const Tensor& x, std::int64_t heads);
  Tensor merge_heads(const Tensor& x);
  // [batch, seq, (heads + 2 kv_heads) * head_dim], q then k then v.
  QkvHeads split_qkv(const Tensor& x, const SplitHeads& options);

  // Schema version, operators, masks and scores as text; data of masks and tables by digest.
  struct Saved;
  Saved to_json() const;
  // Throws GraphError that names the place in the JSON, such as /operators/3/inputs/0, what is
  // wrong there and what was expected.
  static Graph from_json(std::string_view json, const std::map<std::string, HostTensor>& data = {});
  // The same as files: JSON, and the data of masks and tables as safetensors, where there is any.
  // Each is replaced whole or not at all. Throws GraphError: data and no file for it, a file that
  // cannot be written or read, and what from_json throws, after the name of the file.
  void save(const std::filesystem::path& json, const std::filesystem::path& data = {}) const;
  static Graph load(const std::filesystem::path& json, const std::filesystem::path& data = {});

  std::string dump() const;  // one line an operator, for people
  // 32 hexadecimal digits, the same for graphs that differ only in names and in the order of
  // building, and never for others. Two kinds of graphs may have several digests, by that order:
  // those with outputs so symmetric, such as a ring of thousands, that telling them apart passes a
  // bound on the work; those in which only extents of several symbols, such as a - b, tell symbols
  // apart.
  std::string canonical_digest() const;

  const graph::Ir& ir() const { return *ir_; }
  explicit Graph(graph::Ir ir);

 private:
  // Appends the operator, which reads `inputs`; what it gives.
  std::vector<Tensor> append(graph::Operator op, std::span<const Tensor> inputs);
  Tensor append_one(graph::Operator op, std::initializer_list<Tensor> inputs);
  // The id of a handle that an operator takes by the name `argument`.
  int id(std::string_view op, std::string_view argument, const Tensor& tensor) const;
  Tensor handle(int id) const;

  std::unique_ptr<graph::Ir> ir_;
};

struct Graph::Saved {
  std::string json;
  std::map<std::string, HostTensor> data;  // by digest; a safetensors file holds it as it is
};

}  // namespace stof
