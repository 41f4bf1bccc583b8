#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "graph/ir.hpp"
#include "stof/tensor.hpp"

// Whether what a kernel gives is right, by float64 on the host.
namespace stof::engine {

using HostTensors = std::map<std::string, HostTensor>;

// Normally distributed data for every input and weight of a static graph, equal for equal graphs:
// matrices of weights are scaled so that products stay near 1; ids are in range, and masks that
// arrive at run time are like their samples. Throws GraphError for an input of which it is not
// known what it may hold.
HostTensors random_tensors(const graph::Ir& ir);
// The weights among them; the inputs may be of any shape.
HostTensors random_weights(const graph::Ir& ir);

// Some rows of an output: all axes but the last count rows.
struct ExpectedRows {
  DType dtype = DType::Float16;
  std::int64_t row_elements = 1;
  std::vector<std::int64_t> rows;
  std::vector<double> values;  // rows.size() * row_elements
};

struct Expectation {
  std::vector<ExpectedRows> outputs;  // in the order of the graph
  std::string skipped;                // why there are none; empty where there are
};

inline constexpr std::int64_t kCheckedRows = 64;

// The rows that are looked at: the first, the last, those around the start of the last, ragged tile
// of 64, and others evenly between; all where there are no more than kCheckedRows.
std::vector<std::int64_t> checked_rows(std::int64_t count);

// What some rows of each output should be. Where each row of the graph depends on one row of what
// it reads, and on weights, only these rows are computed; else the whole, unless that takes more
// than kMostOperations, which is a reason to skip the check.
Expectation expect(const graph::Ir& ir, const HostTensors& tensors);

inline constexpr double kMostOperations = 8e9;

// Where `actual`, as many values, is too far from what is expected: "row 5 of 128 is off by 0.31 of
// its length, 0.0039 is allowed". Nothing where it is right.
std::optional<std::string> mismatch(const ExpectedRows& expected, std::span<const double> actual);

}  // namespace stof::engine
