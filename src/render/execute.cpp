#include <algorithm>

#include <fmt/format.h>

#include "render/formatting.hpp"
#include "render/interpreter.hpp"
#include "render/iteration.hpp"
#include "render/mapping.hpp"
#include "render/operators.hpp"
#include "render/template_objects.hpp"

// Statements.
namespace stof::render {

class StatementRunner {
 public:
  StatementRunner(Interpreter& interpreter, const Statement& statement, Activation& activation,
                  OutputBuffer& out)
      : interpreter_(interpreter), statement_(statement), activation_(activation), out_(out) {}

  void operator()(const Output& output) const {
    if (!prints(output.check)) {
      return;
    }
    for (const OutputItem& item : output.items) {
      const LineOrigin origin{.file = activation_.owner->file, .line = item.line};
      if (const auto* text = std::get_if<std::string>(&item.content)) {
        out_.append_source(*text, origin);
      } else {
        print(std::get<Expression>(item.content), origin);
      }
    }
  }

  void operator()(const If& statement) const {
    for (const If::Branch& branch : statement.branches) {
      if (is_true(branch.test)) {
        return interpreter_.execute(branch.body, activation_, out_);
      }
    }
    interpreter_.execute(statement.otherwise, activation_, out_);
  }

  void operator()(const For& loop) const {
    const Value iterable = evaluate(loop.iterable);
    if (loop.is_recursive) {
      append(interpreter_.render_recursion(loop, iterable, activation_, 0));
    } else {
      interpreter_.run_loop(loop, iterable, activation_, out_, 0);
    }
  }

  void operator()(const MacroDefinition& definition) const {
    Value macro = interpreter_.make_macro(definition.macro, activation_);
    if (definition.is_exported) {
      set_name(*definition.macro->name, macro, true);
    }
    Interpreter::slot(definition.slot, activation_) = std::move(macro);
  }

  void operator()(const CallBlock& block) const {
    const auto& call = std::get<Call>(block.call.node);
    const Value caller = interpreter_.make_macro(block.caller, activation_);
    const Value callee = evaluate(*call.callee);
    Arguments arguments = interpreter_.evaluate_arguments(call.arguments, activation_);
    arguments.named.emplace_back("caller", caller);
    append(interpreter_.call(callee, std::move(arguments)));
  }

  void operator()(const FilterBlock& block) const {
    interpreter_.enter(block.frame, activation_);
    append(filtered(captured(block.body), block.filter));
    Interpreter::leave(block.frame, activation_);
  }

  void operator()(const With& with) const {
    interpreter_.enter(with.frame, activation_);
    for (const auto& [target, value] : with.assignments) {
      interpreter_.assign(target, evaluate(value), activation_);
    }
    interpreter_.execute(with.body, activation_, out_);
    Interpreter::leave(with.frame, activation_);
  }

  void operator()(const Assign& assign) const {
    interpreter_.assign(assign.target, evaluate(assign.value), activation_);
    interpreter_.export_names(assign.exports, activation_);
  }

  void operator()(const AssignBlock& assign) const {
    interpreter_.enter(assign.frame, activation_);
    Value value = captured(assign.body);
    if (assign.filter) {
      value = filtered(std::move(value), *assign.filter);
    }
    interpreter_.assign(assign.target, value, activation_);
    interpreter_.export_names(assign.exports, activation_);
    Interpreter::leave(assign.frame, activation_);
  }

  void operator()(const BlockReference& reference) const {
    if (!prints(reference.check)) {
      return;
    }
    const Block& block = *reference.block;
    Context& context = block.is_scoped ? interpreter_.derive_context(reference.locals, activation_)
                                       : *activation_.context;
    const auto found = context.blocks.find(block.name);
    if (found == context.blocks.end()) {
      throw Failure(fmt::format("there is no block '{}' here", block.name));
    }
    if (block.is_required && found->second.size() <= 1) {
      throw Failure(fmt::format("required block '{}' not found", block.name));
    }
    interpreter_.run_block(found->second.front(), context, out_);
  }

  void operator()(const Extends& extends) const {
    if (extends.repeated == Extends::Repeated::Yes ||
        (extends.repeated == Extends::Repeated::IfExtended && root().parent_template != nullptr)) {
      throw Failure("extended multiple times");
    }
    LoadedTemplate& parent = interpreter_.require_template(evaluate(extends.parent));
    for (const auto& [name, block] : parent.parsed->blocks) {
      activation_.context->blocks[name].push_back({.owner = &parent, .block = block.get()});
    }
    root().parent_template = &parent;
  }

