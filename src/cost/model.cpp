#include "cost/model.hpp"

#include <algorithm>
#include <utility>

#include "cost/attention.hpp"
#include "cost/norm.hpp"
#include "cost/product.hpp"
#include "cost/sm.hpp"

namespace stof::cost {

namespace {

using kernel::KernelConfig;

Prediction predict_stream(const Sm& sm, const Problem& problem, std::optional<double> start_us) {
  const Stream& c = sm.coefficients.stream;
  Prediction time;
  time.start_us = start_us.value_or(c.start_us);
  time.core_us = sm.fma_us(problem.work.flops / sm.count, c.fma_share);
  time.dram_us = sm.dram_us(problem.work.bytes + problem.epilogue.bytes, c.dram_share);
  return time;
}

}  // namespace

Problem make_problem(const contract::TemplateContract& contract,
                     const contract::ContractScope& scope, const Epilogue& epilogue,
                     double tensor_bytes) {
  contract::ContractScope with_default = scope;
  with_default.config = contract::default_config(contract);
  contract::WorkEstimate work = contract::evaluate_cost(contract, with_default);
  work.bytes = std::min(work.bytes, tensor_bytes);
  return {.contract = &contract, .scope = &scope, .work = work, .epilogue = epilogue};
}

Model::Model(base::DeviceProfile device, Coefficients coefficients)
    : device_(std::move(device)), coefficients_(std::move(coefficients)) {}

Prediction Model::predict(const Problem& problem, const KernelConfig& config,
                          const AttentionWork* attention) const {
  const Sm sm(device_, coefficients_);
  // Another template may have a shipped one's name, and parameters of 0, by which formulas divide.
  const bool has_extents =
      std::ranges::all_of(config, [](const auto& parameter) { return parameter.second > 0; });
  Prediction time;
  if (attention != nullptr) {
    time = predict_attention(sm, problem, config, *attention);
  } else if (const auto product =
                 has_extents ? predict_product(sm, problem, config) : std::nullopt) {
    time = *product;
    time.start_us = coefficients_.start_us;
    time.dram_us = sm.dram_us(problem.work.bytes, coefficients_.dram_share);
  } else {
    time = predict_stream(sm, problem,
                          has_extents ? norm_start_us(sm, problem, config) : std::nullopt);
  }
  time.launch_us =
      problem.contract->launch.pdl ? device_.programmatic_step_us : device_.kernel_step_us;
  return time;
}

std::vector<KernelConfig> Model::settings(const Problem& problem) const {
  const Sm sm(device_, coefficients_);
  std::vector<KernelConfig> settings = attention_settings(problem);
  if (settings.empty()) {
    settings = product_settings(sm, problem);
  }
  if (settings.empty()) {
    settings = norm_settings(sm, problem);
  }
  const auto& parameters = problem.contract->params;
  std::erase_if(settings, [&](const KernelConfig& setting) {
    return setting.size() != parameters.size() ||
           !std::ranges::all_of(parameters, [&](const auto& parameter) {
             const auto value = setting.find(parameter.name);
             return value != setting.end() &&
                    std::ranges::find(parameter.values, value->second) != parameter.values.end();
           });
  });
  return settings;
}

}  // namespace stof::cost
