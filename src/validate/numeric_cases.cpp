#include "validate/numeric_cases.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "contract/evaluate.hpp"
#include "fusion/attention_use.hpp"
#include "fusion/choose.hpp"
#include "fusion/why_unused.hpp"
#include "stof/error.hpp"
#include "validate/expected.hpp"
#include "validate/pattern_graph.hpp"

namespace stof::validate {

using contract::PatternAttribute;
using contract::TemplateContract;
using kernel::KernelConfig;

namespace {

constexpr double kSmallOperations = 1e8;  // for every setting
constexpr double kLightOperations = 1e9;  // for every kind of inputs
constexpr double kMostOperations = 5e9;
constexpr double kMostElements = 1 << 21;  // of all inputs and outputs

// Extents that no tile divides, for dims that are longer.
constexpr std::array<std::int64_t, 5> kShort = {61, 56, 48, 32, 16};
constexpr std::array<std::int64_t, 4> kLong = {4096, 3072, 2048, 1024};

bool is_prime(std::int64_t number) {
  for (std::int64_t divisor = 2; divisor * divisor <= number; ++divisor) {
    if (number % divisor == 0) {
      return false;
    }
  }
  return number > 1;
}

// Of dims or of a setting.
std::string text_of(const std::map<std::string, std::int64_t>& values) {
  std::string text;
  for (const auto& [name, value] : values) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, value);
  }
  return text;
}

std::vector<std::string> names_of(const std::map<std::string, std::int64_t>& dims) {
  std::vector<std::string> names;
  names.reserve(dims.size());
  for (const auto& [name, extent] : dims) {
    names.push_back(name);
  }
  return names;
}

// What may stand for an attribute without a value, the likeliest first.
std::vector<double> likely_values(const PatternAttribute& attribute,
                                  const std::map<std::string, std::int64_t>& dims) {
  if (attribute.type == ScalarType::Bool) {
    return {1, 0};
  }
  if (attribute.type == ScalarType::Float) {
    if (attribute.name == "theta") {
      return {10000};
    }
    return {attribute.name == "epsilon" ? 1e-5 : 0.125};
  }
  const auto head_dim = dims.find("head_dim");
  if (attribute.name == "rotary_dim" && head_dim != dims.end()) {
    return {static_cast<double>(head_dim->second)};
  }
  return {16, 1, 0};
}

// Whether the host should run the graph at all.
bool is_small_enough(const graph::Ir& ir) {
  double elements = 0;
  for (const auto& value : ir.values) {
    if (value->role != graph::ValueRole::Result) {
      elements += static_cast<double>(value->shape.element_count().value());
    }
  }
  for (const graph::Output& output : ir.outputs) {
    elements +=
        static_cast<double>(graph::value_at(ir, output.value).shape.element_count().value());
  }
  return elements <= kMostElements && host_operations(ir) <= kMostOperations;
}

// How a whole graph runs by one template, where it does.
class Admission {
 public:
  Admission(const TemplateAlone& alone, const base::DeviceProfile& device)
      : alone_(alone), contract_(alone.kernel.contract), device_(device) {}

  // Whether the template runs the graph of a use.
  bool takes(const PatternUse& use) const {
    try {
      refused_.reset();
      const graph::Ir ir = pattern_graph(contract_, use);
      if (!is_small_enough(ir)) {
        refusal_ = "it is too large for the host";
        return false;
      }
      if (find(ir)) {
        return true;
      }
      refused_ = ir;
      return false;
    } catch (const GraphError& error) {
      refusal_ = error.what();
    }
    return false;
  }

  // Why the last use was not taken.
  std::string refusal() const {
    return refused_ ? fusion::why_unused(alone_.kernel, *refused_, alone_.with_copies, device_)
                    : refusal_;
  }

  // The case with the default setting, or the first that is allowed, and with both ends of each
  // parameter where they are asked for; nothing where the template does not take it.
  std::optional<NumericCase> admit(const PatternUse& use, const std::string& text,
                                   bool has_ends) const {
    if (!takes(use)) {
      return std::nullopt;
    }
    NumericCase one{.text = text, .ir = pattern_graph(contract_, use), .variants = {}};
    one.operations = host_operations(one.ir);
    one.is_heavy = one.operations > kLightOperations;
    Found found = *find(one.ir);
    found.scope.config = contract::default_config(contract_);
    const bool is_usual = contract::is_allowed(contract_, found.scope);
    std::vector<KernelConfig> configs;
    if (has_ends || !is_usual) {
      configs = contract::allowed_configs(contract_, found.scope);
    }
    const KernelConfig usual = is_usual ? found.scope.config : configs.front();
    add(one, found, usual);
    for (const KernelConfig& config :
         has_ends ? ends(usual, configs) : std::vector<KernelConfig>()) {
      add(one, found, config);
    }
    return one.variants.empty() ? std::nullopt : std::optional(std::move(one));
  }

