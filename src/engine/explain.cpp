#include "engine/explain.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "engine/data.hpp"

namespace stof::engine {

using nlohmann::ordered_json;

namespace {

ordered_json to_json(const std::vector<TensorInfo>& tensors) {
  ordered_json list = ordered_json::array();
  for (const TensorInfo& tensor : tensors) {
    ordered_json shape = ordered_json::array();
    for (const Dim& dim : tensor.shape.dims()) {
      shape.push_back(dim.is_static() ? ordered_json(dim.value()) : ordered_json(dim.text()));
    }
    list.push_back({{"name", tensor.name}, {"dtype", name(tensor.dtype)}, {"shape", shape}});
  }
  return list;
}

ordered_json or_null(const std::optional<double>& number) {
  return number ? ordered_json(*number) : ordered_json(nullptr);
}

ordered_json to_json(const Tuned& tuned) {
  constexpr std::array kLevels = {"stopped", "quick", "full"};
  ordered_json segments = ordered_json::array();
  for (const TunedSegment& segment : tuned.segments) {
    segments.push_back({{"computes", segment.label},
                        {"count", segment.count},
                        {"kernel", segment.setting.kernel},
                        {"parameters", segment.setting.config},
                        {"predicted_us", segment.setting.predicted_us},
                        {"before_us", or_null(segment.before_us)},
                        {"time_us", or_null(segment.time_us)},
                        {"kept", segment.is_kept}});
  }
  return {{"level", kLevels.at(static_cast<std::size_t>(tuned.level))},
          {"before_us", or_null(tuned.before_us)},
          {"time_us", or_null(tuned.time_us)},
          {"plan_before_us", or_null(tuned.plan_before_us)},
          {"plan_us", or_null(tuned.plan_us)},
          {"timed", tuned.timed},
          {"recalled", tuned.recalled},
          {"failed", tuned.failed},
          {"seconds", tuned.seconds},
          {"ended", tuned.ended},
          {"segments", segments}};
}

ordered_json to_json(const LaunchDescription& launch) {
  return {{"computes", launch.label},
          {"template", launch.file},
          {"grid", launch.grid},
          {"block", launch.block},
          {"cluster", launch.cluster},
          {"static_shared_bytes", launch.static_shared_bytes},
          {"dynamic_shared_bytes", launch.dynamic_shared_bytes},
          {"registers", launch.registers},
          {"spill_bytes", launch.spill_bytes},
          {"programmatic", launch.is_programmatic},
          {"predicted_us", launch.predicted_us},
          {"measured_us", or_null(launch.measured_us)},
          {"options", launch.options}};
}

std::string content_of(const LayoutDescription& layout) {
  const std::string tiles = layout.max_part_tiles == 0
                                ? "any number of part tiles"
                                : fmt::format("at most {} part tiles", layout.max_part_tiles);
  return !layout.has_runs    ? tiles
         : !layout.has_tiles ? "runs of keys"
                             : "runs of keys and " + tiles;
}

ordered_json to_json(const LayoutDescription& layout) {
  return {{"mask", layout.mask},
          {"built_ahead_of", layout.first_reader},
          {"runs", layout.has_runs},
          {"tiles", layout.has_tiles},
          {"max_part_tiles", layout.max_part_tiles},
          {"workspace_bytes", layout.workspace_bytes}};
}

void add_gpu(ordered_json& json, const PlanDescription& description) {
  json["backend"] = "gpu";
  json["device"] = description.device;
  json["target"] = description.target;
  json["dims"] = description.dims;
  json["workspace_bytes"] = description.workspace_bytes;
  json["kernels"] = description.kernel_count;
  json["scheme"] = description.scheme;
  json["tuned"] = description.tuned ? to_json(*description.tuned) : ordered_json(nullptr);
  json["deferred_norms"] = description.deferred_norms;
  json["deferral_refused"] = description.deferral_refusal.empty()
                                 ? ordered_json(nullptr)
                                 : ordered_json(description.deferral_refusal);
  json["foreign_templates"] = ordered_json::array();
  for (const ForeignTemplate& one : description.foreign_templates) {
    json["foreign_templates"].push_back({{"file", one.file},
                                         {"used", one.is_used},
                                         {"validated", one.is_validated},
                                         {"detail", one.detail}});
  }
  json["layouts"] = ordered_json::array();
  for (const LayoutDescription& layout : description.layouts) {
    json["layouts"].push_back(to_json(layout));
  }
  json["launches"] = ordered_json::array();
  for (const LaunchDescription& launch : description.launches) {
    json["launches"].push_back(to_json(launch));
  }
}

std::string tuned_text(const Tuned& tuned) {
  const auto time = [](const std::optional<double>& time_us) {
    return time_us ? fmt::format("{:.1f} us", *time_us) : std::string("not timed");
  };
  return fmt::format("tuned: segments {} before, {} after, plan {} before, {} after, {} trials\n",
                     time(tuned.before_us), time(tuned.time_us), time(tuned.plan_before_us),
                     time(tuned.plan_us), tuned.timed + tuned.recalled);
}

}  // namespace

std::string launches_of_kernels(std::int64_t launches, std::int64_t kernels) {
  return fmt::format("{} of {}", base::counted(launches, "launch", "launches"),
                     base::counted(kernels, "kernel", "kernels"));
}

std::string explain_text(const PlanDescription& description) {
  std::string text = fmt::format(
      "gpu backend, {} as {}\n{}, workspace {} bytes\n", description.device, description.target,
      launches_of_kernels(std::ssize(description.launches), description.kernel_count),
      description.workspace_bytes);
  for (const auto& [name, value] : description.dims) {
    text += fmt::format("{} = {}\n", name, value);
  }
  if (!description.scheme.empty()) {
    text += fmt::format("fusion scheme {}\n", description.scheme);
  }
  if (description.tuned) {
    text += tuned_text(*description.tuned);
  }
  if (!description.deferred_norms.empty()) {
    text += fmt::format("norms behind the products that read them: {}\n",
                        fmt::join(description.deferred_norms, ", "));
  }
  if (!description.deferral_refusal.empty()) {
    text += fmt::format("norms ahead of all products: {}\n", description.deferral_refusal);
  }
  for (const ForeignTemplate& one : description.foreign_templates) {
    text += fmt::format("{} {}: {}\n", one.is_used ? "template" : "in quarantine: template",
                        one.file, one.detail);
  }
  for (const LayoutDescription& layout : description.layouts) {
    text +=
        fmt::format("layout of '{}': built on each run ahead of {}, {}, {} bytes\n", layout.mask,
                    layout.first_reader, content_of(layout), layout.workspace_bytes);
  }
  for (const LaunchDescription& launch : description.launches) {
    text += fmt::format(
        "{}: {}, grid {}, block {}, cluster {}, shared {} + {} bytes, registers {}, spills {} "
        "bytes{}\n",
        launch.label, launch.file, fmt::join(launch.grid, "x"), fmt::join(launch.block, "x"),
        fmt::join(launch.cluster, "x"), launch.static_shared_bytes, launch.dynamic_shared_bytes,
        launch.registers, launch.spill_bytes, launch.is_programmatic ? ", programmatic" : "");
    if (launch.measured_us) {
      text += fmt::format("  measured {:.2f} us\n", *launch.measured_us);
    }
    const char* word = "predicted";
    for (const std::string& option : launch.options) {
      text += fmt::format("  {} {}\n", word, option);
      word = "not chosen:";
    }
  }
  return text;
}

std::string explain_json(const Plan& plan, const DimValues& dims) {
  if (!dims.empty()) {
    check_dims(plan.data(), dims);
  }
  ordered_json json = {{"graph", plan.data().graph.name()}};
  if (plan.data().gpu) {
    add_gpu(json, plan.data().gpu->describe(dims));
  } else {
    json["backend"] = "reference";
    json["precision"] = precision_name(plan.data().options.precision);
  }
  json["inputs"] = to_json(plan.inputs());
  json["weights"] = to_json(plan.weights());
  json["outputs"] = to_json(plan.outputs());
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace stof::engine
