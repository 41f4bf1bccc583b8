#include "render/walk.hpp"

namespace stof::render {

namespace {

// Visits every name of a tree in jinja2's order, expressions read and targets assigned.
template <typename Events>
class NameWalk {
 public:
  explicit NameWalk(Events& events) : events_(events) {}

  void walk(const Body& body) {
    for (const Statement& statement : body) {
      std::visit(*this, statement.node);
    }
  }
  void walk(const Expression& expression) {
    if (const auto* name = std::get_if<NameLoad>(&expression.node)) {
      events_.read(name->name);
    }
    for_each_child(expression, [this](const Expression& child) { walk(child); });
  }
  void walk(const Target& target) {
    if (const auto* name = std::get_if<NameTarget>(&target.node)) {
      events_.assign(name->name);
    } else if (const auto* tuple = std::get_if<TupleTarget>(&target.node)) {
      for (const Target& item : tuple->items) {
        walk(item);
      }
    }
  }
  void walk(const std::optional<Expression>& expression) {
    if (expression) {
      walk(*expression);
    }
  }

  void operator()(const Output& output) {
    for (const OutputItem& item : output.items) {
      if (const auto* expression = std::get_if<Expression>(&item.content)) {
        walk(*expression);
      }
    }
  }
  void operator()(const If& statement) {
    walk(statement.branches[0].test);
    walk(statement.branches[0].body);
    for (std::size_t i = 1; i < statement.branches.size(); ++i) {
      walk(statement.branches[i].test);
      walk(statement.branches[i].body);
    }
    walk(statement.otherwise);
  }
  void operator()(const For& loop) {
    walk(loop.target);
    walk(loop.iterable);
    walk(loop.body);
    walk(loop.otherwise);
    walk(loop.filter);
  }
  void operator()(const MacroDefinition& definition) { walk_macro(*definition.macro); }
  void operator()(const CallBlock& block) {
    walk(block.call);
    walk_macro(*block.caller);
  }
  void operator()(const FilterBlock& block) {
    walk(block.body);
    walk(block.filter);
  }
  void operator()(const With& with) {
    for (const auto& [target, value] : with.assignments) {
      walk(target);
    }
    for (const auto& [target, value] : with.assignments) {
      walk(value);
    }
    walk(with.body);
  }
  void operator()(const Assign& assign) {
    walk(assign.target);
    walk(assign.value);
  }
  void operator()(const AssignBlock& assign) {
    walk(assign.target);
    walk(assign.filter);
    walk(assign.body);
  }
  void operator()(const BlockReference& reference) { events_.enter(*reference.block, *this); }
  void operator()(const Extends& extends) { load(extends.parent); }
  void operator()(const Include& include) { load(include.name); }
  void operator()(const Import& import) { load(import.name); }
  void operator()(const FromImport& import) { load(import.name); }

 private:
  // The name of another template.
  void load(const Expression& name) {
    walk(name);
    events_.load(name);
  }
  void walk_macro(const Macro& macro) {
    for (const MacroParameter& parameter : macro.parameters) {
      events_.bind(parameter.name);
    }
    for (const MacroParameter& parameter : macro.parameters) {
      walk(parameter.otherwise);
    }
    walk(macro.body);
  }

  Events& events_;
};

struct ReadEvents {
  std::set<std::string> open;
  std::set<std::string> found;

  void read(const std::string& name) {
    if (open.contains(name)) {
      found.insert(name);
    }
  }
  void assign(const std::string& name) { open.erase(name); }
  void bind(const std::string& name) { open.erase(name); }
  void enter(const Block&, NameWalk<ReadEvents>&) {}
  void load(const Expression&) {}
};

struct AssignEvents {
  std::string name;
  bool is_found = false;

  void read(const std::string&) {}
  void assign(const std::string& assigned) { is_found = is_found || assigned == name; }
  void bind(const std::string&) {}
  void enter(const Block& block, NameWalk<AssignEvents>& walk) { walk.walk(block.body); }
  void load(const Expression&) {}
};

struct BlockEvents {
  bool is_found = false;

  void read(const std::string&) {}
  void assign(const std::string&) {}
  void bind(const std::string&) {}
  void enter(const Block& block, NameWalk<BlockEvents>& walk) {
    is_found = is_found || block.is_scoped;
    walk.walk(block.body);
  }
  void load(const Expression&) {}
};

struct LoadEvents {
  LoadedNames loaded;

  void read(const std::string&) {}
  void assign(const std::string&) {}
  void bind(const std::string&) {}
  void enter(const Block& block, NameWalk<LoadEvents>& walk) { walk.walk(block.body); }
  void load(const Expression& name) {
    const auto* constant = std::get_if<Constant>(&name.node);
    const auto* sequence = std::get_if<SequenceLiteral>(&name.node);
    if (constant != nullptr && constant->value.is_text()) {
      loaded.names.emplace(constant->value.text()->bytes);
    } else if (sequence != nullptr) {
      for (const Expression& item : sequence->items) {
        load(item);
      }
    } else {
      loaded.is_complete = false;
    }
  }
};

}  // namespace

std::set<std::string> names_read(const Body& body, std::set<std::string> names) {
  ReadEvents events{.open = std::move(names), .found = {}};
  NameWalk<ReadEvents>(events).walk(body);
  return events.found;
}

bool assigns_name(const For& loop, const std::string& name) {
  AssignEvents events{.name = name};
  NameWalk<AssignEvents> walk(events);
  walk(loop);
  return events.is_found;
}

bool has_scoped_block(const Body& body) {
  BlockEvents events;
  NameWalk<BlockEvents>(events).walk(body);
  return events.is_found;
}

LoadedNames names_loaded(const Body& body) {
  LoadEvents events;
  NameWalk<LoadEvents>(events).walk(body);
  return std::move(events.loaded);
}

}  // namespace stof::render
