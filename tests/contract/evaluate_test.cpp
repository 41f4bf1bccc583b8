#include "contract/evaluate.hpp"

#include "contract_support.hpp"

namespace stof::contract {

using nlohmann::json;

namespace {

ContractScope scope_of(const TemplateContract& contract) {
  return {.dims = {{"tokens", 333}, {"hidden", 1000}},
          .attributes = {{"epsilon", 1e-5}},
          .dtypes = {{"T", DType::Float16}},
          .device = {{"device.sm", 90},
                     {"device.sm_count", 132},
                     {"device.shared_bytes_per_block", 232448},
                     {"device.shared_bytes_per_sm", 233472},
                     {"device.registers_per_sm", 65536},
                     {"device.l2_bytes", 62914560}},
          .config = default_config(contract)};
}

std::string launch_error(const TemplateContract& contract, const ContractScope& scope) {
  try {
    evaluate_launch(contract, scope);
  } catch (const GraphError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("a block has no more shared memory than the device gives it") {
  json header = full_header();
  header["resources"]["shared_bytes"] = "232449";
  const TemplateContract contract = parse(header);
  ContractScope scope = scope_of(contract);
  CHECK(launch_error(contract, scope) ==
        "contract rms_norm_residual: shared_bytes = 232449 is 232449, the most is 232448");
  scope.device["device.shared_bytes_per_block"] = 232449;
  CHECK(launch_error(contract, scope) == "no error");
}

TEST_CASE("a cluster divides the grid, and has no more blocks than GPUs take") {
  json header = full_header();
  header["launch"]["grid"] = {"12"};
  const auto error = [&](const char* cluster) {
    header["launch"]["cluster"] = {cluster};
    const TemplateContract contract = parse(header);
    const ContractScope scope = scope_of(contract);
    CHECK(launch_fault(contract, scope).value_or("no error") == launch_error(contract, scope));
    return launch_error(contract, scope);
  };
  CHECK(error("6") == "no error");
  CHECK(error("5") == "contract rms_norm_residual: cluster[0] is 5, and grid[0] no multiple: 12");
  CHECK(error("12") == "contract rms_norm_residual: a cluster has 12 blocks, the most is 8");
}

TEST_CASE("launch, cost and scalar arguments come from the header's expressions") {
  const TemplateContract contract = parse(full_header());
  ContractScope scope = scope_of(contract);
  scope.config["rows_per_block"] = 2;
  const LaunchGeometry geometry = evaluate_launch(contract, scope);
  CHECK(geometry.grid == std::array<std::int64_t, 3>{167, 1, 1});
  CHECK(geometry.block == std::array<std::int64_t, 3>{128, 2, 1});
  CHECK(geometry.cluster == std::array<std::int64_t, 3>{1, 1, 1});
  CHECK(geometry.shared_bytes == 128);
  CHECK(geometry.workspace_bytes == 4 * 333);

  const WorkEstimate work = evaluate_cost(contract, scope);
  CHECK(work.flops == 6.0 * 333 * 1000);
  CHECK(work.bytes == 4.0 * 333 * 1000 * 2);
  CHECK(scalar_arguments(contract, scope) == std::vector<expr::Value>{std::int64_t{333}, 1e-5});

  const ResourceEstimate resources = evaluate_resources(contract, scope);
  CHECK(resources.threads == 256);
  CHECK(resources.shared_bytes == 128);
  CHECK(resources.registers == 64);
}

TEST_CASE("numbers of groups of global keys and queries are passed as they are, eight bytes each") {
  json header = full_header();
  for (const char* const name :
       {"mask.global_keys", "mask.global_keys_at_1", "mask.global_queries_at_0"}) {
    header["launch"]["arguments"].push_back(name);
  }
  const TemplateContract contract = parse(header);
  ContractScope scope = scope_of(contract);
  scope.mask_global_keys = 80;
  scope.mask_global_keys_at = {1, 0x1234'0000'ffff'0007};
  scope.mask_global_queries_at = {-2, 3};
  const std::vector<expr::Value> values = scalar_arguments(contract, scope);
  REQUIRE(values.size() == 5);
  CHECK(values[2] == expr::Value(std::int64_t{80}));
  CHECK(values[3] == expr::Value(std::int64_t{0x1234'0000'ffff'0007}));
  CHECK(values[4] == expr::Value(std::int64_t{-2}));
  const std::vector<std::int64_t> bytes = argument_bytes(contract, scope);
  CHECK(std::vector(bytes.end() - 3, bytes.end()) == std::vector<std::int64_t>{4, 8, 8});
  CHECK_FALSE(argument_fault(contract, scope).has_value());
}

TEST_CASE("the boxes of tensor maps come from the header, if the GPU copies such") {
  const auto boxes_of = [](const json& rows, const json& columns) {
    json header = full_header();
    header["launch"]["arguments"][3] = {{"tensor_map", "sum"}, {"box", {rows, columns}}};
    const TemplateContract contract = parse(header);
    return tensor_map_boxes(contract, scope_of(contract));
  };
  const auto error = [&](const json& rows, const json& columns) -> std::string {
    try {
      boxes_of(rows, columns);
    } catch (const GraphError& failure) {
      return failure.what();
    }
    return "no error";
  };
  CHECK(boxes_of("param.threads_per_row / 2", 64) ==
        std::vector<std::vector<std::int64_t>>{{64, 64}});
  CHECK(error("3 * param.threads_per_row", 64) ==
        "contract rms_norm_residual: an extent of a box of sum is 384, from 1 to 256");
  CHECK(error(16, 32) ==
        "contract rms_norm_residual: a box of sum has rows of 64 bytes, not of 128");
}

TEST_CASE("where the last axis but one lies together, its box has the rows") {
  json header = full_header();
  header["launch"]["arguments"][3] = {{"tensor_map", "sum"}, {"box", {64, 16}}};
  const TemplateContract contract = parse(header);
  const Port& sum = *contract.find_port("sum");
  ContractScope scope = scope_of(contract);
  CHECK_FALSE(lies_transposed(sum, scope));
  CHECK_THROWS_AS(tensor_map_boxes(contract, scope), GraphError);
  scope.strides["sum.tokens"] = 1;
  scope.strides["sum.hidden"] = 1000;
  CHECK(lies_transposed(sum, scope));
  CHECK(tensor_map_boxes(contract, scope) == std::vector<std::vector<std::int64_t>>{{64, 16}});
}

TEST_CASE("the first constraint that does not hold is named") {
  const TemplateContract contract = parse(full_header());
  ContractScope scope = scope_of(contract);
  CHECK(violated_constraint(contract, scope) == nullptr);
  scope.device["device.sm"] = 75;
  CHECK(violated_constraint(contract, scope)->text == "device.sm >= 80");
  scope.dims["hidden"] = 1001;
  CHECK(violated_constraint(contract, scope)->text == "dim.hidden % 8 == 0");
}

TEST_CASE("restrictions cut the settings, and the default is first of none") {
  const TemplateContract contract = parse(full_header());
  const std::vector<kernel::KernelConfig> configs = allowed_configs(contract, scope_of(contract));
  std::size_t expected = 0;
  for (const int threads : {32, 64, 128, 256}) {
    for (const int rows : {1, 2, 4}) {
      expected += threads * rows <= 256 ? 1 : 0;
    }
  }
  CHECK(configs.size() == expected);
  for (const kernel::KernelConfig& config : configs) {
    CHECK(config.at("threads_per_row") * config.at("rows_per_block") <= 256);
  }
  CHECK(default_config(contract) ==
        kernel::KernelConfig{{"rows_per_block", 1}, {"threads_per_row", 128}});
}

TEST_CASE("a launch that CUDA would refuse is an error here") {
  json header = full_header();
  header["launch"]["grid"] = {"dim.tokens / param.rows_per_block", "dim.hidden"};
  const TemplateContract contract = parse(header);
  ContractScope scope = scope_of(contract);
  scope.dims["tokens"] = 0;
  CHECK(launch_error(contract, scope) ==
        "contract rms_norm_residual: grid[0] = dim.tokens / param.rows_per_block is 0, the least "
        "is 1");
  scope.dims = {{"tokens", 1}, {"hidden", 65536}};
  CHECK(launch_error(contract, scope) ==
        "contract rms_norm_residual: grid[1] = dim.hidden is 65536, the most is 65535");
  scope.dims["hidden"] = 1;
  scope.config["threads_per_row"] = 1024;
  scope.config["rows_per_block"] = 2;
  scope.dims["tokens"] = 2;
  CHECK(launch_error(contract, scope) ==
        "contract rms_norm_residual: a block of 1024 x 2 x 1 has 2048 threads, the most is 1024");
}

}  // namespace stof::contract
