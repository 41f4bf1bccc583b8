// Writes the C++ file of the functions that cuda_text_test.cpp runs: cuda_text_generator FILE.
#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "cuda_cases.hpp"
#include "expr/cuda_piece.hpp"

using stof::expr::Interval;

namespace {

constexpr std::string_view kPreamble = R"(#include <cmath>

#include "device/expression.cuh"

#include "cuda_cases.hpp"

namespace stof::test {
namespace {
const int offsets[] = {0, 3, 9, -4, 512, 7};
const float slopes[] = {0.5f, -0.25f, 1e-3f};
int read_lengths(long long i) { return static_cast<int>(i % 100 + 3); }
float read_bias(long long i, long long j) { return i % 7 - (j % 5) / 4.0f; }
)";

std::string_view c_type(const Interval& range) {
  return stof::expr::fits_int(range) ? "int" : "long long";
}

std::string function_text(int index) {
  const stof::test::CudaCase it = stof::test::cuda_case(index);
  const stof::expr::CudaText text = cuda_text(it.expr, stof::test::cuda_names(), it.ranges);
  const bool is_narrow_key = stof::expr::fits_int(it.ranges.at("k_pos"));
  const bool is_float = text.type == stof::ScalarType::Float;
  return fmt::format(
      "// {}\n"
      "CudaResult case{}(const CudaArguments& a) {{\n"
      "  const {} q_pos = a.q_pos;\n  const {} k_pos = {};\n  const {} hidden = a.hidden;\n"
      "  const bool flag = a.flag;\n  const float score = a.score;\n  const float epsilon = "
      "a.epsilon;\n"
      "  return {{{}, {}}};\n}}\n",
      it.expr.text(), index, c_type(it.ranges.at("q_pos")),
      is_narrow_key ? "KeyPosition" : "long long",
      is_narrow_key ? "{static_cast<int>(a.k_pos), 0}" : "a.k_pos",
      c_type(it.ranges.at("dim.hidden")), is_float ? "0" : text.text, is_float ? text.text : "0");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: cuda_text_generator FILE\n", stderr);
    return 1;
  }
  std::ofstream file(argv[1]);
  file << kPreamble;
  for (int i = 0; i < stof::test::kCudaCases; ++i) {
    file << function_text(i);
  }
  file << "}  // namespace\n\nconst CudaFunction kCudaFunctions[kCudaCases] = {\n";
  for (int i = 0; i < stof::test::kCudaCases; ++i) {
    file << "    case" << i << ",\n";
  }
  file << "};\n\n}  // namespace stof::test\n";
  return file.good() ? 0 : 1;
}
