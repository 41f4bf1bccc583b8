#include "contract/contract.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "contract/header.hpp"
#include "contract/pattern.hpp"
#include "contract/scalars.hpp"
#include "expr/evaluate.hpp"
#include "expr/transform.hpp"
#include "stof/error.hpp"

namespace stof::contract {

namespace {

constexpr std::int64_t kSchema = 1;
constexpr std::size_t kMaxParameterValues = 64;
constexpr std::size_t kMaxConfigs = 131072;

constexpr std::array<std::pair<std::string_view, WeightTransform>, 6> kTransforms = {{
    {"transpose", WeightTransform::Transpose},
    {"concat", WeightTransform::Concat},
    {"interleave", WeightTransform::Interleave},
    {"fold_scale", WeightTransform::FoldScale},
    {"centre", WeightTransform::Centre},
    {"colsum", WeightTransform::ColumnSum},
}};

// Builds a contract field by field; the order matters, because expressions may only use names that
// are declared above them in this class, wherever they stand in the JSON.
class ContractReader {
 public:
  explicit ContractReader(HeaderValue header) : header_(std::move(header)) {}

  TemplateContract read() {
    header_.expect_fields(
        {"contract", "name", "version", "summary", "ports", "pattern", "dtypes", "resources",
         "launch"},
        {"replaces", "escapes", "accumulate", "constraints", "params", "restrictions", "weights",
         "workspace", "cost", "hooks", "score_modifiers", "deterministic", "tests"});
    if (const HeaderValue schema = header_["contract"]; schema.integer() != kSchema) {
      schema.fail(
          fmt::format("schema {} is not known, this version reads {}", schema.integer(), kSchema));
    }
    read_identity();
    read_dtypes();
    read_pattern();
    read_ports();
    check_values();
    read_params();
    read_conditions();
    read_weights();
    read_resources();
    read_launch();
    read_rest();
    find_scalars_read();
    return std::move(contract_);
  }

 private:
  void read_identity() {
    contract_.name = header_["name"].identifier();
    contract_.summary = header_["summary"].string();
    const HeaderValue version = header_["version"];
    contract_.version = version.integer();
    if (contract_.version < 1) {
      version.fail(fmt::format("a version is at least 1, found {}", contract_.version));
    }
    if (header_.has("replaces")) {
      contract_.replaces = header_["replaces"].identifier();
    }
  }

  DType dtype(const HeaderValue& value) const {
    const auto dtype = dtype_from_name(value.string());
    if (!dtype) {
      value.fail(
          fmt::format("'{}' is no dtype: float16, bfloat16, float32, int32, int64, uint8, bool",
                      value.string()));
    }
    return *dtype;
  }

  void read_dtypes() {
    for (const auto& [symbol, list] : header_["dtypes"].members()) {
      list.expect_name(symbol);
      if (dtype_from_name(symbol)) {
        list.fail("a dtype symbol may not be called like a dtype");
      }
      std::vector<DType>& dtypes = contract_.dtypes[symbol];
      for (const HeaderValue& item : list.items()) {
        dtypes.push_back(dtype(item));
      }
      if (dtypes.empty()) {
        list.fail("a dtype symbol needs at least one dtype");
      }
      names_.scalars.emplace("size." + symbol, ScalarType::Int);
    }
    if (header_.has("accumulate")) {
      contract_.accumulate = dtype(header_["accumulate"]);
    }
  }

  void read_pattern() {
    for (const HeaderValue& item : header_["pattern"].items()) {
      PatternStep step = parse_pattern_step(item);
      for (const std::string& input : step.inputs) {
        read_.insert(input);
        if (!step.is_optional) {
          read_by_required_.insert(input);
        }
      }
      for (const std::string& output : step.outputs) {
        if (read_.contains(output) || !written_.insert(output).second) {
          item.fail(fmt::format("'{}' is read or written before this step", output));
        }
      }
      for (const PatternAttribute& attribute : step.attributes) {
        if (!attribute.value) {
          names_.scalars.insert_or_assign("attr." + attribute.name, attribute.type);
        }
      }
      if (step.op == "copy" && (step.inputs.size() != 1 || step.outputs.size() != 1)) {
        item.fail("a copy has one input and one output");
      }
      if (step.is_optional && (step.outputs.size() != 1 || step.inputs.empty())) {
        item.fail(
            "an optional operator has one output and at least one input, which stands for it");
      }
      contract_.pattern.push_back(std::move(step));
    }
    if (contract_.pattern.empty()) {
      header_["pattern"].fail("a pattern has at least one operator");
    }
  }

