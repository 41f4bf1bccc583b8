#include "render/interpreter.hpp"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "render/builtin.hpp"
#include "render/iteration.hpp"
#include "render/mapping.hpp"
#include "render/operators.hpp"
#include "render/template_objects.hpp"

namespace stof::render {

namespace {

std::shared_ptr<const Scope> make_globals() {
  Dict globals;
  add_globals(globals);
  auto scope = std::make_shared<Scope>();
  for (const auto& [name, value] : globals.entries()) {
    scope->emplace(name.text()->bytes, value);
  }
  return scope;
}

}  // namespace

Interpreter::Interpreter(TemplateLoader loader, const RenderLimits& limits)
    : loader_(std::move(loader)), runtime_(limits), globals_(make_globals()) {}

// Closures and the variables that they are kept in refer to each other: all variables go first.
Interpreter::~Interpreter() {
  runtime_.clear();
  Remains remains;
  for (const auto& activation : captured_) {
    std::ranges::move(activation->slots, std::back_inserter(remains));
  }
  for (Context& context : contexts_) {
    for (auto& [name, value] : context.set_names) {
      remains.push_back(std::move(value));
    }
  }
  dismantle(std::move(remains));
}

Interpreter::Level::Level(Interpreter& interpreter) : interpreter_(interpreter) {
  interpreter_.runtime_.budget.step();
  if (interpreter_.depth_ >= interpreter_.runtime_.budget.limits().depth) {
    throw Failure(
        fmt::format("nested deeper than {} levels (a macro or template that calls itself?)",
                    interpreter_.runtime_.budget.limits().depth));
  }
  ++interpreter_.depth_;
}

Interpreter::ActivationOwner::ActivationOwner(Interpreter& interpreter, const Function& function,
                                              Activation* outer, Context& context,
                                              LoadedTemplate& owner)
    : interpreter_(interpreter), activation_(std::make_unique<Activation>()) {
  const auto slots = static_cast<std::size_t>(function.slot_count);
  interpreter.runtime_.budget.allocate(sizeof(Activation) + slots * sizeof(Value));
  activation_->outer = outer;
  activation_->context = &context;
  activation_->owner = &owner;
  activation_->slots.resize(slots);
}

Interpreter::ActivationOwner::~ActivationOwner() {
  if (activation_->is_captured) {
    interpreter_.captured_.push_back(std::move(activation_));
  }
}

void Interpreter::capture(Activation& activation) {
  for (Activation* scope = &activation; scope != nullptr; scope = scope->outer) {
    scope->is_captured = true;
  }
}

Value& Interpreter::slot(SlotReference reference, Activation& activation) {
  Activation* scope = &activation;
  for (int hops = reference.hops; hops > 0; --hops) {
    scope = scope->outer;
  }
  return scope->slots[static_cast<std::size_t>(reference.slot)];
}

void Interpreter::enter(const FrameSlots& frame, Activation& activation) {
  for (const SlotSetup& setup : frame.setups) {
    Value& place = activation.slots[static_cast<std::size_t>(setup.slot)];
    switch (setup.from) {
      case SlotSetup::From::Argument:
        break;
      case SlotSetup::From::Nothing:
        place = Value();
        break;
      case SlotSetup::From::Outer:
        place = slot(setup.outer, activation);
        break;
      case SlotSetup::From::Context: {
        const Context& context = *activation.context;
        const auto set = context.set_names.find(setup.name);
        const auto given = context.given->find(setup.name);
        place = set != context.set_names.end()  ? set->second
                : given != context.given->end() ? given->second
                                                : Value();
        break;
      }
    }
  }
}

void Interpreter::leave(const FrameSlots& frame, Activation& activation) {
  for (const SlotSetup& setup : frame.setups) {
    activation.slots[static_cast<std::size_t>(setup.slot)] = Value();
  }
}

void Interpreter::assign(const Target& target, const Value& value, Activation& activation) {
  if (const auto* name = std::get_if<NameTarget>(&target.node)) {
    slot(name->slot, activation) = value;
    return;
  }
  if (const auto* attribute = std::get_if<AttributeTarget>(&target.node)) {
    auto* space = slot(attribute->slot, activation).object_as<Namespace>();
    if (space == nullptr) {
      throw Failure(fmt::format("'{}' is no namespace: only those have attributes that can be set",
                                attribute->name));
    }
    space->set(runtime_, attribute->attribute, value);
    return;
  }
  const auto& targets = std::get<TupleTarget>(target.node).items;
  std::vector<Value> items;
  const std::shared_ptr<Iterator> iterator = iterate(value);
  for (Value item = iterator->next(runtime_); !item.is_missing(); item = iterator->next(runtime_)) {
    if (items.size() == targets.size()) {
      throw Failure(fmt::format("too many values to unpack (expected {})", targets.size()));
    }
    items.push_back(std::move(item));
  }
  if (items.size() < targets.size()) {
    throw Failure(fmt::format("not enough values to unpack (expected {}, got {})", targets.size(),
                              items.size()));
  }
  for (std::size_t i = 0; i < targets.size(); ++i) {
    assign(targets[i], items[i], activation);
  }
}

Value Interpreter::repack(const Target& target, Activation& activation) {
  if (const auto* name = std::get_if<NameTarget>(&target.node)) {
    return slot(name->slot, activation);
  }
  std::vector<Value> items;
  for (const Target& item : std::get<TupleTarget>(target.node).items) {
    items.push_back(repack(item, activation));
  }
  return make_tuple(std::move(items));
}

void Interpreter::export_names(const std::vector<NamedSlot>& names, Activation& activation) {
  for (const auto& [name, reference] : names) {
    activation.context->set_names[name] = slot(reference, activation);
    if (!name.starts_with('_')) {
      activation.context->exported.insert(name);
    }
  }
}

}  // namespace stof::render
