#include "render/resolver.hpp"

#include <fmt/format.h>

#include "render/symbols.hpp"
#include "render/walk.hpp"

namespace stof::render {

namespace {

constexpr std::size_t kMaxNames = 4096;  // in one scope: copies of it are taken for every if

// A scope that statements are resolved in.
struct Frame {
  Symbols* symbols = nullptr;
  FunctionScope* function = nullptr;
  bool is_toplevel = false;  // the root, and ifs in it
  bool is_root = false;      // the root alone
  bool is_soft = false;  // within an if: unknown filters are an error only when they are reached
  bool checks_output = false;  // the template may extend another, and then prints nothing itself
};

Frame soft(Frame frame) {
  frame.is_root = false;
  frame.is_soft = true;
  return frame;
}

class Resolver {
 public:
  explicit Resolver(ParsedTemplate& parsed) : parsed_(parsed) {}

  void run() {
    FunctionScope function(nullptr, parsed_.function);
    Symbols symbols(nullptr, function);
    if (names_read(parsed_.body, {"self"}).contains("self")) {
      symbols.declare_argument("self");
      parsed_.self = symbols.reference(function, "self");
    }
    SymbolCollector(symbols).collect(parsed_.body);
    check_size(symbols, 0);
    const Frame frame{.symbols = &symbols,
                      .function = &function,
                      .is_toplevel = true,
                      .is_root = true,
                      .checks_output = parsed_.has_extends};
    parsed_.frame = symbols.frame_slots();
    resolve(parsed_.body, frame);
    parsed_.is_always_extended = is_always_extended_;
    for (const auto& [name, block] : parsed_.blocks) {
      resolve_block(*block);
    }
  }

  void operator()(Output& output) {
    if (frame_.checks_output) {
      output.check = is_always_extended_ ? OutputCheck::Never : OutputCheck::UnlessExtended;
    }
    for (OutputItem& item : output.items) {
      if (auto* expression = std::get_if<Expression>(&item.content)) {
        resolve(*expression, frame_);
      }
    }
  }

  void operator()(If& statement) {
    const Frame frame = soft(frame_);
    for (If::Branch& branch : statement.branches) {
      resolve(branch.test, frame);
      resolve(branch.body, frame);
    }
    resolve(statement.otherwise, frame);
  }

  void operator()(For& loop) {
    const Frame outer = frame_;
    FunctionScope recursion(outer.function, loop.recursion);
    FunctionScope& function = loop.is_recursive ? recursion : *outer.function;
    Symbols symbols(outer.symbols, function);
    loop.has_loop_variable = loop.is_recursive ||
                             names_read(loop.body, {"loop"}).contains("loop") ||
                             has_scoped_block(loop.body) || has_scoped_block(loop.otherwise);
    if (loop.has_loop_variable) {
      symbols.declare_argument("loop");
    }
    SymbolCollector collector(symbols);
    collector.collect(loop.target, SymbolCollector::TargetKind::Argument);
    collector.collect(loop.body);
    if (loop.has_loop_variable) {
      loop.loop_slot = symbols.reference(function, "loop");
    }
    if (assigns_name(loop, "loop")) {
      throw parsed_.source.error(offset_, "'loop' cannot be assigned to within a loop");
    }
    resolve_filter(loop, outer);
    Frame frame = inner(outer, symbols, function);
    resolve(loop.target, frame);
    resolve(loop.iterable, outer);
    loop.frame = frame_slots(symbols);
    resolve(loop.body, frame);
    Symbols otherwise(outer.symbols, function);
    SymbolCollector(otherwise).collect(loop.otherwise);
    loop.otherwise_frame = frame_slots(otherwise);
    resolve(loop.otherwise, inner(outer, otherwise, function));
  }

  void operator()(MacroDefinition& definition) {
    resolve_macro(*definition.macro, frame_);
    definition.slot = slot_of(*definition.macro->name, frame_);
    definition.is_exported = frame_.is_toplevel;
  }

  void operator()(CallBlock& block) {
    resolve_macro(*block.caller, frame_);
    resolve(block.call, frame_);
  }

  void operator()(FilterBlock& block) {
    Symbols symbols(frame_.symbols, *frame_.function);
    SymbolCollector collector(symbols);
    collector.collect(block.body);
    collector.collect(block.filter);
    const Frame frame = inner(frame_, symbols, *frame_.function);
    block.frame = frame_slots(symbols);
    resolve(block.body, frame);
    resolve(block.filter, frame);
  }

