// The model beside times that were measured on an H200 (fixtures/h200_times.json, from
// tools/bench/results/nvidia-h200): how far off it is, and that its coefficients are what fits
// them. `cost.recorded --no-skip` fits them again, from where they are, and prints them.
#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cost/model.hpp"
#include "fusion/template_library.hpp"
#include "render/template_store.hpp"

using namespace stof;  // NOLINT(google-build-using-namespace)

namespace {

// A replay of a graph with an empty kernel in it, less that kernel.
constexpr double kReplayUs = 2.0;

const contract::TemplateContract& contract_of(const std::string& file) {
  static const fusion::TemplateLibrary library =
      fusion::read_templates(render::TemplateStore::open({}).texts());
  const auto found = std::find_if(library.begin(), library.end(),
                                  [&](const auto& kernel) { return kernel.file == file; });
  REQUIRE(found != library.end());
  return found->contract;
}

// A kernel of a recorded row.
struct Launch {
  const contract::TemplateContract* contract = nullptr;
  contract::ContractScope scope;
  cost::Epilogue epilogue;
  double tensor_bytes = std::numeric_limits<double>::infinity();
  kernel::KernelConfig config;

  cost::Problem problem() const {
    return cost::make_problem(*contract, scope, epilogue, tensor_bytes);
  }
  double predicted_us(const cost::Model& model) const { return predicted_us(model, config); }
  double predicted_us(const cost::Model& model, const kernel::KernelConfig& setting) const {
    return model.predict(problem(), setting).total_us();
  }
};

struct Row {
  std::string name;
  double measured_us = 0;
  std::vector<Launch> launches;

  double predicted_us(const cost::Model& model) const {
    double time_us = kReplayUs;
    for (const Launch& launch : launches) {
      time_us += launch.predicted_us(model);
    }
    return time_us;
  }
};

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts{""};
  for (const char c : text) {
    if (c == ':') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

// Every port packed and aligned.
void lay_out(const contract::TemplateContract& contract, contract::ContractScope& scope) {
  for (const contract::Port& port : contract.ports) {
    scope.alignments[port.name] = 16;
    std::int64_t stride = 1;
    for (std::size_t axis = port.shape.size(); axis-- > 0;) {
      const std::string& dim = port.shape[axis].dim;
      scope.strides[port.name + "." + dim] = stride;
      stride *= dim.empty() ? 1 : scope.dims.at(dim);
    }
  }
}

// The setting that gives the geometry that was recorded.
kernel::KernelConfig setting_of(const Launch& launch, const nlohmann::json& recorded,
                                const cost::Model& model) {
  std::vector<kernel::KernelConfig> settings = model.settings(launch.problem());
  if (settings.empty()) {
    settings = contract::allowed_configs(*launch.contract, launch.scope);
  }
  contract::ContractScope scope = launch.scope;
  for (const kernel::KernelConfig& setting : settings) {
    scope.config = setting;
    const contract::LaunchGeometry geometry = contract::evaluate_launch(*launch.contract, scope);
    if (geometry.grid[0] == recorded.at("grid")[0] && geometry.grid[1] == recorded.at("grid")[1] &&
        geometry.block[0] == recorded.at("block") &&
        geometry.shared_bytes == recorded.at("shared")) {
      return setting;
    }
  }
  FAIL("no setting is ", recorded.dump());
  return {};
}

Row read_row(const nlohmann::json& json, const cost::Model& model) {
  Row row{.name = json.at("case"), .measured_us = json.at("us"), .launches = {}};
  const std::vector<std::string> parts = split(row.name);
  const std::string& kind = parts[0];
  int products = 0;
  for (const nlohmann::json& recorded : json.at("launches")) {
    const std::string file = recorded.at("template");
    Launch launch;
    launch.contract = &contract_of(file);
    for (const auto& [symbol, dtypes] : launch.contract->dtypes) {
      launch.scope.dtypes[symbol] = DType::Float16;
    }
    for (const auto& [name, value] : model.device().scalars()) {
      launch.scope.device["device." + name] = value;
    }
    auto& dims = launch.scope.dims;
    const std::int64_t tokens = std::stoll(parts[1]);
    const std::int64_t hidden = std::stoll(parts[2]);
    if (file.starts_with("matmul/")) {
      const bool is_second = products++ > 0;
      const std::int64_t wide = hidden * (kind == "gemm_h3h_bias"                            ? 3
                                          : kind == "gemm_bias_gelu" || kind == "mlp_res_ln" ? 4
                                                                                             : 1);
      dims = {{"batch", 1},
              {"m", tokens},
              {"n", is_second ? hidden : wide},
              {"k", is_second ? wide : hidden}};
      launch.scope.attributes = {{"transpose_b", 0}};
      launch.epilogue.transcendentals = recorded.value("gelu", false) ? 1 : 0;
      // A bias, and the residual of those that a norm follows.
      launch.epilogue.bytes = recorded.at("ops") == 3 && !recorded.contains("gelu")
                                  ? 2.0 * static_cast<double>(tokens * hidden)
                                  : 0;
    } else {
      dims = {{"rows", tokens}, {"hidden", hidden}};
      // With the residual three tensors, else two.
      launch.tensor_bytes =
          (kind == "bias_res_ln" ? 3.0 : 2.0) * 2.0 * static_cast<double>(tokens * hidden);
    }
    lay_out(*launch.contract, launch.scope);
    launch.config = setting_of(launch, recorded, model);
    row.launches.push_back(std::move(launch));
  }
  return row;
}

cost::Model h200(const cost::Coefficients& coefficients = {}) {
  return cost::Model(base::shipped_profile("h200"), coefficients);
}

const std::vector<Row>& rows() {
  static const std::vector<Row> all = [] {
    std::ifstream file(STOF_SOURCE_DIR "/tests/cost/fixtures/h200_times.json");
    std::vector<Row> read;
    const nlohmann::json recorded = nlohmann::json::parse(file);
    for (const nlohmann::json& json : recorded.at("rows")) {
      read.push_back(read_row(json, h200()));
    }
    return read;
  }();
  return all;
}

struct Errors {
  int count = 0;
  double mean = 0;  // of |predicted / measured - 1|
  double worst = 0;
  double bias = 0;  // mean of predicted / measured - 1
};

Errors errors(const cost::Model& model) {
  Errors result;
  for (const Row& row : rows()) {
    const double error = row.predicted_us(model) / row.measured_us - 1;
    result.mean += std::abs(error);
    result.worst = std::max(result.worst, std::abs(error));
    result.bias += error;
    ++result.count;
  }
  result.mean /= result.count;
  result.bias /= result.count;
  return result;
}

// The mean square of the logarithms of predicted over measured.
double loss(const cost::Coefficients& coefficients) {
  const cost::Model model = h200(coefficients);
  double sum = 0;
  for (const Row& row : rows()) {
    const double error = std::log(row.predicted_us(model) / row.measured_us);
    sum += error * error;
  }
  return sum / static_cast<double>(rows().size());
}

struct Named {
  const char* name;
  double* value;
};

std::vector<Named> fitted(cost::Coefficients& c) {
  return {{"start_us", &c.start_us},
          {"hook_dram_share", &c.hook_dram_share},
          {"transcendental_ns", &c.transcendental_ns},
          {"stream.start_us", &c.stream.start_us},
          {"stream.dram_share", &c.stream.dram_share}};
}

// Coordinate descent on the logarithms.
void fit(cost::Coefficients& coefficients, int rounds) {
  const std::vector<Named> all = fitted(coefficients);
  std::vector<double> steps(all.size(), 1.1);
  double best = loss(coefficients);
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      const double old = *all[i].value;
      bool is_better = false;
      for (const double factor : {steps[i], 1 / steps[i]}) {
        *all[i].value = old * factor;
        if (const double now = loss(coefficients); now < best) {
          best = now;
          is_better = true;
          break;
        }
        *all[i].value = old;
      }
      steps[i] = is_better ? steps[i] * 1.2 : 1 + (steps[i] - 1) / 2;
    }
  }
}

}  // namespace

