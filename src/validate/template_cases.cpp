#include "validate/template_cases.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "contract/evaluate.hpp"
#include "expr/evaluate.hpp"
#include "fusion/attention_use.hpp"
#include "fusion/cuda_type.hpp"
#include "fusion/variables.hpp"
#include "mask/features.hpp"

namespace stof::validate {

using contract::ContractScope;
using contract::TemplateContract;
using nlohmann::json;

namespace {

constexpr std::array kMaskClasses = {mask::MaskClass::Bitmap, mask::MaskClass::None,
                                     mask::MaskClass::IntervalRows,
                                     mask::MaskClass::InlinePredicate};

// Values that an attribute without a fixed one is tried with.
std::vector<double> candidates(const contract::PatternAttribute& attribute) {
  switch (attribute.type) {
    case ScalarType::Bool:
      return {0, 1};
    case ScalarType::Int:
      return {0, 16};
    default:
      return {1e-5};
  }
}

// Constraints over strides and alignments say how tensors may lie, which no source depends on.
TemplateContract without_layout(TemplateContract contract) {
  std::erase_if(contract.constraints, [](const contract::Constraint& constraint) {
    return constraint.text.find("stride.") != std::string::npos ||
           constraint.text.find("alignment.") != std::string::npos;
  });
  return contract;
}

bool takes_mask(const TemplateContract& contract) {
  return std::ranges::any_of(
      contract.pattern, [](const contract::PatternStep& step) { return step.op == "attention"; });
}

class Cases {
 public:
  Cases(const TemplateContract& contract, const base::DeviceProfile& device)
      : contract_(without_layout(contract)) {
    for (const auto& [name, value] : device.scalars()) {
      device_.emplace("device." + name, value);
    }
    for (const contract::PatternStep& step : contract_.pattern) {
      for (const contract::PatternAttribute& attribute : step.attributes) {
        if (!attribute.value) {
          attributes_.push_back(attribute);
        }
      }
    }
  }

  // Why there is none, where there is none.
  std::string refusal() const {
    for (const Dims& dims : contract_.tests) {
      ContractScope one;
      one.dims = dims;
      for (const auto& [symbol, choices] : contract_.dtypes) {
        one.dtypes.emplace(symbol, choices.front());
      }
      fill(one);
      if (!admit(one, 0)) {
        return fmt::format("{}: {} does not hold", text_of(dims),
                           contract::violated_constraint(contract_, one)->text);
      }
    }
    return "the restrictions allow no setting of the parameters";
  }

  // Where long tiles are worked on in parts, once with none and once with one, in two.
  std::vector<TemplateCase> all() && {
    add_all("");
    if (contract_.is_passed("mask.long_tiles")) {
      has_long_tiles_ = true;
      add_all(", a long tile");
    }
    return std::move(cases_);
  }

 private:
  using Dims = std::map<std::string, std::int64_t>;
  using Dtypes = std::map<std::string, DType>;

  void add_all(const std::string& more) {
    const std::size_t middle = contract_.tests.size() / 2;
    for (std::size_t i = 0; i < contract_.tests.size(); ++i) {
      Dtypes dtypes;
      for (const auto& [symbol, choices] : contract_.dtypes) {
        dtypes.emplace(symbol, choices.front());
      }
      const Dims& dims = contract_.tests[i];
      const std::string text = text_of(dims) + more;
      if (const std::optional<ContractScope> base = scope(dims, dtypes)) {
        add(text, *base);
        if (i == middle) {
          add_variants(text, *base);
        }
      }
    }
  }

  static std::string text_of(const Dims& dims) {
    std::string text;
    for (const auto& [name, value] : dims) {
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, value);
    }
    return text;
  }

  // Uses that differ from this one in one thing.
  void add_variants(const std::string& text, const ContractScope& base) {
    add(text + " without optional ports", base, false);
    add_hooked(text, base);
    add_scored(text, base);
    for (const mask::MaskClass mask_class : kMaskClasses) {
      if (takes_mask(contract_) && mask_class != kMaskClasses.front()) {
        add(fmt::format("{} with a mask of class {}", text, mask::name(mask_class)), base, true,
            mask_class);
      }
    }
    for (const auto& [symbol, choices] : contract_.dtypes) {
      for (std::size_t i = 1; i < choices.size(); ++i) {
        Dtypes others = base.dtypes;
        others[symbol] = choices[i];
        if (const std::optional<ContractScope> other = scope(base.dims, others)) {
          add(fmt::format("{} in {}", text, name(choices[i])), *other);
        }
      }
    }
    for (const kernel::ConfigParameter& parameter : contract_.params) {
      const auto [least, most] = std::ranges::minmax(parameter.values);
      for (const std::int64_t value : {least, most}) {
        ContractScope end = base;
        end.config[parameter.name] = value;
        if (end.config != base.config && contract::is_allowed(contract_, end)) {
          add(fmt::format("{} with param.{} = {}", text, parameter.name, value), end);
        }
      }
    }
  }