  void operator()(With& with) {
    const Frame outer = frame_;
    Symbols symbols(outer.symbols, *outer.function);
    SymbolCollector collector(symbols);
    for (const auto& [target, value] : with.assignments) {
      collector.collect(target, SymbolCollector::TargetKind::Argument);
    }
    collector.collect(with.body);
    const Frame frame = inner(outer, symbols, *outer.function);
    with.frame = frame_slots(symbols);
    for (auto& [target, value] : with.assignments) {
      resolve(target, frame);
      resolve(value, outer);
    }
    resolve(with.body, frame);
  }

  void operator()(Assign& assign) {
    resolve(assign.target, frame_);
    resolve(assign.value, frame_);
    assign.exports = exports(assign.target, frame_);
  }

  void operator()(AssignBlock& assign) {
    const Frame outer = frame_;
    Symbols symbols(outer.symbols, *outer.function);
    SymbolCollector(symbols).collect(assign.body);
    Frame frame = inner(outer, symbols, *outer.function);
    frame.checks_output = false;
    assign.frame = frame_slots(symbols);
    resolve(assign.body, frame);
    resolve(assign.target, outer);
    if (assign.filter) {
      resolve(*assign.filter, frame);
    }
    assign.exports = exports(assign.target, outer);
  }

  void operator()(BlockReference& reference) const {
    if (frame_.is_toplevel && extends_count_ > 0) {
      reference.check = is_always_extended_ ? OutputCheck::Never : OutputCheck::UnlessExtended;
    }
    if (reference.block->is_scoped) {
      reference.locals = frame_.symbols->stored_names(*frame_.function);
    }
  }

  void operator()(Extends& extends) {
    if (!frame_.is_toplevel) {
      throw parsed_.source.error(offset_, "extends stands on the top level of a template");
    }
    if (extends_count_ > 0) {
      extends.repeated =
          is_always_extended_ ? Extends::Repeated::Yes : Extends::Repeated::IfExtended;
    }
    resolve(extends.parent, frame_);
    is_always_extended_ = is_always_extended_ || frame_.is_root;
    ++extends_count_;
  }

  void operator()(Include& include) {
    resolve(include.name, frame_);
    include.locals = frame_.symbols->stored_names(*frame_.function);
  }

  void operator()(Import& import) {
    resolve(import.name, frame_);
    import.slot = slot_of(import.target, frame_);
    import.is_toplevel = frame_.is_toplevel;
    import.locals = frame_.symbols->stored_names(*frame_.function);
  }

  void operator()(FromImport& import) {
    resolve(import.name, frame_);
    for (ImportedName& name : import.names) {
      name.slot = slot_of(name.alias, frame_);
    }
    import.is_toplevel = frame_.is_toplevel;
    import.locals = frame_.symbols->stored_names(*frame_.function);
  }

 private:
  static Frame inner(const Frame& outer, Symbols& symbols, FunctionScope& function) {
    return {.symbols = &symbols, .function = &function, .checks_output = outer.checks_output};
  }

  FrameSlots frame_slots(const Symbols& symbols) const {
    check_size(symbols, offset_);
    return symbols.frame_slots();
  }

  void check_size(const Symbols& symbols, std::size_t offset) const {
    if (symbols.size() > kMaxNames) {
      throw parsed_.source.error(
          offset, fmt::format("{} names in one scope, more than {}", symbols.size(), kMaxNames));
    }
  }

  void resolve(Body& body, const Frame& frame) {
    for (Statement& statement : body) {
      const Frame outer = std::exchange(frame_, frame);
      const std::size_t outer_offset = std::exchange(offset_, statement.offset);
      std::visit(*this, statement.node);
      frame_ = outer;
      offset_ = outer_offset;
    }
  }

  void resolve(Expression& expression, const Frame& frame) {
    Frame inner_frame = frame;
    if (auto* name = std::get_if<NameLoad>(&expression.node)) {
      name->slot = slot_of(name->name, frame, expression.offset);
    } else if (const auto* application = std::get_if<Application>(&expression.node)) {
      if (application->builtin == nullptr && !frame.is_soft) {
        throw parsed_.source.error(
            expression.offset,
            fmt::format("no {} named '{}'", application->is_filter ? "filter" : "test",
                        application->name));
      }
    } else if (std::holds_alternative<Conditional>(expression.node)) {
      inner_frame = soft(frame);
    }
    for_each_child(expression, [&](Expression& child) { resolve(child, inner_frame); });
  }

  void resolve(Target& target, const Frame& frame) {
    if (auto* name = std::get_if<NameTarget>(&target.node)) {
      name->slot = slot_of(name->name, frame, target.offset);
    } else if (auto* tuple = std::get_if<TupleTarget>(&target.node)) {
      for (Target& item : tuple->items) {
        resolve(item, frame);
      }
    } else {
      auto& attribute = std::get<AttributeTarget>(target.node);
      attribute.slot = slot_of(attribute.name, frame, target.offset);
    }
  }