TEST_CASE("fit again" * doctest::skip()) {
  cost::Coefficients coefficients;
  fit(coefficients, 60);
  for (const Named& one : fitted(coefficients)) {
    MESSAGE(fmt::format("{} = {:.4g}", one.name, *one.value));
  }
  MESSAGE("root mean square of the logarithms ", std::sqrt(loss(coefficients)));
  for (const Row& row : rows()) {
    const double error = row.predicted_us(h200(coefficients)) / row.measured_us - 1;
    MESSAGE(fmt::format("{:30} {:8.2f} us, predicted {:+.1f} %", row.name, row.measured_us,
                        error * 100));
  }
}

TEST_CASE("products and norms are predicted within 4 % in the mean and 11 % at most") {
  const Errors error = errors(h200());
  CHECK(error.count == 30);
  CHECK(error.mean < 0.04);
  CHECK(error.worst < 0.11);
  CHECK(std::abs(error.bias) < 0.02);
}

TEST_CASE("the coefficients are those that fit") {
  cost::Coefficients coefficients;
  const double shipped = loss(coefficients);
  fit(coefficients, 4);
  CHECK(loss(coefficients) > 0.97 * shipped);
}

// Some of the settings have more stages than those that were known when the times were recorded.
TEST_CASE("products: no allowed setting is predicted to be much faster than what ran") {
  const cost::Model model = h200();
  int known = 0;
  for (const Row& row : rows()) {
    for (const Launch& launch : row.launches) {
      if (launch.contract->name != "gemm_sm90") {
        continue;
      }
      const double ran_us = launch.predicted_us(model);
      contract::ContractScope scope = launch.scope;
      for (const kernel::KernelConfig& setting : model.settings(launch.problem())) {
        scope.config = setting;
        if (contract::is_allowed(*launch.contract, scope)) {
          INFO(row.name);
          CHECK(launch.predicted_us(model, setting) > 0.92 * ran_us);
          ++known;
        }
      }
    }
  }
  CHECK(known > 300);
}