 private:
  // Of each parameter the least and the most that is allowed, in settings as near to the usual one
  // as can be.
  std::vector<KernelConfig> ends(const KernelConfig& usual,
                                 const std::vector<KernelConfig>& allowed) const {
    std::vector<KernelConfig> found;
    std::set<KernelConfig> known = {usual};
    for (const kernel::ConfigParameter& parameter : contract_.params) {
      const auto value_of = [&](const KernelConfig& config) { return config.at(parameter.name); };
      const auto [least, most] = std::ranges::minmax_element(allowed, {}, value_of);
      for (const std::int64_t end : {value_of(*least), value_of(*most)}) {
        const KernelConfig* nearest = nullptr;
        std::ptrdiff_t same = -1;
        for (const KernelConfig& config : allowed) {
          const auto equal = std::ranges::count_if(config, [&](const auto& setting) {
            return usual.at(setting.first) == setting.second;
          });
          if (value_of(config) == end && equal > same) {
            nearest = &config;
            same = equal;
          }
        }
        if (known.insert(*nearest).second) {
          found.push_back(*nearest);
        }
      }
    }
    return found;
  }

  // The problem that the template solves of a graph, and as what it sees it.
  struct Found {
    std::string problem;
    contract::ContractScope scope;
  };

  static fusion::Decisions in_one_piece(const graph::Ir& ir) {
    const std::size_t count = fusion::operator_order(ir).size();
    return {.scheme = fusion::Scheme(std::vector<bool>(count, false)),
            .settings = {},
            .lists_all = false};
  }

  fusion::Lowered lower(const graph::Ir& ir, const fusion::Decisions& decisions) const {
    return fusion::lower(ir, alone_.with_copies, device_, {}, decisions);
  }

  // The launch of the template among those of the copies ahead of it.
  static std::optional<std::size_t> main_launch(const fusion::Lowered& lowered) {
    for (std::size_t i = 0; i < lowered.origins.size(); ++i) {
      const fusion::LaunchOrigin& origin = lowered.origins[i];
      if (origin.group == 0 && origin.problem["operators"][0]["op"] != "copy") {
        return i;
      }
    }
    return std::nullopt;
  }

  // Nothing where the template does not run it.
  std::optional<Found> find(const graph::Ir& ir) const {
    const fusion::Lowered lowered = lower(ir, in_one_piece(ir));
    const std::optional<std::size_t> launch = main_launch(lowered);
    if (!launch) {
      return std::nullopt;
    }
    const std::string problem = fusion::problem_key(lowered.origins[*launch].problem);
    auto scope = scope_of(ir, problem, lowered, *launch);
    return scope ? std::optional(Found{.problem = problem, .scope = *std::move(scope)})
                 : std::nullopt;
  }

  // Of the template, which is what runs unless one that copies takes the operators too.
  std::optional<contract::ContractScope> scope_of(const graph::Ir& ir, const std::string& problem,
                                                  const fusion::Lowered& lowered,
                                                  std::size_t launch) const {
    const auto kernel = static_cast<std::size_t>(lowered.program.launches[launch].kernel);
    if (lowered.specs[kernel].file == alone_.kernel.file) {
      return lowered.scopes[kernel];
    }
    fusion::Decisions all = in_one_piece(ir);
    all.lists_all = true;
    const fusion::Lowered listed = lower(ir, all);
    for (const fusion::Option& option : listed.options[launch]) {
      if (option.kernel == contract_.name) {
        const fusion::Lowered forced = with_setting(ir, problem, option.config);
        return forced.scopes[static_cast<std::size_t>(forced.program.launches[launch].kernel)];
      }
    }
    return std::nullopt;
  }

  fusion::Lowered with_setting(const graph::Ir& ir, const std::string& problem,
                               const KernelConfig& config) const {
    fusion::Decisions decisions = in_one_piece(ir);
    decisions.settings.emplace(problem,
                               fusion::Setting{.kernel = contract_.name, .config = config});
    return lower(ir, decisions);
  }

  void add(NumericCase& one, const Found& found, const KernelConfig& config) const {
    fusion::Lowered lowered = with_setting(one.ir, found.problem, config);
    const bool is_taken = std::ranges::all_of(
        lowered.origins, [](const fusion::LaunchOrigin& origin) { return origin.refusal.empty(); });
    if (is_taken) {
      one.variants.push_back({.text = text_of(config), .lowered = std::move(lowered)});
    }
  }