  // The condition of a loop is a function over its items, with a scope of its own.
  void resolve_filter(For& loop, const Frame& outer) {
    if (!loop.filter) {
      return;
    }
    FunctionScope function(outer.function, loop.filter_function);
    Symbols symbols(outer.symbols, function);
    SymbolCollector collector(symbols);
    collector.collect(loop.target, SymbolCollector::TargetKind::Argument);
    collector.collect(*loop.filter);
    const Frame frame = inner(outer, symbols, function);
    loop.filter_target = loop.target;
    resolve(*loop.filter_target, frame);
    resolve(*loop.filter, frame);
    loop.filter_frame = frame_slots(symbols);
  }

  void resolve_macro(Macro& macro, const Frame& outer) {
    FunctionScope function(outer.function, macro.function);
    Symbols symbols(outer.symbols, function);
    SymbolCollector collector(symbols);
    const auto collect = [&] {
      for (const MacroParameter& parameter : macro.parameters) {
        symbols.declare_argument(parameter.name);
      }
      for (const MacroParameter& parameter : macro.parameters) {
        if (parameter.otherwise) {
          collector.collect(*parameter.otherwise);
        }
      }
      collector.collect(macro.body);
    };
    collect();
    declare_special_names(macro, symbols, function);
    collect();
    Frame frame = inner(outer, symbols, function);
    frame.checks_output = false;
    for (MacroParameter& parameter : macro.parameters) {
      parameter.slot = symbols.reference(function, parameter.name);
      if (parameter.otherwise) {
        resolve(*parameter.otherwise, frame);
      }
    }
    macro.frame = frame_slots(symbols);
    resolve(macro.body, frame);
  }

  // caller, kwargs and varargs, where the body reads them and no parameter has the name.
  void declare_special_names(Macro& macro, Symbols& symbols, FunctionScope& function) const {
    const std::set<std::string> read = names_read(macro.body, {"caller", "kwargs", "varargs"});
    const auto declare = [&](const std::string& name) -> std::optional<SlotReference> {
      const auto parameter = std::ranges::find(macro.parameters, name, &MacroParameter::name);
      if (!read.contains(name)) {
        return std::nullopt;
      }
      if (parameter == macro.parameters.end()) {
        symbols.declare_argument(name);
        return symbols.reference(function, name);
      }
      if (name == "caller" && !parameter->otherwise) {
        throw parsed_.source.error(macro.offset, "the parameter 'caller' needs a default");
      }
      return name == "caller" ? std::optional(symbols.reference(function, name)) : std::nullopt;
    };
    macro.caller = declare("caller");
    macro.named_rest = declare("kwargs");
    macro.positional_rest = declare("varargs");
  }

  void resolve_block(Block& block) {
    FunctionScope function(nullptr, block.function);
    Symbols symbols(nullptr, function);
    const std::set<std::string> read = names_read(block.body, {"self", "super"});
    for (const auto& [name, place] :
         {std::pair("self", &block.self), std::pair("super", &block.super)}) {
      if (read.contains(name)) {
        symbols.declare_argument(name);
        *place = symbols.reference(function, name);
      }
    }
    SymbolCollector(symbols).collect(block.body);
    block.frame = frame_slots(symbols);
    resolve(block.body, {.symbols = &symbols, .function = &function});
  }

  SlotReference slot_of(const std::string& name, const Frame& frame) const {
    return slot_of(name, frame, offset_);
  }
  SlotReference slot_of(const std::string& name, const Frame& frame, std::size_t offset) const {
    if (frame.symbols->find(name) == nullptr) {
      // jinja2 forgets to look at the arguments of the filters of a set block.
      throw parsed_.source.error(
          offset,
          fmt::format("'{}' is used in the filter of a set block alone; set it before", name));
    }
    return frame.symbols->reference(*frame.function, name);
  }

  std::vector<NamedSlot> exports(const Target& target, const Frame& frame) const {
    std::vector<NamedSlot> names;
    if (frame.is_toplevel) {
      add_names(target, names);
    }
    return names;
  }

  static void add_names(const Target& target, std::vector<NamedSlot>& names) {
    if (const auto* name = std::get_if<NameTarget>(&target.node)) {
      names.push_back({.name = name->name, .slot = name->slot});
    } else if (const auto* tuple = std::get_if<TupleTarget>(&target.node)) {
      for (const Target& item : tuple->items) {
        add_names(item, names);
      }
    }
  }

  ParsedTemplate& parsed_;
  Frame frame_;
  std::size_t offset_ = 0;
  int extends_count_ = 0;
  bool is_always_extended_ = false;
};

}  // namespace

void resolve(ParsedTemplate& parsed) {
  Resolver(parsed).run();
}

}  // namespace stof::render