  void read_ports() {
    const auto members = header_["ports"].members();
    for (const auto& [name, value] : members) {
      declare_dims(value);
      Port port;
      port.name = name;
      port.is_output = written_.contains(name);
      if (!port.is_output && !read_.contains(name)) {
        value.fail("no step of the pattern reads or writes this port");
      }
      // The first input of an optional operator is there in any case: it stands for the output.
      port.is_optional =
          (value.has("optional") && value["optional"].boolean()) ||
          (!port.is_output && !read_by_required_.contains(name) && !is_first_input(name));
      contract_.ports.push_back(std::move(port));
    }
    for (std::size_t i = 0; i < members.size(); ++i) {
      read_port(members[i].second, contract_.ports[i], 0);
      names_.scalars.emplace("alignment." + members[i].first, ScalarType::Int);
      for (const Extent& extent : contract_.ports[i].shape) {
        if (!extent.dim.empty()) {
          names_.scalars.emplace(fmt::format("stride.{}.{}", members[i].first, extent.dim),
                                 ScalarType::Int);
        }
      }
    }
    read_escapes();
  }

  // All dims get their names before any expression over them is read.
  void declare_dims(const HeaderValue& port) {
    if (port.has("shape")) {
      for (const HeaderValue& item : port["shape"].items()) {
        if (item.is_string() && is_name(item.string())) {
          names_.scalars.emplace("dim." + item.identifier(), ScalarType::Int);
        }
      }
    }
  }