  const TemplateAlone& alone_;
  const TemplateContract& contract_;
  const base::DeviceProfile& device_;
  mutable std::string refusal_;
  mutable std::optional<graph::Ir> refused_;  // that the template does not run
};

class NumericCases {
 public:
  NumericCases(const TemplateAlone& alone, const base::DeviceProfile& device)
      : contract_(alone.kernel.contract), admission_(alone, device) {}

  std::vector<NumericCase> all() && {
    std::optional<PatternUse> largest;
    double most = 0;
    for (const std::map<std::string, std::int64_t>& dims : contract_.tests) {
      const std::optional<PatternUse> use = first_use(dims);
      if (!use) {
        continue;
      }
      const double operations = host_operations(pattern_graph(contract_, *use));
      const bool is_small = operations <= kSmallOperations;
      add(*use, text_of(dims), is_small);
      if (is_small) {
        PatternUse strided = *use;
        strided.is_strided = true;
        add(strided, text_of(dims) + ", strided");
      }
      if (!largest || (is_small && operations > most)) {
        largest = use;
        most = operations;
      }
    }
    if (!largest) {
      throw GraphError("no case of \"tests\" is taken: " + refusal_);
    }
    add_variants(*largest);
    add_ragged(*largest);
    add_long(*largest);
    return std::move(cases_);
  }

 private:
  bool takes(const PatternUse& use) const { return admission_.takes(use); }

  // With the first dtypes and attributes that the template takes.
  std::optional<PatternUse> first_use(const std::map<std::string, std::int64_t>& dims) {
    PatternUse use{.dims = dims, .dtypes = {}, .attributes = {}};
    for (const auto& [symbol, choices] : contract_.dtypes) {
      use.dtypes.emplace(symbol, choices.front());
    }
    if (fusion::takes_global_tokens(contract_)) {
      use.mask = longformer(20, 17);
    }
    if (fusion::takes_intervals(contract_)) {
      use.mask = Mask(key_position() / 400 == query_position() / 50);  // of many, or of none
    }
    const std::vector<PatternAttribute> attributes = free_attributes(contract_);
    for (const bool is_transposed : {false, true}) {
      use.is_transposed = is_transposed;
      if (choose_attributes(use, attributes, 0)) {
        return use;
      }
      refusal_ = refusal_.empty() ? admission_.refusal() : refusal_;
    }
    return std::nullopt;
  }

  bool choose_attributes(PatternUse& use, const std::vector<PatternAttribute>& attributes,
                         std::size_t n) const {
    if (n == attributes.size()) {
      return takes(use);
    }
    return std::ranges::any_of(likely_values(attributes[n], use.dims), [&](double value) {
      use.attributes[attributes[n].name] = value;
      return choose_attributes(use, attributes, n + 1);
    });
  }

  void add(const PatternUse& use, const std::string& text, bool has_ends = false) {
    if (std::optional<NumericCase> one = admission_.admit(use, text, has_ends)) {
      cases_.push_back(*std::move(one));
    }
  }

  void add_variants(const PatternUse& base) {
    const std::string text = text_of(base.dims);
    const auto with = [&](const char* what, auto change) {
      PatternUse use = base;
      change(use);
      add(use, fmt::format("{}, {}", text, what));
    };
    with("without optional ports", [](PatternUse& use) { use.has_optional_ports = false; });
    if (!contract_.hooks.empty()) {
      with("with an epilogue", [](PatternUse& use) { use.has_epilogue = true; });
    }
    add_absent_steps(base, text);
    add_dtypes(base, text);
    for (const PatternAttribute& attribute : free_attributes(contract_)) {
      if (attribute.type == ScalarType::Bool) {
        PatternUse use = base;
        double& value = use.attributes[attribute.name];
        value = 1 - value;
        add(use, fmt::format("{}, {} {}", text, attribute.name, value));
      }
    }
    if (contract_.pattern.front().op == "attention") {
      with("causal", [](PatternUse& use) { use.mask = causal(); });
      with("in a window", [](PatternUse& use) { use.mask = sliding_window(70, 3); });
      with("of random keys", [](PatternUse& use) { use.mask = random_tokens(0.1, 7); });
    }
  }

