#pragma once

#include <span>

#include <nlohmann/json.hpp>

#include "base/device_profile.hpp"
#include "fusion/attention.hpp"
#include "fusion/match.hpp"
#include "fusion/placement.hpp"
#include "fusion/view.hpp"
#include "graph/ir.hpp"

// What one launch solves, whatever solves it: the key of tuning records. JSON that says all that a
// kernel and its time depend on, and neither names of tensors nor where in a graph they stand, so
// that equal layers have equal problems:
//
//   {"device": "NVIDIA H200", "target": "sm_90a",
//    "operators": [{"op": "matmul", "attributes": {…}, "inputs": [0, 1], "outputs": [2]}, …],
//    "values": [{"dtype": "float16", "shape": [512, 768], "strides": [768, 1], "alignment": 16},
//    …], "results": [2], "mask": {"signature": …, "modifier": …, "arrives_at_run_time": false}}
//
// Values are numbered in the order in which the operators first name them; -1 is an absent input.
// Strides, in elements and 0 along axes of extent 1, and the alignment in bytes are there for
// values that are in memory, which those between operators are not unless they are results: what is
// read outside. The mask is there for attention.
namespace stof::fusion {

// `operators` are those of the group in the order of the graph. All that it reads has strides.
nlohmann::json group_problem(std::span<const int> operators, const graph::Ir& ir,
                             const Readers& readers, const Placement& placement,
                             const AttentionMask* mask, const base::DeviceProfile& device);

// Of a copy from one view to another.
nlohmann::json copy_problem(const View& from, const View& to, const base::DeviceProfile& device);

}  // namespace stof::fusion
