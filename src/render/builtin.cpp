#include "render/builtin.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "render/operators.hpp"

namespace stof::render {

namespace {

struct Parameter {
  std::string_view name;
  bool is_required = true;
  bool is_positional_only = false;
};

struct Signature {
  std::vector<Parameter> parameters;
  bool takes_positional = false;  // beyond the parameters
  bool takes_named = false;
};

Signature parse_signature(std::string_view text) {
  Signature signature;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (word == "*" || word == "**") {
      signature.takes_positional = word == "*";
      signature.takes_named = true;
    } else if (word == "/") {
      std::ranges::for_each(signature.parameters,
                            [](Parameter& parameter) { parameter.is_positional_only = true; });
    } else {
      const bool is_required = !word.ends_with('?');
      word.remove_suffix(is_required ? 0 : 1);
      signature.parameters.push_back({.name = word, .is_required = is_required});
    }
  }
  return signature;
}

void bind_named(BuiltinCall& call, const Builtin& builtin, const Signature& signature,
                std::pair<std::string, Value> argument) {
  const auto found = std::ranges::find_if(signature.parameters, [&](const Parameter& parameter) {
    return !parameter.is_positional_only && parameter.name == argument.first;
  });
  if (found == signature.parameters.end()) {
    if (!signature.takes_named) {
      throw Failure(fmt::format("{}() has no argument named '{}'", builtin.name, argument.first));
    }
    call.rest.named.push_back(std::move(argument));
    return;
  }
  Value& place = call.args[static_cast<std::size_t>(found - signature.parameters.begin())];
  if (!place.is_missing()) {
    throw Failure(fmt::format("{}() got two values for '{}'", builtin.name, argument.first));
  }
  place = std::move(argument.second);
}

class BuiltinFunction final : public Object {
 public:
  explicit BuiltinFunction(const Builtin& builtin) : builtin_(builtin) {}

  std::string_view type_name() const override { return "function"; }
  bool is_callable() const override { return true; }
  Value call(Runtime& runtime, Arguments arguments) override {
    return render::call(runtime, builtin_, std::move(arguments));
  }

 private:
  const Builtin& builtin_;
};

}  // namespace

BuiltinCall bind(Runtime& runtime, const Builtin& builtin, Arguments arguments) {
  const Signature signature = parse_signature(builtin.parameters);
  const std::size_t count = signature.parameters.size();
  BuiltinCall call{.runtime = runtime, .args = std::move(arguments.positional), .rest = {}};
  if (call.args.size() > count) {
    if (!signature.takes_positional) {
      throw Failure(fmt::format("{}() takes at most {} arguments, got {}", builtin.name, count,
                                call.args.size()));
    }
    const auto extra = call.args.begin() + static_cast<std::ptrdiff_t>(count);
    call.rest.positional.assign(std::move_iterator(extra), std::move_iterator(call.args.end()));
  }
  call.args.resize(count);
  for (auto& argument : arguments.named) {
    bind_named(call, builtin, signature, std::move(argument));
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (signature.parameters[i].is_required && call.args[i].is_missing()) {
      throw Failure(
          fmt::format("{}() lacks its argument '{}'", builtin.name, signature.parameters[i].name));
    }
  }
  return call;
}

Value call(Runtime& runtime, const Builtin& builtin, Arguments arguments) {
  BuiltinCall bound = bind(runtime, builtin, std::move(arguments));
  for (const Value& argument : bound.args) {
    runtime.budget.step(scan_steps(argument));
  }
  return builtin.function(bound);
}

const Builtin* find_builtin(std::span<const Builtin> table, std::string_view name) {
  const auto found = std::ranges::find(table, name, &Builtin::name);
  return found == table.end() ? nullptr : &*found;
}

const Builtin* find_filter(std::string_view name) {
  for (const auto table : {text_filters(), number_filters(), sequence_filters(),
                           selection_filters(), ordering_filters()}) {
    if (const Builtin* filter = find_builtin(table, name)) {
      return filter;
    }
  }
  return nullptr;
}

const Builtin* find_test(std::string_view name) {
  return find_builtin(tests(), name);
}

Value make_function(const Builtin& builtin) {
  return Value(std::shared_ptr<Object>(std::make_shared<BuiltinFunction>(builtin)));
}

std::int64_t integer_argument(const Value& value, std::string_view name) {
  const auto integer = as_integer(value);
  if (!integer) {
    require_defined(value);
    throw Failure(fmt::format("{} must be an integer, not '{}'", name, type_name(value)));
  }
  return *integer;
}

std::int64_t integer_argument(const Value& value, std::string_view name, std::int64_t otherwise) {
  return value.is_missing() ? otherwise : integer_argument(value, name);
}

bool truth_argument(const Value& value, bool otherwise) {
  return value.is_missing() ? otherwise : is_truthy(value);
}

const std::string& text_argument(const Value& value, std::string_view name) {
  if (!value.is_text()) {
    require_defined(value);
    throw Failure(fmt::format("{} must be a string, not '{}'", name, type_name(value)));
  }
  return value.text()->bytes;
}

}  // namespace stof::render