  void operator()(const Include& include) const {
    const Value name = evaluate(include.name);
    LoadedTemplate* loaded = interpreter_.select_template(name);
    if (loaded == nullptr) {
      if (include.ignores_missing) {
        return;
      }
      throw Failure(fmt::format("no template {}", describe_names(name)));
    }
    if (!include.has_context) {
      const auto module = interpreter_.import(*loaded, false, {}, activation_);
      return append(module->body());
    }
    Context& context =
        interpreter_.make_context(*loaded, interpreter_.all_names(include.locals, activation_));
    interpreter_.run_root(*loaded, context, out_);
  }

  void operator()(const Import& import) const {
    LoadedTemplate& loaded = interpreter_.require_template(evaluate(import.name));
    const Value module(std::shared_ptr<Object>(
        interpreter_.import(loaded, import.has_context, import.locals, activation_)));
    Interpreter::slot(import.slot, activation_) = module;
    if (import.is_toplevel) {
      set_name(import.target, module, false);
    }
  }

  void operator()(const FromImport& import) const {
    LoadedTemplate& loaded = interpreter_.require_template(evaluate(import.name));
    const auto module = interpreter_.import(loaded, import.has_context, import.locals, activation_);
    for (const ImportedName& name : import.names) {
      Value value = module->exported(name.name);
      if (value.is_missing()) {
        value = make_undefined(fmt::format("the template '{}' does not export the name '{}'",
                                           loaded.parsed->source.file(), name.name));
      }
      if (import.is_toplevel) {
        set_name(name.alias, value, false);
      }
      Interpreter::slot(name.slot, activation_) = std::move(value);
    }
  }

 private:
  Value evaluate(const Expression& expression) const {
    return interpreter_.evaluate(expression, activation_);
  }

  bool is_true(const Expression& expression) const {
    const Value value = evaluate(expression);
    try {
      return is_truthy(value);
    } catch (const Failure& failure) {
      throw error(expression.offset, failure);
    }
  }

  void print(const Expression& expression, LineOrigin origin) const {
    const Value value = evaluate(expression);
    try {
      out_.append_value(*to_text(value).text(), origin);
    } catch (const Failure& failure) {
      throw error(expression.offset, failure);
    }
  }

  TemplateError error(std::size_t offset, const Failure& failure) const {
    return activation_.owner->parsed->source.error(offset, failure.what());
  }

  // Appends what a tag made; like jinja2, only text.
  void append(const Value& value) const {
    if (!value.is_text()) {
      throw Failure(fmt::format("the result of the tag must be text, not '{}'", type_name(value)));
    }
    const Source& source = activation_.owner->parsed->source;
    out_.append_value(*value.text(),
                      {.file = activation_.owner->file, .line = source.line(statement_.offset)});
  }

  Value captured(const Body& body) const {
    OutputBuffer buffer(interpreter_.runtime_.budget);
    interpreter_.execute(body, activation_, buffer);
    return Value(buffer.take());
  }

  Value filtered(Value value, const Expression& filter) const {
    interpreter_.block_inputs_.push_back(std::move(value));
    Value result = evaluate(filter);
    interpreter_.block_inputs_.pop_back();
    return result;
  }

  Activation& root() const {
    Activation* root = &activation_;
    while (root->outer != nullptr) {
      root = root->outer;
    }
    return *root;
  }

  bool prints(OutputCheck check) const {
    return check == OutputCheck::Always ||
           (check == OutputCheck::UnlessExtended && root().parent_template == nullptr);
  }

  // Sets a name of the top level: includes and blocks see it, importers if it is exported.
  void set_name(const std::string& name, const Value& value, bool is_exported) const {
    Context& context = *activation_.context;
    context.set_names[name] = value;
    if (is_exported && !name.starts_with('_')) {
      context.exported.insert(name);
    } else {
      context.exported.erase(name);
    }
  }

  static std::string describe_names(const Value& names) {
    return names.is_text() ? fmt::format("'{}'", names.text()->bytes) : "of any of these names";
  }

  Interpreter& interpreter_;
  const Statement& statement_;
  Activation& activation_;
  OutputBuffer& out_;
};

void Interpreter::execute(const Body& body, Activation& activation, OutputBuffer& out) {
  for (const Statement& statement : body) {
    execute(statement, activation, out);
  }
}

void Interpreter::execute(const Statement& statement, Activation& activation, OutputBuffer& out) {
  try {
    const Level level(*this);
    std::visit(StatementRunner(*this, statement, activation, out), statement.node);
  } catch (const Failure& failure) {
    throw activation.owner->parsed->source.error(statement.offset, failure.what());
  }
}

}  // namespace stof::render
