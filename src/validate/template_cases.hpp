#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/device_profile.hpp"
#include "contract/contract.hpp"
#include "contract/evaluate.hpp"

namespace stof::validate {

// One use of a template that its contract admits.
struct TemplateCase {  // NOLINT(bugprone-exception-escape): JSON moves without throwing
  std::string text;    // what is special about it: "param.tile_q = 128"
  nlohmann::json variables;
  contract::LaunchGeometry launch;
  std::vector<std::int64_t> argument_bytes;  // of what a launch passes
  contract::ResourceEstimate declared;
};

// The uses that check_template tries on a device, by the contract alone: tensors are packed.
// Further dtypes, ends of parameters, absent ports, other classes of mask, a tensor at the hook and
// a score modifier go with the dims in the middle of "tests" alone. None where a constraint keeps
// the template off the device.
std::vector<TemplateCase> template_cases(const contract::TemplateContract& contract,
                                         const base::DeviceProfile& device);

// The condition for which there is none: "rows 3: dim.rows % 2 == 0 does not hold".
std::string why_no_case(const contract::TemplateContract& contract,
                        const base::DeviceProfile& device);

}  // namespace stof::validate
