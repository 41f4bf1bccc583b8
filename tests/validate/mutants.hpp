#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "render/template_store.hpp"

// Templates with one bug each, all of which compile.
namespace stof::testing {

struct Mutant {
  const char* bug;
  const char* file;  // that has it
  const char* part;  // in which the text stands: the file or what it includes
  const char* from;
  const char* to;
};

inline const std::vector<Mutant>& mutants() {
  static const std::vector<Mutant> all = {
      {"off-by-one row: the last is left out", "norm/rms_norm.jinja", "parts/norm_body.jinja",
       "own_row < rows;", "own_row < rows - 1;"},
      {"off-by-one row: one too many", "norm/rms_norm.jinja", "parts/norm_body.jinja",
       "own_row < rows;", "own_row <= rows;"},
      {"wrong epsilon", "norm/rms_norm.jinja", "parts/norm_body.jinja",
       "{{ attr.epsilon if attr.epsilon | abs > 1e-37 else 0.0 }}f", "1e-12f"},
      {"missing residual", "norm/rms_norm.jinja", "parts/norm_body.jinja", "  value.add(other);\n",
       ""},
      {"missing bias", "norm/layer_norm.jinja", "parts/norm_body.jinja", "  value.add(addend);\n",
       ""},
      {"missing offset", "norm/layer_norm.jinja", "parts/norm_body.jinja",
       "stof::to_float(offsets[step][i]));", "0.0f);"},
      {"variance from the sum of squares", "norm/layer_norm.jinja", "parts/norm_body.jinja",
       "    value -= mean;\n", ""},
      {"wrong column tail", "norm/layer_norm.jinja", "device/row.cuh",
       "kVectors % Threads == 0 || column < Hidden;",
       "kVectors % Threads == 0 || column + Vector < Hidden;"},
      {"missing barrier between warps", "norm/softmax.jinja", "device/row.cuh",
       "    __syncthreads();\n    const float* of_group", "    const float* of_group"},
      {"wrong scale", "norm/softmax.jinja", "norm/softmax.jinja", "0.0f : 1.0f / sum;",
       "0.0f : 1.0f / (sum + 1.0f);"},
      {"missing maximum in the log-sum-exp", "norm/softmax.jinja", "norm/softmax.jinja",
       "lse[row] = offset + logf(sum);", "lse[row] = logf(sum);"},
      {"sum that does not follow the maximum", "norm/softmax.jinja", "norm/softmax.jinja",
       "    sum *= {{ exp }}(before - offset());\n", ""},
      {"ignored stride", "norm/softmax.jinja", "norm/softmax.jinja",
       "kept.load(x + row * x_row_stride, thread);", "kept.load(x + row * kHidden, thread);"},
      {"wrong reduction", "reduce/max.jinja", "reduce/max.jinja", "\"Maximum\"", "\"Add\""},
      {"wrong count of the mean", "reduce/mean.jinja", "reduce/mean.jinja",
       "static_cast<float>(axis)", "static_cast<float>(axis + 1)"},
      {"dropped last element of the axis", "reduce/sum.jinja", "parts/reduce_body.jinja",
       "i < axis; i +=", "i < axis - 1; i +="},
      {"missing barrier in a tree", "reduce/sum.jinja", "parts/reduce_body.jinja",
       "    __syncthreads();\n    if (axis_thread < half) {", "    if (axis_thread < half) {"},
      {"16-bit accumulation over an axis", "reduce/sum.jinja", "parts/reduce_body.jinja",
       "Operation::combine(values[j % kResults], elements[j]);",
       "__half2float(__float2half(Operation::combine(values[j % kResults], elements[j])));"},
      {"uninitialised tail of the output", "elementwise/elementwise.jinja",
       "elementwise/elementwise.jinja", "static_cast<long long>(rows) * columns) {",
       "static_cast<long long>(rows) * columns - 1) {"},
      {"stride of another axis", "elementwise/elementwise.jinja", "elementwise/elementwise.jinja",
       "i1 * x_s1 + i2 * x_s2 +", "i1 * x_s1 + i2 * x_s1 +"},
      {"missing barrier around a tile", "elementwise/transposed.jinja",
       "elementwise/transposed.jinja", "  __syncthreads();\n", ""},
      {"wrong edge of a tile", "elementwise/transposed.jinja", "elementwise/transposed.jinja",
       "i2 < a2 && i3 < a3", "i2 < a2 - 1 && i3 < a3"},
      {"last row of a table out of reach", "embedding/embedding.jinja", "embedding/embedding.jinja",
       "vocabulary - 1LL", "vocabulary - 2LL"},
      {"stride of a table ignored", "embedding/embedding.jinja", "embedding/embedding.jinja",
       "id * table_row_stride", "id * kHidden"},
      {"wrong sign of a turn", "rotary/rotary.jinja", "rotary/rotary.jinja",
       "before.second[j] * cosine[j] + before.first[j]",
       "before.second[j] * cosine[j] - before.first[j]"},
      {"wrong angles", "rotary/rotary.jinja", "rotary/rotary.jinja", "attr.theta ** (i / pairs)",
       "attr.theta ** ((i + 1) / pairs)"},
      {"wrong line of a patch", "gather/patches.jinja", "gather/patches.jinja",
       "column / kSize % kSize;", "column / kSize % (kSize - 1);"},
      {"16-bit accumulation over k", "matmul/gemm_simple.jinja", "matmul/gemm_simple.jinja",
       "fmaf(a[r], b[c], sums[r][c]);",
       "__half2float(__float2half(fmaf(a[r], b[c], sums[r][c])));"},
      {"dropped last step of k", "matmul/gemm_simple.jinja", "matmul/gemm_simple.jinja",
       "k < kK; k += kTileK", "k + kTileK <= kK; k += kTileK"},
      {"stale workspace: a counter that is not zeroed", "matmul/vector_columns.jinja",
       "device/split_k.cuh", "atomicInc(counter, count - 1)", "atomicAdd(counter, 1u)"},
      {"a lost part of k", "matmul/gemm_sm80.jinja", "device/split_k.cuh",
       "int other = 0; other < Parts; ++other", "int other = 1; other < Parts; ++other"},
      {"swapped gate and up", "gated.jinja", "gated.jinja",
       "stof::silu(stof::to_float(gate[row * gate_row_stride + column]));\n"
       "  const float product = active * stof::to_float(up[row * up_row_stride + column]);",
       "stof::to_float(gate[row * gate_row_stride + column]);\n"
       "  const float product = active * stof::silu(stof::to_float(up[row * up_row_stride + "
       "column]));"},
      {"stride of another tensor", "gated.jinja", "gated.jinja", "up[row * up_row_stride",
       "up[row * {{ dim.hidden }}"},
      {"wrong mask edge", "keys_of_rows.jinja", "keys_of_rows.jinja",
       "key_row_ptr[row + 1] - first;", "max(key_row_ptr[row + 1] - first - 1, 0);"},
      {"keys of another head", "keys_of_rows.jinja", "keys_of_rows.jinja",
       "head / (heads / kv_heads);", "head % kv_heads;"},
      {"missing scale of scores", "keys_of_rows.jinja", "keys_of_rows.jinja",
       "scores[i] = score * scale;", "scores[i] = score;"},
  };
  return all;
}

// The templates of the library with those beside this file, as paths below their roots.
inline std::map<std::string, std::string> good_templates() {
  const std::vector<std::filesystem::path> folders = {STOF_SOURCE_DIR "/tests/validate/templates"};
  return render::TemplateStore::open(folders).texts();
}

inline int count_of(const std::string& text, const std::string& piece) {
  int count = 0;
  for (std::size_t at = text.find(piece); at != std::string::npos; at = text.find(piece, at + 1)) {
    ++count;
  }
  return count;
}

inline std::shared_ptr<const render::TemplateStore> mutated(
    std::map<std::string, std::string> texts, const Mutant& mutant) {
  std::string& text = texts.at(mutant.part);
  text.replace(text.find(mutant.from), std::string(mutant.from).size(), mutant.to);
  return std::make_shared<const render::TemplateStore>(render::TemplateStore::from_texts(texts));
}

}  // namespace stof::testing