  void add_absent_steps(const PatternUse& base, const std::string& text) {
    PatternUse bare = base;
    for (std::size_t i = 0; i < contract_.pattern.size(); ++i) {
      if (contract_.pattern[i].is_optional) {
        PatternUse use = base;
        use.absent_steps = {i};
        bare.absent_steps.insert(i);
        add(use, fmt::format("{}, without {}", text, contract_.pattern[i].outputs.front()));
      }
    }
    if (!bare.absent_steps.empty()) {
      bare.has_optional_ports = false;
      add(bare, text + ", the required operators alone");
    }
  }

  // Each dtype, for as many symbols as take it.
  void add_dtypes(const PatternUse& base, const std::string& text) {
    std::set<DType> dtypes;
    for (const auto& [symbol, choices] : contract_.dtypes) {
      dtypes.insert(choices.begin(), choices.end());
    }
    for (const DType dtype : dtypes) {
      PatternUse use = base;
      for (const auto& [symbol, choices] : contract_.dtypes) {
        if (std::ranges::find(choices, dtype) != choices.end()) {
          use.dtypes[symbol] = dtype;
        }
      }
      if (use.dtypes != base.dtypes) {
        add(use, fmt::format("{}, in {}", text, name(dtype)));
      }
    }
  }

  // Each dim, one after another, the largest prime below it, or what else no 16 divides.
  void add_ragged(PatternUse use) {
    for (const std::string& name : names_of(use.dims)) {
      const std::int64_t whole = use.dims[name];
      std::vector<std::int64_t> tried;
      for (std::int64_t less = whole; less > std::max<std::int64_t>(whole - 64, 1); --less) {
        if (is_prime(less)) {
          tried.push_back(less);
          break;
        }
      }
      for (std::int64_t less = whole - 1; less > std::max<std::int64_t>(whole - 32, 1); --less) {
        if (less % 16 != 0) {
          tried.push_back(less);
        }
      }
      use.dims[name] = first_taken(use, name, tried).value_or(whole);
    }
    add(use, text_of(use.dims), true);
  }

  // The first of several extents of a dim that the template takes.
  std::optional<std::int64_t> first_taken(PatternUse use, const std::string& dim,
                                          std::span<const std::int64_t> extents) const {
    for (const std::int64_t extent : extents) {
      use.dims[dim] = extent;
      if (takes(use)) {
        return extent;
      }
    }
    return std::nullopt;
  }

  void add_long(const PatternUse& base) {
    for (const std::string& name : names_of(base.dims)) {
      for (const std::int64_t most : {kShort.front(), kShort.back()}) {
        PatternUse use = base;
        for (const std::string& other : names_of(base.dims)) {
          if (other != name) {
            shorten(use, other, most);
          }
        }
        if (const auto extent = first_taken(use, name, kLong)) {
          use.dims[name] = *extent;
          add(use, text_of(use.dims));
          break;
        }
      }
    }
  }

  void shorten(PatternUse& use, const std::string& dim, std::int64_t most) const {
    std::int64_t& extent = use.dims[dim];
    std::vector<std::int64_t> shorter;
    std::ranges::copy_if(kShort, std::back_inserter(shorter),
                         [&](std::int64_t less) { return less <= most && less < extent; });
    extent = first_taken(use, dim, shorter).value_or(extent);
  }

  const TemplateContract& contract_;
  Admission admission_;
  std::vector<NumericCase> cases_;
  std::string refusal_;  // the first
};

bool copies(const TemplateContract& contract) {
  return contract.pattern.size() == 1 && contract.pattern.front().op == "copy";
}

}  // namespace

TemplateAlone alone(const fusion::TemplateLibrary& library, const std::string& file) {
  TemplateAlone result;
  for (const fusion::KernelTemplate& kernel : library) {
    if (kernel.file == file || copies(kernel.contract)) {
      result.with_copies.push_back(kernel);
    }
    if (kernel.file != file && copies(kernel.contract)) {
      // With operators at its hook it could run other patterns, and is not to be preferred there.
      constexpr std::int64_t kForbidding = std::int64_t{1} << 50;
      result.with_copies.back().contract.cost.flops = Expr(kForbidding);
    }
    if (kernel.file != file) {
      result.others.push_back(kernel);
    }
  }
  const auto found = std::ranges::find(result.with_copies, file, &fusion::KernelTemplate::file);
  if (found == result.with_copies.end()) {
    throw GraphError(fmt::format("'{}' is no template of this library", file));
  }
  result.kernel = *found;
  return result;
}

std::vector<NumericCase> numeric_cases(const TemplateAlone& alone,
                                       const base::DeviceProfile& device) {
  return NumericCases(alone, device).all();
}

}  // namespace stof::validate
