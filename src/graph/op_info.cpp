#include "graph/op_info.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

#include <fmt/format.h>

#include "base/text.hpp"
#include "stof/error.hpp"

namespace stof::graph {
namespace {

using enum AttributeType;

constexpr auto kCi = OpClass::ComputeIntensive;
constexpr auto kMi = OpClass::MemoryIntensive;
constexpr auto kView = OpClass::View;

OpInfo composite(OpKind kind, std::string_view name, std::vector<InputInfo> inputs,
                 std::vector<AttributeInfo> attributes, std::string_view meaning) {
  return {.kind = kind,
          .name = name,
          .op_class = kCi,
          .is_composite = true,
          .inputs = std::move(inputs),
          .attributes = std::move(attributes),
          .meaning = meaning};
}

OpInfo unary(OpKind kind, std::string_view name, std::vector<AttributeInfo> attributes,
             std::string_view meaning, OpClass op_class = kMi) {
  return {.kind = kind,
          .name = name,
          .op_class = op_class,
          .inputs = {{"x"}},
          .attributes = std::move(attributes),
          .meaning = meaning};
}

OpInfo binary(OpKind kind, std::string_view name, std::string_view meaning) {
  return {
      .kind = kind, .name = name, .op_class = kMi, .inputs = {{"a"}, {"b"}}, .meaning = meaning};
}

OpInfo with_inputs(OpKind kind, std::string_view name, std::vector<InputInfo> inputs,
                   std::vector<AttributeInfo> attributes, std::string_view meaning) {
  return {.kind = kind,
          .name = name,
          .op_class = kMi,
          .inputs = std::move(inputs),
          .attributes = std::move(attributes),
          .meaning = meaning};
}

void add_composites(std::vector<OpInfo>& table) {
  table.push_back(composite(
      OpKind::Linear, "linear", {{"x"}, {"weight"}, {"bias", true}}, {},
      "x [..., rows, in] times the weight, whose value says how it lies ([out, in] or [in, out]), "
      "plus bias [out]"));
  table.push_back(composite(
      OpKind::Attention, "attention",
      {{"q"}, {"k"}, {"v"}, {"kv_lengths", true}, {"mask_data", true}, {"mask_columns", true}},
      {{"scale", Float},
       {"score", Expr, true},
       {"mask", Mask, true},
       {"mask_form", String, true},
       {"max_part_tiles", Int, true},
       {"like", Mask, true}},
      "softmax(mask(score(q k^T * scale))) v, where query head h reads key and value head "
      "h / (heads / kv_heads); inputs 3 to 5 are those 1 to 3 of mask; a second output is the "
      "log-sum-exp as in softmax"));
  table.back().max_outputs = 2;
}

void add_matmul(std::vector<OpInfo>& table) {
  table.push_back(with_inputs(
      OpKind::MatMul, "matmul", {{"a"}, {"b"}},
      {{"transpose_a", Bool}, {"transpose_b", Bool}, {"group", Int, true}, {"dtype", DType, true}},
      "a [..., m, k] times b [..., k, n]; a transposed operand is [..., k, m] or [..., n, k]; "
      "leading extents broadcast; with group g > 1, head h of a (axis -3) meets head h / g of b; "
      "dtype is that of the result where it is not that of a, and a and b may then differ"));
  table.back().op_class = kCi;
}

void add_elementwise(std::vector<OpInfo>& table) {
  table.push_back(binary(OpKind::Add, "add", "a + b, broadcast as NumPy does"));
  table.push_back(binary(OpKind::Subtract, "subtract", "a - b, broadcast"));
  table.push_back(binary(OpKind::Multiply, "multiply", "a * b, broadcast"));
  table.push_back(binary(OpKind::Divide, "divide", "a / b, broadcast"));
  table.push_back(binary(OpKind::Maximum, "maximum", "the larger, broadcast; NaN if either is"));
  table.push_back(binary(OpKind::Minimum, "minimum", "the smaller, broadcast; NaN if either is"));
  table.push_back(unary(OpKind::Scale, "scale", {{"factor", Float}}, "x * factor"));
  table.push_back(unary(OpKind::Shift, "shift", {{"addend", Float}}, "x + addend"));
  table.push_back(unary(OpKind::Relu, "relu", {}, "max(x, 0)"));
  table.push_back(unary(OpKind::Gelu, "gelu", {}, "x / 2 * (1 + erf(x / sqrt(2)))"));
  table.push_back(unary(OpKind::GeluTanh, "gelu_tanh", {},
                        "x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))"));
  table.push_back(unary(OpKind::Silu, "silu", {}, "x / (1 + exp(-x))"));
  table.push_back(unary(OpKind::Tanh, "tanh", {}, "tanh(x)"));
  table.push_back(unary(OpKind::Sigmoid, "sigmoid", {}, "1 / (1 + exp(-x))"));
  table.push_back(unary(OpKind::Exp, "exp", {}, "exp(x)"));
  table.push_back(unary(OpKind::Sqrt, "sqrt", {}, "sqrt(x)"));
  table.push_back(unary(OpKind::Reciprocal, "reciprocal", {}, "1 / x"));
  table.push_back(with_inputs(
      OpKind::ApplyMoments, "apply_moments",
      {{"x"}, {"factor"}, {"gain"}, {"mean", true}, {"shift", true}}, {},
      "(x - mean) * factor * gain + shift, where factor and mean are those of row_moments and gain "
      "and shift are as long as the last axis"));
  table.push_back(unary(OpKind::Cast, "cast", {{"dtype", DType}},
                        "x in another dtype; floats round to nearest even, to an integer towards "
                        "zero and to the nearest end of its range, NaN to 0; to bool, x != 0"));
}

void add_rows(std::vector<OpInfo>& table) {
  table.push_back(with_inputs(OpKind::LayerNorm, "layer_norm", {{"x"}, {"gamma"}, {"beta", true}},
                              {{"epsilon", Float}},
                              "(x - mean) / sqrt(variance + epsilon) * gamma + beta over the last "
                              "axis; the variance divides by the count"));
  table.push_back(with_inputs(OpKind::RmsNorm, "rms_norm", {{"x"}, {"gain"}}, {{"epsilon", Float}},
                              "x / sqrt(mean(x^2) + epsilon) * gain over the last axis"));
  table.push_back(
      unary(OpKind::RowMoments, "row_moments", {{"epsilon", Float}, {"centred", Bool}},
            "1 / sqrt(variance + epsilon) of each row along the last axis, or 1 / "
            "sqrt(mean(x^2) + epsilon) where it is not centred, float32 with 1 in place "
            "of that axis; a second output is the mean, or 0"));
  table.back().max_outputs = 2;
  table.push_back(unary(OpKind::Softmax, "softmax", {},
                        "exp(x) / sum(exp(x)) over the last axis, 0 in a row that is -inf "
                        "throughout; a second output, float32 without that axis, is "
                        "log(sum(exp(x))), -inf for such a row"));
  table.back().max_outputs = 2;
  table.push_back(unary(OpKind::Score, "score", {{"score", Expr}},
                        "the expression at each element of x [batch, heads, q_len, kv_len], which "
                        "it calls score"));
  table.push_back(with_inputs(
      OpKind::Mask, "mask",
      {{"x"}, {"kv_lengths", true}, {"mask_data", true}, {"mask_columns", true}},
      {{"mask", Mask, true},
       {"mask_form", String, true},
       {"max_part_tiles", Int, true},
       {"like", Mask, true}},
      "x [batch, heads, q_len, kv_len] with -inf where a key is hidden: by the attribute mask "
      "(none "
      "hides nothing), by k_pos >= kv_lengths[batch], or by the data of mask_form: key_lengths "
      "(k_pos >= mask_data[batch]), cu_seqlens (query and key in other documents), dense "
      "(mask_data is 0), csr (mask_data is row_ptr, and k_pos is not among mask_columns)"));
  const std::vector<AttributeInfo> reduction = {{"axis", Int}, {"keep_axis", Bool}};
  table.push_back(unary(OpKind::ReduceSum, "reduce_sum", reduction, "the sum over an axis"));
  table.push_back(unary(OpKind::ReduceMean, "reduce_mean", reduction, "the mean over an axis"));
  table.push_back(unary(OpKind::ReduceMax, "reduce_max", reduction,
                        "the largest over an axis; NaN if any is, -inf of none"));
}

void add_gathers(std::vector<OpInfo>& table) {
  table.push_back(with_inputs(OpKind::Embedding, "embedding", {{"table"}, {"ids"}}, {},
                              "the rows of table [vocabulary, hidden] at ids [...]"));
  table.push_back(with_inputs(
      OpKind::Rotary, "rotary", {{"x"}, {"positions", true}},
      {{"theta", Float}, {"style", String}, {"rotary_dim", Int}, {"position", Int}},
      "x [batch, heads, seq, head_dim] with pair i of its leading rotary_dim channels turned by "
      "p * theta^(-2 i / rotary_dim), where p is positions [seq] or [batch, seq], else position + "
      "row; style half pairs (i, i + rotary_dim / 2), interleaved (2 i, 2 i + 1)"));
  table.push_back(with_inputs(
      OpKind::RotaryHeads, "rotary_heads", {{"x"}, {"positions", true}},
      {{"theta", Float},
       {"style", String},
       {"rotary_dim", Int},
       {"position", Int},
       {"head_dim", Int},
       {"heads", Int}},
      "x [seq, channels] or [batch, seq, channels] whose first channels are `heads` heads of "
      "head_dim each, with each of these as rotary makes it"));
  table.push_back(unary(OpKind::Patches, "patches", {{"size", Int}},
                        "images [batch, channels, height, width] as rows of patches [batch, height "
                        "/ size * (width / size), channels * size * size], a row in the order "
                        "channel, row, column"));
  table.push_back(with_inputs(OpKind::Concat, "concat", {{"parts"}}, {{"axis", Int}},
                              "the parts one after another along an axis"));
  table.back().is_variadic = true;
}

void add_views(std::vector<OpInfo>& table) {
  table.push_back(unary(OpKind::Reshape, "reshape", {{"shape", Shape}},
                        "the same elements in row-major order in another shape", kView));
  table.push_back(unary(OpKind::Transpose, "transpose", {{"permutation", Ints}},
                        "axis i of the result is axis permutation[i] of x", kView));
  table.push_back(unary(OpKind::Slice, "slice", {{"axis", Int}, {"start", Dim}, {"length", Dim}},
                        "`length` entries of an axis from `start` on", kView));
  table.push_back(unary(OpKind::Broadcast, "broadcast", {{"shape", Shape}},
                        "x repeated to a shape as NumPy does", kView));
}

std::vector<OpInfo> make_table() {
  std::vector<OpInfo> table;
  add_composites(table);
  add_matmul(table);
  add_elementwise(table);
  add_rows(table);
  add_gathers(table);
  add_views(table);
  return table;
}

constexpr std::array<std::string_view, 10> kAttributeTypes = {
    "a bool",  "an integer", "a number", "a string", "a list of integers",
    "a dtype", "an extent",  "a shape",  "a mask",   "an expression"};
constexpr std::array<std::string_view, 4> kMaskForms = {"key_lengths", "cu_seqlens", "dense",
                                                        "csr"};
constexpr std::array<std::string_view, 3> kRoles = {"input", "weight", "result"};
constexpr std::array<std::string_view, 2> kLayouts = {"out_in", "in_out"};
constexpr std::array<std::string_view, 2> kRotaryStyles = {"half", "interleaved"};

template <typename Enum, std::size_t size>
std::optional<Enum> from_name(const std::array<std::string_view, size>& names,
                              std::string_view name) {
  const auto found = std::ranges::find(names, name);
  return found == names.end() ? std::optional<Enum>() : static_cast<Enum>(found - names.begin());
}

// A caller may cast any integer to an enumeration.
template <std::size_t size>
std::string_view name_of(const std::array<std::string_view, size>& names, std::string_view what,
                         std::size_t index) {
  if (index >= size) {
    throw GraphError(fmt::format("unknown {} {}", what, index));
  }
  return names[index];
}

}  // namespace

int OpInfo::min_inputs() const {
  return static_cast<int>(
      std::ranges::count_if(inputs, [](const InputInfo& input) { return !input.is_optional; }));
}

const AttributeInfo* OpInfo::attribute(std::string_view attribute_name) const {
  const auto found = std::ranges::find(attributes, attribute_name, &AttributeInfo::name);
  return found == attributes.end() ? nullptr : &*found;
}

std::span<const OpInfo> all_ops() {
  static const std::vector<OpInfo> table = make_table();
  return table;
}

std::string nearest_op_name(std::string_view name) {
  std::vector<std::string> known;
  for (const OpInfo& info : all_ops()) {
    known.emplace_back(info.name);
  }
  return std::string(base::nearest(name, known));
}

const OpInfo& op_info(OpKind kind) {
  return all_ops()[static_cast<std::size_t>(kind)];
}

std::string_view name(OpKind kind) {
  return op_info(kind).name;
}

std::optional<OpKind> op_kind_from_name(std::string_view name) {
  const std::span<const OpInfo> table = all_ops();
  const auto found = std::ranges::find(table, name, &OpInfo::name);
  return found == table.end() ? std::optional<OpKind>() : found->kind;
}

std::string_view name(AttributeType type) {
  return kAttributeTypes.at(static_cast<std::size_t>(type));
}

std::string_view name(ValueRole role) {
  return kRoles.at(static_cast<std::size_t>(role));
}

std::optional<ValueRole> role_from_name(std::string_view name) {
  return from_name<ValueRole>(kRoles, name);
}

std::string_view name(WeightLayout layout) {
  return kLayouts.at(static_cast<std::size_t>(layout));
}

std::optional<WeightLayout> layout_from_name(std::string_view name) {
  return from_name<WeightLayout>(kLayouts, name);
}

std::string_view name(MaskForm form) {
  return name_of(kMaskForms, "mask form", static_cast<std::size_t>(form));
}

std::optional<MaskForm> mask_form_from_name(std::string_view name) {
  return from_name<MaskForm>(kMaskForms, name);
}

std::string_view name(RotaryStyle style) {
  return name_of(kRotaryStyles, "rotary style", static_cast<std::size_t>(style));
}

std::optional<RotaryStyle> rotary_style_from_name(std::string_view name) {
  return from_name<RotaryStyle>(kRotaryStyles, name);
}

int input_or_none(const Operator& op, int position) {
  const auto at = static_cast<std::size_t>(position);
  return at < op.inputs.size() ? op.inputs[at] : -1;
}

std::vector<stof::Dim> attribute_extents(const Operator& op) {
  std::vector<stof::Dim> extents;
  for (const auto& [name, attribute] : op.attributes) {
    if (const auto* dim = std::get_if<stof::Dim>(&attribute)) {
      extents.push_back(*dim);
    } else if (const auto* shape = std::get_if<stof::Shape>(&attribute)) {
      extents.insert(extents.end(), shape->dims().begin(), shape->dims().end());
    }
  }
  return extents;
}

}  // namespace stof::graph
