// stof render and stof template: kernels as text, and whether they can be trusted.
#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/environment.hpp"
#include "base/files.hpp"
#include "command.hpp"
#include "compile/nvrtc_compiler.hpp"
#include "cuda/read_device_profile.hpp"
#include "engine/gpu_backend.hpp"
#include "fusion/template_library.hpp"
#include "render/renderer.hpp"
#include "render/value.hpp"
#include "validate/check_template.hpp"
#include "validate/template_cases.hpp"
#include "validate/verdict.hpp"

namespace stof::command {

namespace {

constexpr const char* kRenderExamples = R"(Examples:
  stof render norm/layer_norm.jinja --target sm_90a
  stof render norm/layer_norm.jinja --print-variables > variables.json
  stof render my_kernel.jinja --templates my_templates --variables variables.json

Without --variables a template is rendered with the first dims of its "tests".)";

constexpr const char* kTemplateExamples = R"(Examples:
  stof template list
  stof template check my_templates/my_kernel.jinja --templates my_templates
  stof template check --target sm_80 --target sm_90a)";

constexpr std::size_t kMaxVariableBytes = std::size_t{16} << 20;

std::shared_ptr<const render::TemplateStore> open_store(const TemplateOptions& options) {
  std::vector<std::filesystem::path> folders = options.folders;
  std::ranges::copy(base::read_environment().template_dirs, std::back_inserter(folders));
  auto store = std::make_shared<const render::TemplateStore>(render::TemplateStore::open(folders));
  for (const render::UnreadFile& file : store->unread()) {
    throw GraphError(fmt::format("template file {}: {}", file.path, file.reason));
  }
  return store;
}

// The path of a template below its root: what is given, or what is left of a path of the file.
std::string find_template(const render::TemplateStore& store, const TemplateOptions& options,
                          const std::string& given) {
  if (store.files().contains(given)) {
    return given;
  }
  const std::filesystem::path file = std::filesystem::absolute(given).lexically_normal();
  for (const std::filesystem::path& folder : options.folders) {
    const auto root = std::filesystem::absolute(folder).lexically_normal();
    std::string below = file.lexically_relative(root).generic_string();
    if (store.files().contains(below)) {
      return below;
    }
  }
  throw GraphError(fmt::format(
      "there is no template '{}'; `stof template list` has those that there are{}", given,
      std::filesystem::exists(file) ? ", --templates FOLDER adds the folder of a file" : ""));
}

struct RenderOptions {
  TemplateOptions templates;
  std::string file;
  std::string variables;
  std::string output;
  EngineOptions device = {.target = "sm_90a"};
  bool prints_variables = false;
};

nlohmann::json variables_of(const RenderOptions& options, const render::TemplateStore& store,
                            const std::string& file) {
  if (!options.variables.empty()) {
    auto variables = nlohmann::json::parse(base::read_file(options.variables, kMaxVariableBytes),
                                           nullptr, /*allow_exceptions=*/false);
    if (!variables.is_object()) {
      throw GraphError(fmt::format("{}: this is no JSON{}", options.variables,
                                   variables.is_discarded() ? "" : " object"));
    }
    return variables;
  }
  const auto contract = contract::parse_contract(file, store.files().at(file).text);
  const auto cases = validate::template_cases(contract, engine::profile_of_target(options.device));
  if (cases.empty()) {
    throw GraphError(
        fmt::format("{}: there is no case of \"tests\" to try on {}: {}; --variables or another "
                    "--target may help",
                    file, options.device.target,
                    validate::why_no_case(contract, engine::profile_of_target(options.device))));
  }
  return cases.front().variables;
}

void render_template(const RenderOptions& options) {
  const render::Renderer renderer(open_store(options.templates));
  const std::string file = find_template(renderer.store(), options.templates, options.file);
  const nlohmann::json variables = variables_of(options, renderer.store(), file);
  std::string text;
  try {
    text = options.prints_variables ? variables.dump(2)
                                    : renderer.render(file, render::from_json(variables)).text;
  } catch (const render::Failure& failure) {  // of the variables
    throw GraphError(fmt::format("{}: {}", options.variables, failure.what()));
  }
  if (options.output.empty()) {
    print(text);
  } else {
    base::write_file_atomically(options.output, text);
  }
}

struct CheckOptions {
  TemplateOptions templates;
  std::vector<std::string> files;
  std::vector<std::string> targets = {"sm_80", "sm_90a"};
  int device = 0;
  bool has_no_gpu = false;
  bool is_json = false;
};

void list_templates(const CheckOptions& options) {
  const auto library = fusion::read_templates(open_store(options.templates)->texts());
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const fusion::KernelTemplate& one : library) {
    list.push_back({{"file", one.file},
                    {"name", one.contract.name},
                    {"version", one.contract.version},
                    {"summary", one.contract.summary}});
    if (!options.is_json) {
      print(fmt::format("{:<36} {}", one.file, one.contract.summary));
    }
  }
  if (options.is_json) {
    print_json(list);
  }
}

