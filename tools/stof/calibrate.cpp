// stof calibrate: what the cost model should think of this GPU.
#include <memory>

#include <nlohmann/json.hpp>

#include "command.hpp"
#include "engine/gpu_backend.hpp"
#include "tune/fit_rates.hpp"

namespace stof::command {

namespace {

constexpr const char* kCalibrateExamples = R"(Examples:
  stof calibrate
  stof calibrate --device 1 --json

Times some twenty kernels and fits the rates to them that the cost model counts with. They are kept in
the cache: engines that are opened with it later choose by them.)";

struct CalibrateOptions {
  EngineChoice engine;
  bool is_json = false;
};

nlohmann::ordered_json to_json(const engine::Calibration& calibration) {
  nlohmann::ordered_json rates, kernels = nlohmann::ordered_json::array();
  for (const tune::FittedRate& rate : tune::kFittedRates) {
    rates[rate.name] = {{"before", calibration.before.*rate.member},
                        {"after", calibration.after.*rate.member}};
  }
  for (const engine::CalibratedKernel& kernel : calibration.kernels) {
    kernels.push_back({{"kernel", kernel.name},
                       {"measured_us", kernel.measured_us},
                       {"before_us", kernel.before_us},
                       {"after_us", kernel.after_us}});
  }
  return {{"device", calibration.after.name},
          {"error_before", calibration.error_before},
          {"error_after", calibration.error_after},
          {"seconds", calibration.seconds},
          {"rates", rates},
          {"kernels", kernels}};
}

void calibrate(const CalibrateOptions& options) {
  options.engine.require_gpu("calibration");
  EngineOptions engine_options = options.engine.options();
  engine_options.backend = Backend::Gpu;
  const engine::Calibration calibration = engine::open_backend(engine_options)->calibrate();
  if (options.is_json) {
    print_json(to_json(calibration));
    return;
  }
  print(
      fmt::format("{}, {} kernels in {:.1f} s: predictions are off by {:.1f} %, with the rates "
                  "below by {:.1f} %",
                  calibration.after.name, calibration.kernels.size(), calibration.seconds,
                  100 * calibration.error_before, 100 * calibration.error_after));
  print(fmt::format("{:<22} {:>10} {:>10}", "rate", "before", "after"));
  for (const tune::FittedRate& rate : tune::kFittedRates) {
    print(fmt::format("{:<22} {:>10.4g} {:>10.4g}", rate.name, calibration.before.*rate.member,
                      calibration.after.*rate.member));
  }
}

}  // namespace

void add_calibrate(CLI::App& stof) {
  auto options = std::make_shared<CalibrateOptions>();
  CLI::App* app =
      stof.add_subcommand("calibrate", "Fit what the cost model knows of this GPU to times on it");
  app->add_option("--device", options->engine.device, "Which GPU, as the CUDA runtime counts them")
      ->capture_default_str();
  app->add_flag("--json", options->is_json, "For programs");
  options->engine.add_kernels_to(*app);
  app->footer(kCalibrateExamples);
  app->callback([options] { calibrate(*options); });
}

}  // namespace stof::command