  static bool is_name(const std::string& text) {
    return std::all_of(text.begin(), text.end(),
                       [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
  }

  bool is_first_input(const std::string& name) const {
    return std::any_of(
        contract_.pattern.begin(), contract_.pattern.end(),
        [&](const PatternStep& step) { return !step.inputs.empty() && step.inputs[0] == name; });
  }

  void read_port(const HeaderValue& value, Port& port, int depth) {
    if (value.has("like")) {
      value.expect_fields({"like"}, {"may_alias", "optional"});
      const HeaderValue like = value["like"];
      if (contract_.find_port(like.string()) == nullptr || depth > 16) {
        like.fail(fmt::format("'{}' is not a port, or ports are like each other in a circle",
                              like.string()));
      }
      Port model;
      read_port(header_["ports"][like.string()], model, depth + 1);
      port.shape = std::move(model.shape);
      port.dtype = std::move(model.dtype);
    } else {
      value.expect_fields({"shape", "dtype"}, {"may_alias", "optional"});
      for (const HeaderValue& item : value["shape"].items()) {
        port.shape.push_back(extent(item));
      }
      const HeaderValue type = value["dtype"];
      port.dtype = type.string();
      if (!contract_.dtypes.contains(port.dtype) && !dtype_from_name(port.dtype)) {
        type.fail(fmt::format("'{}' is neither a dtype nor a symbol of 'dtypes'", port.dtype));
      }
    }
    if (depth == 0 && value.has("may_alias")) {
      const HeaderValue alias = value["may_alias"];
      port.may_alias = alias.string();
      const Port* input = contract_.find_port(port.may_alias);
      if (input == nullptr || input->is_output || !port.is_output) {
        alias.fail(fmt::format("an output may alias an input, '{}' to '{}' is not that", port.name,
                               port.may_alias));
      }
    }
  }

  Extent extent(const HeaderValue& item) {
    if (item.is_integer()) {
      if (item.integer() < 1) {
        item.fail(fmt::format("an extent is at least 1, found {}", item.integer()));
      }
      return {.dim = {}, .value = item.integer()};
    }
    if (const std::string dim = item.string(); is_name(dim)) {
      return {.dim = dim, .value = Expr::scalar("dim." + dim)};
    }
    return {.dim = {}, .value = expression(item, ScalarType::Int)};
  }

  void read_escapes() {
    if (header_.has("escapes")) {
      for (const HeaderValue& item : header_["escapes"].items()) {
        const std::string name = item.string();
        const Port* port = contract_.find_port(name);
        if (port == nullptr || !port->is_output || !read_.contains(name)) {
          item.fail(fmt::format("'{}' is not a port that one step writes and another reads", name));
        }
        contract_.escapes.push_back(name);
      }
    }
  }

  // Every value of the pattern is a port or is made and used inside.
  void check_values() const {
    const HeaderValue pattern = header_["pattern"];
    for (const std::string& name : read_) {
      if (!written_.contains(name) && contract_.find_port(name) == nullptr) {
        pattern.fail(fmt::format("'{}' is read, but it is no port and no step writes it", name));
      }
    }
    for (const std::string& name : written_) {
      const bool is_port = contract_.find_port(name) != nullptr;
      if (!read_.contains(name) && !is_port) {
        pattern.fail(fmt::format("'{}' is written, but it is no port and no step reads it", name));
      }
      const auto& escapes = contract_.escapes;
      if (read_.contains(name) && is_port &&
          std::find(escapes.begin(), escapes.end(), name) == escapes.end()) {
        pattern.fail(
            fmt::format("'{}' is a port that a later step reads: list it in 'escapes'", name));
      }
    }
  }

  void read_params() {
    for (const std::string_view scalar : kDeviceScalars) {
      names_.scalars.emplace(scalar, ScalarType::Int);
    }
    for (const std::string_view scalar : kMaskScalars) {
      names_.scalars.emplace(scalar, ScalarType::Int);
    }
    if (!header_.has("params")) {
      return;
    }
    std::size_t configs = 1;
    for (const auto& [name, value] : header_["params"].members()) {
      value.expect_name(name);
      value.expect_fields({"values", "default"}, {});
      kernel::ConfigParameter parameter{
          .name = name, .values = {}, .default_value = value["default"].integer()};
      const HeaderValue values = value["values"];
      for (const HeaderValue& item : values.items()) {
        if (std::find(parameter.values.begin(), parameter.values.end(), item.integer()) !=
            parameter.values.end()) {
          item.fail(fmt::format("{} stands twice", item.integer()));
        }
        parameter.values.push_back(item.integer());
      }
      configs *= std::max<std::size_t>(parameter.values.size(), 1);
      if (parameter.values.size() > kMaxParameterValues || configs > kMaxConfigs) {
        values.fail(fmt::format("a parameter has at most {} values, and a template {} settings",
                                kMaxParameterValues, kMaxConfigs));
      }
      if (std::find(parameter.values.begin(), parameter.values.end(), parameter.default_value) ==
          parameter.values.end()) {
        value["default"].fail(fmt::format("{} is none of the values", parameter.default_value));
      }
      contract_.params.push_back(std::move(parameter));
    }
  }

  void read_conditions() {
    const auto conditions = [&](const char* field) {
      std::vector<Constraint> list;
      if (header_.has(field)) {
        for (const HeaderValue& item : header_[field].items()) {
          list.push_back({item.string(), expression(item, ScalarType::Bool)});
        }
      }
      return list;
    };
    contract_.constraints = conditions("constraints");  // before the parameters have names
    for (const kernel::ConfigParameter& parameter : contract_.params) {
      names_.scalars.emplace("param." + parameter.name, ScalarType::Int);
    }
    contract_.restrictions = conditions("restrictions");
  }

  void read_weights() {
    if (!header_.has("weights")) {
      return;
    }
    for (const HeaderValue& item : header_["weights"].items()) {
      item.expect_fields({"port", "transform"}, {"with"});
      WeightRequest request;
      request.port = input_port(item["port"]);
      const std::string transform = item["transform"].string();
      const auto* found = std::find_if(kTransforms.begin(), kTransforms.end(),
                                       [&](const auto& entry) { return entry.first == transform; });
      if (found == kTransforms.end()) {
        item["transform"].fail(fmt::format(
            "'{}' is no transform: transpose, concat, interleave, fold_scale, centre, colsum",
            transform));
      }
      request.transform = found->second;
      if (item.has("with")) {
        for (const HeaderValue& port : item["with"].items()) {
          request.with.push_back(input_port(port));
        }
      }
      contract_.weights.push_back(std::move(request));
    }
  }

  std::string input_port(const HeaderValue& value) const {
    const Port* port = contract_.find_port(value.string());
    if (port == nullptr || port->is_output) {
      value.fail(fmt::format("'{}' is not an input port", value.string()));
    }
    return port->name;
  }

  void read_resources() {
    if (header_.has("workspace")) {
      const HeaderValue workspace = header_["workspace"];
      workspace.expect_fields({"bytes"}, {"must_be_zero"});
      contract_.workspace.bytes = amount(workspace["bytes"]);
      contract_.workspace.must_be_zero =
          workspace.has("must_be_zero") && workspace["must_be_zero"].boolean();
    }
    const HeaderValue resources = header_["resources"];
    resources.expect_fields({"threads", "shared_bytes", "registers"}, {});
    contract_.resources = {.threads = amount(resources["threads"]),
                           .shared_bytes = amount(resources["shared_bytes"]),
                           .registers = amount(resources["registers"])};
  }

  std::vector<expr::Formula> extents(const HeaderValue& value) {
    std::vector<expr::Formula> list;
    for (const HeaderValue& item : value.items()) {
      list.emplace_back(expression(item, ScalarType::Int));
    }
    if (list.empty() || list.size() > 3) {
      value.fail(fmt::format("one to three extents, found {}", list.size()));
    }
    return list;
  }

  void read_launch() {
    const HeaderValue launch = header_["launch"];
    launch.expect_fields({"grid", "block", "arguments"}, {"cluster", "pdl"});
    contract_.launch.grid = extents(launch["grid"]);
    contract_.launch.block = extents(launch["block"]);
    if (launch.has("cluster")) {
      contract_.launch.cluster = extents(launch["cluster"]);
    }
    contract_.launch.pdl = launch.has("pdl") && launch["pdl"].boolean();
    std::set<std::string> passed;
    for (const HeaderValue& item : launch["arguments"].items()) {
      const Argument& taken = contract_.launch.arguments.emplace_back(
          item.is_string() ? argument(item) : tensor_map(item));
      if (taken.kind == ArgumentKind::Port || taken.kind == ArgumentKind::TensorMap) {
        passed.insert(taken.name);
      }
    }
    for (const Port& port : contract_.ports) {
      if (!passed.contains(port.name)) {
        launch["arguments"].fail(
            fmt::format("the port '{}' is not passed to the kernel", port.name));
      }
    }
  }

  Argument tensor_map(const HeaderValue& item) {
    item.expect_fields({"tensor_map", "box"}, {});
    const HeaderValue name = item["tensor_map"];
    const Port* port = contract_.find_port(name.string());
    if (port == nullptr || port->is_optional) {
      name.fail(fmt::format("'{}' is not a port that is always there", name.string()));
    }
    Argument map{.kind = ArgumentKind::TensorMap, .name = port->name};
    for (const HeaderValue& extent : item["box"].items()) {
      map.box.emplace_back(expression(extent, ScalarType::Int));
    }
    if (map.box.size() != port->shape.size()) {
      item["box"].fail(fmt::format("the port '{}' has {} axes, the box {}", port->name,
                                   port->shape.size(), map.box.size()));
    }
    return map;
  }

  Argument argument(const HeaderValue& item) {
    constexpr std::string_view kMask = "mask.";
    const std::string text = item.string();
    if (text == "workspace") {
      return {.kind = ArgumentKind::Workspace};
    }
    if (contract_.find_port(text) != nullptr) {
      return {.kind = ArgumentKind::Port, .name = text};
    }
    if (!text.starts_with(kMask) || names_.scalars.contains(text)) {
      return {.value = parse(item),
              .is_wide = text.find("stride.") != std::string::npos ||
                         std::ranges::find(kWideMaskScalars, text) != kWideMaskScalars.end()};
    }
    const std::string name = text.substr(kMask.size());
    if (std::find(kMaskArrays.begin(), kMaskArrays.end(), name) == kMaskArrays.end()) {
      item.fail(kMask.size(),
                fmt::format("a mask has no '{}', it has {}", name, fmt::join(kMaskArrays, ", ")));
    }
    if (std::ranges::none_of(contract_.pattern,
                             [](const PatternStep& step) { return step.op == "attention"; })) {
      item.fail(fmt::format("{} is of the mask of an attention, and the pattern has none", text));
    }
    return {.kind = ArgumentKind::Mask, .name = name};
  }

  void find_scalars_read() {
    const auto add = [&](const Expr& expr) {
      for (const auto& [name, type] : expr::names_used(expr).scalars) {
        contract_.scalars_read.insert(name);
      }
    };
    for (const Argument& argument : contract_.launch.arguments) {
      add(argument.value.expr());
    }
    for (const auto* conditions : {&contract_.constraints, &contract_.restrictions}) {
      for (const Constraint& constraint : *conditions) {
        add(constraint.condition.expr());
      }
    }
  }

  void read_rest() {
    if (header_.has("cost")) {
      const HeaderValue cost = header_["cost"];
      cost.expect_fields({"flops", "bytes"}, {});
      contract_.cost = {.flops = amount(cost["flops"]), .bytes = amount(cost["bytes"])};
    }
    if (header_.has("hooks")) {
      for (const auto& [hook, value] : header_["hooks"].members()) {
        value.expect_name(hook);
        if (!written_.contains(value.string())) {
          value.fail(fmt::format("no step writes '{}'", value.string()));
        }
        contract_.hooks.emplace(hook, value.string());
      }
    }
    if (header_.has("score_modifiers")) {
      contract_.takes_scores = header_["score_modifiers"].boolean();
    }
    if (header_.has("deterministic")) {
      contract_.is_deterministic = header_["deterministic"].boolean();
    }
    if (header_.has("tests")) {
      for (const HeaderValue& item : header_["tests"].items()) {
        std::map<std::string, std::int64_t>& dims = contract_.tests.emplace_back();
        for (const auto& [dim, value] : item.members()) {
          if (!names_.scalars.contains("dim." + dim)) {
            value.fail(fmt::format("no port has a dim '{}'", dim));
          }
          if (value.integer() < 1) {
            value.fail(fmt::format("a dim is at least 1, found {}", value.integer()));
          }
          dims.emplace(dim, value.integer());
        }
        for (const Port& port : contract_.ports) {
          for (const Extent& extent : port.shape) {
            if (!extent.dim.empty() && !dims.contains(extent.dim)) {
              item.fail(
                  fmt::format("the dim '{}' of the port '{}' is missing", extent.dim, port.name));
            }
          }
        }
      }
    }
  }

  Expr parse(const HeaderValue& value) {
    if (value.is_integer()) {
      return value.integer();
    }
    try {
      return parse_expression(value.string(), names_);
    } catch (const ExpressionError& error) {
      value.fail(static_cast<std::size_t>(std::max(error.column() - 1, 0)), error.what());
    }
  }

  Expr expression(const HeaderValue& value, ScalarType type) {
    Expr expression = parse(value);
    if (expression.type() != type) {
      value.fail(fmt::format("expected {}, found {}",
                             type == ScalarType::Bool ? "a condition" : "an integer expression",
                             type_name(expression.type())));
    }
    return expression;
  }

  // Of something, at least nothing of it as far as that is known without a graph.
  Expr amount(const HeaderValue& value) {
    Expr amount = expression(value, ScalarType::Int);
    if (expr::names_used(amount).scalars.empty()) {
      if (const std::int64_t number = expr::evaluate_integer(amount); number < 0) {
        value.fail(fmt::format("is {}, the least is 0", number));
      }
    }
    return amount;
  }

  static const char* type_name(ScalarType type) {
    switch (type) {
      case ScalarType::Bool:
        return "a condition";
      case ScalarType::Int:
        return "an integer";
      default:
        return "a float";
    }
  }

  HeaderValue header_;
  TemplateContract contract_;
  ExprNames names_;
  std::set<std::string> read_;
  std::set<std::string> read_by_required_;
  std::set<std::string> written_;
};

}  // namespace

const Port* TemplateContract::find_port(std::string_view port) const {
  const auto found =
      std::find_if(ports.begin(), ports.end(), [&](const Port& p) { return p.name == port; });
  return found == ports.end() ? nullptr : &*found;
}

bool TemplateContract::takes_mask_array(std::string_view array) const {
  return std::any_of(launch.arguments.begin(), launch.arguments.end(), [&](const Argument& taken) {
    return taken.kind == ArgumentKind::Mask && taken.name == array;
  });
}

bool TemplateContract::is_passed(std::string_view scalar) const {
  return std::any_of(launch.arguments.begin(), launch.arguments.end(), [&](const Argument& passed) {
    return passed.kind == ArgumentKind::Scalar && passed.value.expr().text() == scalar;
  });
}

TemplateContract parse_contract(const std::string& file, std::string_view text) {
  return ContractReader(HeaderValue::read(file, text)).read();
}

bool has_contract(std::string_view text) {
  const HeaderRange range = find_header(text);
  return range.begin != range.end;
}

}  // namespace stof::contract
