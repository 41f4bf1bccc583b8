#include <fmt/format.h>

#include "render/interpreter.hpp"
#include "render/iteration.hpp"
#include "render/operators.hpp"
#include "render/template_objects.hpp"

// Templates among each other: includes, imports, inheritance and their contexts.
namespace stof::render {

LoadedTemplate* Interpreter::find_template(std::string_view name) {
  if (const auto found = templates_.find(name); found != templates_.end()) {
    return &found->second;
  }
  std::shared_ptr<const ParsedTemplate> parsed = loader_(name);
  if (parsed == nullptr) {
    return nullptr;
  }
  LoadedTemplate loaded{.parsed = std::move(parsed), .file = static_cast<int>(files_.size())};
  files_.emplace_back(name);
  return &templates_.emplace(name, std::move(loaded)).first->second;
}

LoadedTemplate& Interpreter::require_template(const Value& name) {
  require_defined(name);
  const std::string& text = text_argument(name, "the name of a template");
  LoadedTemplate* loaded = find_template(text);
  if (loaded == nullptr) {
    throw Failure(fmt::format("no template '{}'", text));
  }
  return *loaded;
}

LoadedTemplate* Interpreter::select_template(const Value& names) {
  if (const Undefined* undefined = names.undefined()) {
    fail_undefined(*undefined);
  }
  if (names.is_text()) {
    return find_template(names.text()->bytes);
  }
  if (!is_truthy(names)) {
    return nullptr;
  }
  const std::shared_ptr<Iterator> iterator = iterate(names);
  for (Value name = iterator->next(runtime_); !name.is_missing(); name = iterator->next(runtime_)) {
    LoadedTemplate* loaded = name.is_text() ? find_template(name.text()->bytes) : nullptr;
    if (loaded != nullptr) {
      return loaded;
    }
  }
  return nullptr;
}

std::shared_ptr<Module> Interpreter::import(LoadedTemplate& loaded, bool has_context,
                                            const std::vector<NamedSlot>& locals,
                                            Activation& activation) {
  if (has_context) {
    return make_module(loaded, all_names(locals, activation));
  }
  if (loaded.default_module == nullptr) {
    auto module = make_module(loaded, globals_);
    loaded.default_module = std::move(module);
  }
  return loaded.default_module;
}

std::shared_ptr<Module> Interpreter::make_module(LoadedTemplate& loaded,
                                                 std::shared_ptr<const Scope> given) {
  Context& context = make_context(loaded, std::move(given));
  OutputBuffer out(runtime_.budget);
  run_root(loaded, context, out);
  std::map<std::string, Value> exports;
  for (const std::string& name : context.exported) {
    exports.emplace(name, context.set_names.at(name));
  }
  return std::make_shared<Module>(loaded.parsed->source.file(), std::move(exports), out.take());
}

Context& Interpreter::make_context(LoadedTemplate& owner, std::shared_ptr<const Scope> given) {
  runtime_.budget.allocate(sizeof(Context));
  Context& context = contexts_.emplace_back();
  context.owner = &owner;
  context.given = std::move(given);
  for (const auto& [name, block] : owner.parsed->blocks) {
    context.blocks[name].push_back({.owner = &owner, .block = block.get()});
  }
  return context;
}

Context& Interpreter::derive_context(const std::vector<NamedSlot>& locals, Activation& activation) {
  const Context& current = *activation.context;
  Context& derived = make_context(*current.owner, all_names(locals, activation));
  derived.blocks = current.blocks;
  return derived;
}

std::shared_ptr<const Scope> Interpreter::all_names(const std::vector<NamedSlot>& locals,
                                                    Activation& activation) {
  const Context& context = *activation.context;
  const bool has_more = !locals.empty() || !context.set_names.empty();
  if (!has_more) {
    return context.given;
  }
  runtime_.budget.step(context.given->size());
  runtime_.budget.allocate((context.given->size() + locals.size()) * 2 * sizeof(Value));
  auto names = std::make_shared<Scope>(*context.given);
  for (const auto& [name, value] : context.set_names) {
    names->insert_or_assign(name, value);
  }
  for (const auto& [name, reference] : locals) {
    if (const Value& value = slot(reference, activation); !value.is_missing()) {
      names->insert_or_assign(name, value);
    }
  }
  return names;
}

void Interpreter::run_root(LoadedTemplate& loaded, Context& context, OutputBuffer& out) {
  const Level level(*this);
  const ParsedTemplate& parsed = *loaded.parsed;
  ActivationOwner activation(*this, parsed.function, nullptr, context, loaded);
  if (parsed.self) {
    slot(*parsed.self, *activation) =
        Value(std::shared_ptr<Object>(std::make_shared<SelfObject>(*this, context)));
  }
  enter(parsed.frame, *activation);
  execute(parsed.body, *activation, out);
  if (LoadedTemplate* parent = (*activation).parent_template) {
    run_root(*parent, context, out);
  }
}

void Interpreter::run_block(const BlockPlace& place, Context& context, OutputBuffer& out) {
  const Level level(*this);
  const Block& block = *place.block;
  ActivationOwner activation(*this, block.function, nullptr, context, *place.owner);
  if (block.self) {
    slot(*block.self, *activation) =
        Value(std::shared_ptr<Object>(std::make_shared<SelfObject>(*this, context)));
  }
  if (block.super) {
    const std::vector<BlockPlace>& places = context.blocks[block.name];
    std::size_t depth = 0;
    while (depth < places.size() && places[depth].block != &block) {
      ++depth;
    }
    slot(*block.super, *activation) =
        depth + 1 < places.size()
            ? Value(std::shared_ptr<Object>(
                  std::make_shared<BlockObject>(*this, block.name, context, depth + 1)))
            : make_undefined(fmt::format("there is no parent block called '{}'.", block.name));
  }
  enter(block.frame, *activation);
  execute(block.body, *activation, out);
}

Value Interpreter::render_block(const BlockPlace& place, Context& context) {
  OutputBuffer out(runtime_.budget);
  run_block(place, context, out);
  return Value(out.take());
}

Text Interpreter::render(std::string_view name, const Dict& variables) {
  LoadedTemplate* loaded = nullptr;
  try {
    loaded = find_template(name);
    if (loaded == nullptr) {
      throw Failure("no such template");
    }
    auto given = std::make_shared<Scope>(*globals_);
    for (const auto& [key, value] : variables.entries()) {
      given->insert_or_assign(text_argument(key, "the name of a variable"), value);
    }
    OutputBuffer out(runtime_.budget);
    run_root(*loaded, make_context(*loaded, std::move(given)), out);
    return out.take();
  } catch (const Failure& failure) {
    // Before the first line ran, or around the whole.
    throw TemplateError(std::string(name), 1, 1, failure.what());
  }
}

}  // namespace stof::render
