#include "render/template_objects.hpp"

#include <fmt/format.h>

#include "render/formatting.hpp"

namespace stof::render {

std::string MacroObject::repr() const {
  return macro_->name ? fmt::format("<Macro {}>", quote(*macro_->name)) : "<Macro anonymous>";
}

Value MacroObject::attribute(Runtime&, std::string_view name) {
  if (name == "name") {
    return macro_->name ? Value(*macro_->name) : Value(None{});
  }
  if (name == "arguments") {
    std::vector<Value> names;
    for (const MacroParameter& parameter : macro_->parameters) {
      names.emplace_back(parameter.name);
    }
    return make_tuple(std::move(names));
  }
  if (name == "catch_kwargs") {
    return Value(macro_->named_rest.has_value());
  }
  if (name == "catch_varargs") {
    return Value(macro_->positional_rest.has_value());
  }
  return name == "caller" ? Value(macro_->caller.has_value()) : Value();
}

Value Module::exported(std::string_view name) const {
  const auto found = exports_.find(std::string(name));
  return found == exports_.end() ? Value() : found->second;
}

std::string Module::repr() const {
  return fmt::format("<TemplateModule {}>", quote(name_));
}

void Module::release(Remains& remains) {
  for (auto& [name, value] : exports_) {
    remains.push_back(std::move(value));
  }
  exports_.clear();
}

Value BlockObject::call(Runtime&, Arguments arguments) {
  if (!arguments.positional.empty() || !arguments.named.empty()) {
    throw Failure(fmt::format("the block '{}' takes no arguments", name_));
  }
  return interpreter_.render_block(context_.blocks.at(name_)[depth_], context_);
}

Value BlockObject::attribute(Runtime&, std::string_view name) {
  if (name == "name") {
    return Value(name_);
  }
  if (name != "super") {
    return {};
  }
  if (depth_ + 1 >= context_.blocks.at(name_).size()) {
    return make_undefined(fmt::format("there is no parent block called '{}'.", name_));
  }
  return Value(std::shared_ptr<Object>(
      std::make_shared<BlockObject>(interpreter_, name_, context_, depth_ + 1)));
}

std::string SelfObject::repr() const {
  return fmt::format("<TemplateReference {}>", quote(context_.owner->parsed->source.file()));
}

Value SelfObject::item(Runtime&, const Value& key) {
  if (!key.is_text() || !context_.blocks.contains(key.text()->bytes)) {
    return {};
  }
  return Value(std::shared_ptr<Object>(
      std::make_shared<BlockObject>(interpreter_, key.text()->bytes, context_, 0)));
}

}  // namespace stof::render