  // A tensor as large as what the hook sees is added there.
  void add_hooked(const std::string& text, const ContractScope& base) {
    const auto hook = contract_.hooks.find("epilogue");
    const contract::Port* port =
        hook == contract_.hooks.end() ? nullptr : contract_.find_port(hook->second);
    if (port == nullptr) {
      return;
    }
    add(text + " with a tensor at the hook", base);
    const std::size_t rank = port->shape.size();
    const auto symbol = base.dtypes.find(port->dtype);
    const DType dtype =
        symbol != base.dtypes.end() ? symbol->second : *dtype_from_name(port->dtype);
    TemplateCase& hooked = cases_.back();
    hooked.variables["hook"][hook->first] = {
        {"value", "x0"},
        {"tensors",
         {{{"name", "t0"}, {"dtype", fusion::cuda_type(dtype)}, {"per", json(rank, true)}}}},
        {"statements", {{{"result", "x1"}, {"op", "add"}, {"inputs", {"x0", "t0"}}}}},
        {"result", "x1"}};
    hooked.argument_bytes.insert(hooked.argument_bytes.end(), rank, 8);  // a pointer, and strides
  }

  // Where the template takes modifiers of scores, a number is a factor of what tanh is taken of,
  // two tensors are added, of pairs, whose rows lie along keys, and of distances, and bytes of
  // pairs say what is seen. In the other cases nothing is read, or such bytes alone.
  void add_scored(const std::string& text, const ContractScope& base) {
    if (!takes_mask(contract_) || !contract_.takes_scores) {
      return;
    }
    add(text + " with a score modifier", base);
    TemplateCase& scored = cases_.back();
    json& mod = scored.variables["mod"];
    mod["score"] =
        "(reads.read_allowed(batch, q_pos, k_pos) != 0 ? reads.tanh(score * score_factor) + "
        "reads.read_pairs(head, q_pos, k_pos) + reads.read_distances(k_pos - q_pos + q_len - 1) "
        ": score_low)";
    mod["score_reads_by_key"] = true;
    mod["score_has_tanh"] = true;
    mod["parameters"] = {{{"type", "float"}, {"name", "score_factor"}},
                         {{"type", "float"}, {"name", "score_low"}}};
    scored.argument_bytes.insert(scored.argument_bytes.end(), 2, 4);
    add_capture(scored, "allowed", 3, true, "bool");
    add_capture(scored, "pairs", 3, true);
    add_capture(scored, "distances", 1, false);
    add(text + " with a soft cap", base);
    TemplateCase& capped = cases_.back();
    json& cap = capped.variables["mod"];
    cap["score"] = "score_cap * reads.tanh(stof::score_quotient(score, score_cap))";
    cap["score_has_tanh"] = true;
    cap["parameters"] = {{{"type", "float"}, {"name", "score_cap"}}};
    capped.argument_bytes.push_back(4);
    add(text + " with a mask of bytes", base);
    TemplateCase& masked = cases_.back();
    json& bytes = masked.variables["mod"];
    bytes["score"] = "(reads.read_allowed(batch, q_pos, k_pos) != 0 ? score : score_low)";
    bytes["score_reads_by_key"] = true;
    bytes["score_reads_bytes_alone"] = true;
    bytes["parameters"] = {{{"type", "float"}, {"name", "score_low"}}};
    masked.argument_bytes.push_back(4);
    add_capture(masked, "allowed", 3, true, "bool");
  }

  // As Modifier has a captured tensor whose last axis has a stride of 1.
  static void add_capture(TemplateCase& scored, const std::string& name, int rank, bool is_tile,
                          const std::string& dtype = "half") {
    json& mod = scored.variables["mod"];
    mod["captures"].push_back({{"name", "read_" + name},
                               {"pointer", name},
                               {"dtype", dtype},
                               {"rank", rank},
                               {"is_wide", false},
                               {"has_unit_stride", true},
                               {"is_tile", is_tile}});
    mod["parameters"].push_back({{"type", "const " + dtype + "*"}, {"name", name}});
    scored.argument_bytes.push_back(8);
    for (int axis = 0; axis < rank; ++axis) {
      mod["parameters"].push_back(
          {{"type", "long long"}, {"name", fmt::format("{}_s{}", name, axis)}});
      scored.argument_bytes.push_back(8);
    }
  }

