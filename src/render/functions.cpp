#include <algorithm>

#include <fmt/format.h>

#include "render/interpreter.hpp"
#include "render/iteration.hpp"
#include "render/loop.hpp"
#include "render/mapping.hpp"
#include "render/operators.hpp"
#include "render/template_objects.hpp"

// Loops and macros: what runs in scopes and functions of its own.
namespace stof::render {

// The items of a loop that its condition lets through, each tested when it is asked for.
class FilteredItems final : public Iterator {
 public:
  FilteredItems(Interpreter& interpreter, const For& loop, const Value& iterable, Activation& outer)
      : FilteredItems(interpreter, loop, iterate(iterable), outer) {}

  Value next(Runtime& runtime) override {
    for (Value item = items_->next(runtime); !item.is_missing(); item = items_->next(runtime)) {
      interpreter_.enter(loop_.filter_frame, *activation_);
      interpreter_.assign(*loop_.filter_target, item, *activation_);
      const Value keeps = interpreter_.evaluate(*loop_.filter, *activation_);
      if (render::is_truthy(keeps)) {
        return Interpreter::repack(*loop_.filter_target, *activation_);
      }
    }
    return {};
  }

 private:
  FilteredItems(Interpreter& interpreter, const For& loop, std::shared_ptr<Iterator> items,
                Activation& outer)
      : Iterator(items->depth() + 1),
        interpreter_(interpreter),
        loop_(loop),
        items_(std::move(items)),
        activation_(interpreter, loop.filter_function, &outer, *outer.context, *outer.owner) {}

  Interpreter& interpreter_;
  const For& loop_;
  std::shared_ptr<Iterator> items_;
  Interpreter::ActivationOwner activation_;
};

Value Interpreter::filtered(const For& loop, const Value& iterable, Activation& outer) {
  if (!loop.filter) {
    return iterable;
  }
  capture(outer);
  return Value(
      std::shared_ptr<Object>(std::make_shared<FilteredItems>(*this, loop, iterable, outer)));
}

Value Interpreter::render_recursion(const For& loop, const Value& iterable, Activation& outer,
                                    std::int64_t depth) {
  const Level level(*this);
  ActivationOwner activation(*this, loop.recursion, &outer, *outer.context, *outer.owner);
  OutputBuffer out(runtime_.budget);
  run_loop(loop, iterable, *activation, out, depth);
  return Value(out.take());
}

void Interpreter::run_loop(const For& loop, const Value& iterable, Activation& activation,
                           OutputBuffer& out, std::int64_t depth) {
  // The condition is a function of the scope around the loop, in a recursive loop too.
  Activation& outer = loop.is_recursive ? *activation.outer : activation;
  const Value items = filtered(loop, iterable, outer);
  std::shared_ptr<Loop> variable;
  std::shared_ptr<Iterator> iterator;
  if (loop.has_loop_variable) {
    Loop::Recursion recursion;
    if (loop.is_recursive) {
      capture(outer);
      recursion = [this, &loop, &outer](const Value& inner, std::int64_t inner_depth) {
        return render_recursion(loop, inner, outer, inner_depth);
      };
    }
    variable = std::make_shared<Loop>(items, std::move(recursion), depth);
    runtime_.budget.allocate(sizeof(Loop));
    runtime_.track(variable);
  } else {
    iterator = iterate(items);
  }
  bool has_run = false;
  const auto next = [&] {
    return variable ? variable->advance(runtime_) : iterator->next(runtime_);
  };
  for (Value item = next(); !item.is_missing(); item = next()) {
    assign(loop.target, item, activation);
    if (variable != nullptr) {
      slot(loop.loop_slot, activation) = Value(std::shared_ptr<Object>(variable));
    }
    enter(loop.frame, activation);
    execute(loop.body, activation, out);
    has_run = true;
  }
  leave(loop.frame, activation);
  if (!has_run) {
    enter(loop.otherwise_frame, activation);
    execute(loop.otherwise, activation, out);
    leave(loop.otherwise_frame, activation);
  }
}

Value Interpreter::make_macro(std::shared_ptr<const Macro> macro, Activation& activation) {
  capture(activation);
  runtime_.budget.allocate(sizeof(MacroObject));
  return Value(
      std::shared_ptr<Object>(std::make_shared<MacroObject>(*this, std::move(macro), activation)));
}

Value Interpreter::call_macro(const Macro& macro, Activation& closure, Arguments arguments) {
  const Level level(*this);
  ActivationOwner activation(*this, macro.function, &closure, *closure.context, *closure.owner);
  bind_macro(macro, std::move(arguments), *activation);
  enter(macro.frame, *activation);
  for (const MacroParameter& parameter : macro.parameters) {
    Value& place = slot(parameter.slot, *activation);
    if (place.is_missing()) {
      place = parameter.otherwise
                  ? evaluate(*parameter.otherwise, *activation)
                  : make_undefined(fmt::format("parameter '{}' was not provided", parameter.name));
    }
  }
  OutputBuffer out(runtime_.budget);
  execute(macro.body, *activation, out);
  return Value(out.take());
}

namespace {

std::string macro_name(const Macro& macro) {
  return macro.name ? fmt::format("macro '{}'", *macro.name) : "the call block";
}

// Takes a named argument out of those given.
Value take_named(Arguments& arguments, std::string_view name) {
  const auto found = std::ranges::find_if(
      arguments.named, [name](const auto& named) { return named.first == name; });
  if (found == arguments.named.end()) {
    return {};
  }
  Value value = std::move(found->second);
  arguments.named.erase(found);
  return value;
}

}  // namespace

void Interpreter::bind_macro(const Macro& macro, Arguments arguments, Activation& activation) {
  const std::size_t count = macro.parameters.size();
  const std::size_t positional = std::min(arguments.positional.size(), count);
  bool is_caller_taken = false;
  for (std::size_t i = 0; i < count; ++i) {
    const MacroParameter& parameter = macro.parameters[i];
    slot(parameter.slot, activation) =
        i < positional ? arguments.positional[i] : take_named(arguments, parameter.name);
    is_caller_taken = is_caller_taken || parameter.name == "caller";
  }
  if (macro.caller && !is_caller_taken) {
    Value caller = take_named(arguments, "caller");
    slot(*macro.caller, activation) =
        caller.is_missing() || caller.is_none() ? make_undefined("No caller defined") : caller;
  }
  if (macro.named_rest) {
    slot(*macro.named_rest, activation) = Value(make_dict(runtime_, Value(), arguments.named));
  } else if (!arguments.named.empty()) {
    const std::string& name = arguments.named.front().first;
    throw Failure(fmt::format("{} takes no argument named '{}'", macro_name(macro), name));
  }
  if (macro.positional_rest) {
    const auto first = arguments.positional.begin() + static_cast<std::ptrdiff_t>(positional);
    slot(*macro.positional_rest, activation) =
        make_tuple(std::vector<Value>(first, arguments.positional.end()));
  } else if (arguments.positional.size() > count) {
    throw Failure(fmt::format("{} takes at most {} arguments, got {}", macro_name(macro), count,
                              arguments.positional.size()));
  }
}

}  // namespace stof::render
