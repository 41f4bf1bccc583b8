#pragma once

#include <string>
#include <vector>

#include "base/device_profile.hpp"
#include "fusion/lower.hpp"
#include "fusion/template_library.hpp"
#include "graph/ir.hpp"

namespace stof::validate {

// A template with one setting of its parameters, as launches; copies of operands may go ahead.
struct NumericVariant {
  std::string text;  // the setting: "tile_m 64, stages 3"
  fusion::Lowered lowered;
};

// A graph that a template runs whole.
struct NumericCase {
  std::string text;  // "hidden 997, rows 331, in bfloat16"
  graph::Ir ir;
  double operations = 0;                 // of the reference
  bool is_heavy = false;                 // too large for more than one kind of inputs
  std::vector<NumericVariant> variants;  // the default first, then the ends of each parameter
};

// A template and what it is run with: itself and templates that copy, and all but it.
struct TemplateAlone {
  fusion::KernelTemplate kernel;
  fusion::TemplateLibrary with_copies;
  fusion::TemplateLibrary others;
};

// Throws GraphError where the library has no template of that file.
TemplateAlone alone(const fusion::TemplateLibrary& library, const std::string& file);

// The uses that the numbers of a template are tried in, on a device:
//
//   each of "tests" that the host can compute; but for large ones with both ends of each parameter,
//     and strided
//   the largest of the others: without each optional operator, without optional ports, in each
//     dtype, with each truth of an attribute, with operators at the hook, under other masks
//   the same with every dim a prime, or as ragged as the constraints let it be, and both ends of
//     each parameter
//   the same with one dim long, 4096 or so, and the others short, so that sums have many terms
//
// What the template does not take is left out; where that is all, GraphError says why. A template
// of strides that packed tensors have not is tried with transposed ones.
std::vector<NumericCase> numeric_cases(const TemplateAlone& alone,
                                       const base::DeviceProfile& device);

}  // namespace stof::validate
