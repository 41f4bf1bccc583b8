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
//   sums       in the dtype a that the contract accumulates in. Each step of a sum rounds what has
//              been added up so far, by 0.4 u_a of it in the mean, so that n terms one after
//              another are off by a random walk of n steps:
//                - of terms of both signs, which grow as the square root of the steps, by
//                  0.3 u_a n times the size of a term. That is what moves where each input moves by
//                  sqrt(n) u_a of itself, at random.
//                - of terms of one sign, which grow as the steps, by 0.23 sqrt(n) u_a of the sum.
//                  That is what moves where the terms of a sum move together by so much: rows or
//                  columns of the inputs.
//              The graph makes these backwards errors large where it is badly conditioned (a
//              variance far below the squared mean) and nowhere else. 64 u_a and 15 u_a are for
//              n = 4096; tensor cores and trees stay far below.
//   equals     Terms that are nearly equal are rounded the same way each time, and n u_a / 2 of the
//              sum are lost at worst. So are exponentials of small scores, which no change to the
//              inputs moves: their sum is off by n u_a / 32. And so are the terms of scores of
//              inputs with a large mean, which are 10^6 then. There errors are not in proportion:
//              of two keys, either may be the one that a row takes. To measure that, and not
//              whether some change happened to turn two round, the scores of a row stand less
//              apart, by 1 + n u_a / 8 times the largest: kMeanSlack is within it.
//
// Each is the root mean square over a piece of a row. In float16, at 4096 terms, rounding is 0.4 u
// of the result and 64 u_float32 are 0.008 u. A sum in float16 instead, rounded each 16 terms as
// the tensor cores do, is off by 0.4 u sqrt(4096 / 16 / 2) = 4.5 u, and each term by 18 u: beyond
// kMeanSlack times what is allowed, though each number for itself might pass.
namespace stof::validate {

// Of the mean over a piece. That of n numbers varies by 1 / sqrt(2 n) of itself, here and in what
// was measured: 1 + 1 / sqrt(n) times as much is allowed, for one number what it may be off by
// itself.
inline constexpr double kMeanSlack = 4;
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