void print_check(const validate::TemplateCheck& check, std::span<const std::string_view> left_out) {
  print(check.file);
  for (const validate::Rung& rung : check.rungs) {
    print(fmt::format("  {:<13} {}    {}", rung.name, rung.is_passed ? "passed" : "FAILED",
                      rung.detail));
  }
  for (const std::string_view rung : left_out) {
    print(fmt::format("  {:<13} left out  there is no GPU", rung));
  }
  for (const std::string& warning : check.warnings) {
    print(fmt::format("  warning       {}", warning));
  }
}

// The GPU that the numbers are tried on; nothing where this process may use none.
std::optional<validate::Gpu> find_gpu(const CheckOptions& options) {
  if (options.has_no_gpu) {
    return std::nullopt;
  }
  try {
    return validate::Gpu{.device = options.device,
                         .profile = cuda::read_device_profile(options.device)};
  } catch (const CudaError&) {
    if (options.device != 0) {  // someone wants that one
      throw;
    }
    return std::nullopt;
  }
}

void check_templates(const CheckOptions& options) {
  const render::Renderer renderer(open_store(options.templates));
  std::vector<base::DeviceProfile> devices;
  devices.reserve(options.targets.size());
  for (const std::string& target : options.targets) {
    devices.push_back(engine::profile_of_target({.target = target}));
  }
  std::vector<std::string> files;
  files.reserve(options.files.size());
  for (const std::string& file : options.files) {
    files.push_back(find_template(renderer.store(), options.templates, file));
  }
  if (files.empty()) {
    for (const auto& [file, text] : renderer.store().texts()) {
      if (contract::has_contract(text)) {
        files.push_back(file);
      }
    }
  }
  const compile::NvrtcCompiler compiler;
  const validate::CheckTools tools{.renderer = &renderer,
                                   .compiler = &compiler,
                                   .devices = devices,
                                   .gpu = find_gpu(options),
                                   .stop = {}};
  bool is_passed = true;
  nlohmann::ordered_json checks = nlohmann::ordered_json::array();
  for (const std::string& file : files) {
    const validate::TemplateCheck check = validate::check_template(tools, file);
    const bool is_cut_short = !tools.gpu && check.is_passed();
    const std::span<const std::string_view> left_out(validate::kGpuRungs.data(),
                                                     is_cut_short ? validate::kGpuRungs.size() : 0);
    is_passed = is_passed && check.is_passed();
    if (options.is_json) {
      checks.push_back(validate::to_json(check));
      checks.back()["left_out"] = left_out;
    } else {
      print_check(check, left_out);
    }
  }
  if (options.is_json) {
    print_json(checks);
  }
  if (!is_passed) {
    throw Failed{BadTemplate};
  }
}

}  // namespace

void add_render(CLI::App& stof) {
  auto options = std::make_shared<RenderOptions>();
  CLI::App* app = stof.add_subcommand("render", "Print the CUDA source that a template gives");
  app->add_option("TEMPLATE", options->file, "Its path below its folder")->required();
  app->add_option("--variables", options->variables, "What it is rendered with")
      ->type_name("FILE.json");
  app->add_option("--target", options->device.target, "Where there are no --variables: for what")
      ->capture_default_str();
  app->add_flag("--print-variables", options->prints_variables, "Print these instead, as JSON");
  app->add_option("--output", options->output, "A file to write, else stdout")->type_name("FILE");
  options->templates.add_to(*app);
  app->footer(kRenderExamples);
  app->callback([options] { render_template(*options); });
}

void add_template(CLI::App& stof) {
  auto options = std::make_shared<CheckOptions>();
  CLI::App* app = stof.add_subcommand("template", "List and check templates");
  app->require_subcommand(1);
  app->footer(kTemplateExamples);

  CLI::App* list = app->add_subcommand("list", "Every kernel template that there is");
  options->templates.add_to(*list);
  list->add_flag("--json", options->is_json, "For programs");
  list->callback([options] { list_templates(*options); });

  CLI::App* check = app->add_subcommand(
      "check", "Read the contract, render and compile for each target; where there is a GPU, run");
  check->add_option("TEMPLATE", options->files, "Which; all, where none is named");
  check->add_option("--target", options->targets, "For what; once for each")
      ->allow_extra_args(false)
      ->capture_default_str();
  check->add_option("--device", options->device, "The GPU that tries its numbers")
      ->capture_default_str();
  check->add_flag("--no-gpu", options->has_no_gpu, "Leave out what needs a GPU");
  options->templates.add_to(*check);
  check->add_flag("--json", options->is_json, "For programs");
  check->footer(kTemplateExamples);
  check->callback([options] { check_templates(*options); });
}

}  // namespace stof::command
