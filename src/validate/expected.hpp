#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "graph/ir.hpp"
#include "validate/hostile_tensors.hpp"

// What the outputs of a graph should be, and how far from that a good kernel may be.
//
// A kernel is as good as the unfused graph if its errors are those of arithmetic. These come from
// three places, each of which is measured on the graph itself, with the inputs at hand:
//
//   results    are rounded to their dtype, of unit roundoff u (2^-11, 2^-8, 2^-24). Functions that
//              the hardware approximates are right to some 2^-22.
//   between    operators the unfused graph rounds to the dtype of each value: the difference of the
//              reference in Precision::Model to float64. A fused kernel need not round there.
//   sums       in the dtype a that the contract accumulates in: one of n terms, one after another,
//   is
//              off by about u_a sqrt(n) of what it adds up. That is what moves where each input
//              moves by sqrt(n) u_a of itself, at random: backwards errors, which the graph makes
//              large where it is badly conditioned (a variance far below the squared mean) and
//              nowhere else. 64 u_a is for n = 4096; tensor cores and trees stay far below.
//
// Each is the root mean square over a piece of a row. In float16, at 4096 terms, rounding is 0.4 u
// of the result and 64 u_float32 are 0.008 u. A sum in float16 instead, rounded each 16 terms as
// the tensor cores do, is off by 0.4 u sqrt(4096 / 16 / 2) = 4.5 u, and each term by 18 u: beyond
// kMeanSlack times what is allowed, though each number for itself might pass.
namespace stof::validate {

inline constexpr double kMeanSlack = 4;   // of the mean over a piece, which varies little
inline constexpr double kWorstSlack = 8;  // of one number

// Numbers that are looked at together: a row, or several short ones.
inline constexpr std::int64_t kLeastPiece = 32;

struct ExpectedOutput {
  std::string name;
  DType dtype = DType::Float32;
  std::vector<std::int64_t> shape;
  std::vector<double> values;        // NaN: any number will do
  std::int64_t piece = kLeastPiece;  // numbers in each piece, but for the last
  std::vector<double> errors;        // of each piece: the root mean square that arithmetic explains
};

// On that many threads; 0: one a core. Throws GraphError as reference::run.
std::vector<ExpectedOutput> expected_outputs(const graph::Ir& ir, HostTensors& tensors,
                                             DType accumulate, int thread_count = 0);

// What is wrong with a result: "output y: element 5 of 128 is 0.5, should be 0.25, off by 0.25
// where 0.0039 is allowed". Nothing where it is right.
std::optional<std::string> wrong_numbers(const ExpectedOutput& expected, const HostTensor& actual);

// Floating-point operations of a run on the host.
double host_operations(const graph::Ir& ir);

}  // namespace stof::validate
