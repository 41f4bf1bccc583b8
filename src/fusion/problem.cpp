#include "fusion/problem.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "graph/op_info.hpp"
#include "mask/signature.hpp"

namespace stof::fusion {

namespace {

using nlohmann::json;

json value_json(DType dtype, const std::vector<std::int64_t>& extents) {
  return {{"dtype", name(dtype)}, {"shape", extents}};
}

json view_json(const View& view) {
  json value = value_json(view.dtype, view.extents);
  value["strides"] = json::array();
  for (std::size_t axis = 0; axis < view.extents.size(); ++axis) {
    value["strides"].push_back(view.extents[axis] == 1 ? 0 : view.strides[axis]);
  }
  value["alignment"] = view.alignment_bytes();
  return value;
}

// Masks and scores are told apart from the other attributes.
std::optional<json> attribute_json(const graph::Attribute& attribute) {
  return std::visit(
      [](const auto& value) -> std::optional<json> {
        using Type = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<Type, DType>) {
          return name(value);
        } else if constexpr (std::is_same_v<Type, Dim>) {
          return value.value();
        } else if constexpr (std::is_same_v<Type, Shape>) {
          return value.sizes();
        } else if constexpr (std::is_same_v<Type, Mask> || std::is_same_v<Type, Expr>) {
          return std::nullopt;
        } else {
          return value;
        }
      },
      attribute);
}

json mask_json(const graph::Operator& attention, const AttentionMask& mask) {
  const auto* given = graph::find_attribute<Mask>(attention, "mask");
  return {
      {"signature", mask::signature_of(given == nullptr ? Mask() : *given, mask.features()).text()},
      {"modifier", mask.modifier.variables()},
      {"arrives_at_run_time", mask.run_time.has_value()},
  };
}

class Problem {
 public:
  Problem(std::span<const int> operators, const graph::Ir& ir, const Readers& readers,
          const Placement& placement)
      : of_(operators), ir_(ir), readers_(readers), placement_(placement) {
    for (const int index : operators) {
      const graph::Operator& op = ir.operators[static_cast<std::size_t>(index)];
      made_.insert(made_.end(), op.outputs.begin(), op.outputs.end());
    }
  }

  void add(const graph::Operator& op) {
    json entry = {{"op", graph::name(op.kind)},
                  {"attributes", json::object()},
                  {"inputs", json::array()},
                  {"outputs", json::array()}};
    for (const auto& [name, attribute] : op.attributes) {
      if (auto value = attribute_json(attribute)) {
        entry["attributes"][name] = *std::move(value);
      }
    }
    for (const int value : op.inputs) {
      entry["inputs"].push_back(value < 0 ? -1 : number(value));
    }
    for (const auto& [name, value] : op.captures) {
      entry["captures"].push_back(number(value));
    }
    for (const int value : op.outputs) {
      entry["outputs"].push_back(number(value));
    }
    operators_.push_back(std::move(entry));
  }

  json take() && {
    return {{"operators", std::move(operators_)},
            {"values", std::move(values_)},
            {"results", std::move(results_)}};
  }

 private:
  int number(int value) {
    const auto [known, is_new] = numbers_.emplace(value, static_cast<int>(numbers_.size()));
    if (!is_new) {
      return known->second;
    }
    const bool is_made = std::find(made_.begin(), made_.end(), value) != made_.end();
    if (!is_made) {
      values_.push_back(view_json(placement_.view(value).value()));
    } else if (is_read_outside(value)) {
      values_.push_back(view_json(placement_.root(value)));
      results_.push_back(known->second);
    } else {
      values_.push_back(value_json(graph::value_at(ir_, value).dtype, placement_.extents(value)));
    }
    return known->second;
  }

  bool is_read_outside(int value) const {
    const std::vector<int>& readers = readers_.of(value);
    return std::any_of(readers.begin(), readers.end(), [&](int reader) {
      return std::find(of_.begin(), of_.end(), reader) == of_.end();
    });
  }

  std::span<const int> of_;
  const graph::Ir& ir_;
  const Readers& readers_;
  const Placement& placement_;
  std::vector<int> made_;
  std::map<int, int> numbers_;
  json operators_ = json::array();
  json values_ = json::array();
  json results_ = json::array();
};

void add_device(json& problem, const base::DeviceProfile& device) {
  problem["device"] = device.name;
  problem["target"] = device.target;
}

}  // namespace

json group_problem(std::span<const int> operators, const graph::Ir& ir, const Readers& readers,
                   const Placement& placement, const AttentionMask* mask,
                   const base::DeviceProfile& device) {
  Problem problem(operators, ir, readers, placement);
  for (const int op : operators) {
    problem.add(ir.operators[static_cast<std::size_t>(op)]);
  }
  json all = std::move(problem).take();
  if (mask != nullptr) {
    all["mask"] = mask_json(ir.operators[static_cast<std::size_t>(operators.front())], *mask);
  }
  add_device(all, device);
  return all;
}

json copy_problem(const View& from, const View& to, const base::DeviceProfile& device) {
  json problem = {
      {"operators",
       {{{"op", "copy"}, {"attributes", json::object()}, {"inputs", {0}}, {"outputs", {1}}}}},
      {"values", {view_json(from), view_json(to)}},
      {"results", {1}}};
  add_device(problem, device);
  return problem;
}

}  // namespace stof::fusion