  // With the first attributes that the constraints admit, and the default parameters or the first
  // that the restrictions do.
  std::optional<ContractScope> scope(const Dims& dims, const Dtypes& dtypes) const {
    ContractScope scope;
    scope.dims = dims;
    scope.dtypes = dtypes;
    fill(scope);
    if (!admit(scope, 0)) {
      return std::nullopt;
    }
    add_strides(scope);
    scope.config = contract::default_config(contract_);
    if (!contract::is_allowed(contract_, scope)) {
      std::vector<kernel::KernelConfig> allowed = contract::allowed_configs(contract_, scope);
      if (allowed.empty()) {
        return std::nullopt;
      }
      scope.config = std::move(allowed.front());
    }
    return scope;
  }

  // What is the same for all.
  void fill(ContractScope& scope) const {
    scope.device = device_;
    scope.mask_long_tiles = has_long_tiles_ ? 1 : 0;
    scope.mask_parts = has_long_tiles_ ? 2 : 1;
    for (const contract::Port& port : contract_.ports) {
      scope.alignments.emplace(port.name, 16);
    }
  }

  // Tries the candidates of the attributes from the n-th on.
  bool admit(ContractScope& scope, std::size_t n) const {
    if (n == attributes_.size()) {
      return contract::violated_constraint(contract_, scope) == nullptr;
    }
    return std::ranges::any_of(candidates(attributes_[n]), [&](double value) {
      scope.attributes[attributes_[n].name] = value;
      return admit(scope, n + 1);
    });
  }

  void add_strides(ContractScope& scope) const {
    expr::Bindings values;
    for (const auto& [name, value] : scope.dims) {
      values.emplace("dim." + name, value);
    }
    for (const contract::PatternAttribute& attribute : attributes_) {
      const double value = scope.attributes.at(attribute.name);
      values.emplace("attr." + attribute.name, attribute.type == ScalarType::Float
                                                   ? expr::Value(value)
                                                   : expr::Value(static_cast<std::int64_t>(value)));
    }
    for (const contract::Port& port : contract_.ports) {
      std::int64_t stride = 1;
      for (std::size_t axis = port.shape.size(); axis-- > 0;) {
        const contract::Extent& extent = port.shape[axis];
        scope.strides.emplace(port.name + "." + extent.dim, stride);
        stride *= extent.dim.empty() ? expr::evaluate_integer(extent.value, values)
                                     : scope.dims.at(extent.dim);
      }
    }
  }

  void add(std::string text, const ContractScope& scope, bool has_optional = true,
           mask::MaskClass mask_class = kMaskClasses.front()) {
    const contract::LaunchGeometry launch = contract::evaluate_launch(contract_, scope);
    std::set<std::string> present;
    for (const contract::Port& port : contract_.ports) {
      if (has_optional || !port.is_optional) {
        present.insert(port.name);
      }
    }
    json all = fusion::scope_variables(contract_, scope, present);
    for (const auto& [hook, value] : contract_.hooks) {
      all["hook"][hook] = {{"value", "x0"},
                           {"tensors", json::array()},
                           {"statements", json::array()},
                           {"result", "x0"}};
    }
    if (takes_mask(contract_)) {
      const bool has_predicate = mask_class == mask::MaskClass::InlinePredicate;
      all["mask"] = fusion::mask_variables(mask_class, scope);
      all["mod"] = {{"predicate", has_predicate ? json("k_pos <= q_pos") : json()},
                    {"score", nullptr},
                    {"score_reads_by_key", false},
                    {"score_reads_bytes_alone", false},
                    {"score_has_tanh", false},
                    {"captures", json::array()},
                    {"parameters", json::array()}};
    }
    cases_.push_back({.text = std::move(text),
                      .variables = std::move(all),
                      .launch = launch,
                      .argument_bytes = contract::argument_bytes(contract_, scope),
                      .declared = contract::evaluate_resources(contract_, scope)});
  }

  TemplateContract contract_;
  std::map<std::string, std::int64_t> device_;
  std::vector<contract::PatternAttribute> attributes_;
  bool has_long_tiles_ = false;
  std::vector<TemplateCase> cases_;
};

}  // namespace

std::vector<TemplateCase> template_cases(const TemplateContract& contract,
                                         const base::DeviceProfile& device) {
  return Cases(contract, device).all();
}

std::string why_no_case(const TemplateContract& contract, const base::DeviceProfile& device) {
  return Cases(contract, device).refusal();
}

}  // namespace stof::validate
