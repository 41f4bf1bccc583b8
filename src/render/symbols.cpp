#include "render/symbols.hpp"

#include "base/check.hpp"
#include "render/walk.hpp"

namespace stof::render {

int FunctionScope::slot(int level, const std::string& name) {
  const auto [found, is_new] = slots_.try_emplace({level, name}, function_.slot_count);
  function_.slot_count += is_new ? 1 : 0;
  return found->second;
}

SlotReference FunctionScope::reference(FunctionScope& owner, int level, const std::string& name) {
  int hops = 0;
  for (FunctionScope* scope = this; scope != &owner; scope = scope->outer_) {
    STOF_CHECK(scope->outer_ != nullptr) << "'" << name << "' lies in no enclosing function";
    ++hops;
  }
  return {.hops = hops, .slot = owner.slot(level, name)};
}

const Symbols* Symbols::find(const std::string& name) const {
  for (const Symbols* scope = this; scope != nullptr; scope = scope->outer_) {
    if (scope->loads_.contains(name)) {
      return scope;
    }
  }
  return nullptr;
}

void Symbols::load(const std::string& name) {
  if (find(name) == nullptr) {
    loads_[name] = {.from = SlotSetup::From::Context};
  }
}

void Symbols::store(const std::string& name) {
  stores_.insert(name);
  if (loads_.contains(name)) {
    return;
  }
  const Symbols* found = outer_ == nullptr ? nullptr : outer_->find(name);
  loads_[name] = found != nullptr ? Load{.from = SlotSetup::From::Outer, .outer = found}
                                  : Load{.from = SlotSetup::From::Nothing};
}

void Symbols::declare_argument(const std::string& name) {
  stores_.insert(name);
  loads_[name] = {.from = SlotSetup::From::Argument};
}

void Symbols::merge_branches(const std::vector<Symbols>& branches) {
  std::map<std::string, std::size_t> new_stores;
  for (const Symbols& branch : branches) {
    for (const std::string& name : branch.stores_) {
      if (!stores_.contains(name)) {
        ++new_stores[name];
      }
    }
  }
  for (const Symbols& branch : branches) {
    for (const auto& [name, load] : branch.loads_) {
      loads_[name] = load;
    }
    stores_.insert(branch.stores_.begin(), branch.stores_.end());
  }
  // What only some branches assign keeps, in the others, the value that it has outside.
  for (const auto& [name, count] : new_stores) {
    if (count == branches.size()) {
      continue;
    }
    const Symbols* found = outer_ == nullptr ? nullptr : outer_->find(name);
    loads_[name] = found != nullptr ? Load{.from = SlotSetup::From::Outer, .outer = found}
                                    : Load{.from = SlotSetup::From::Context};
  }
}

SlotReference Symbols::reference(FunctionScope& from, const std::string& name) const {
  const Symbols* scope = find(name);
  STOF_CHECK(scope != nullptr) << "the name '" << name << "' was not collected";
  return from.reference(*scope->function_, scope->level_, name);
}

FrameSlots Symbols::frame_slots() const {
  FrameSlots frame;
  for (const auto& [name, load] : loads_) {
    SlotSetup setup{
        .from = load.from, .slot = function_->slot(level_, name), .name = name, .outer = {}};
    if (load.from == SlotSetup::From::Outer) {
      setup.outer = function_->reference(*load.outer->function_, load.outer->level_, name);
    }
    frame.setups.push_back(std::move(setup));
  }
  return frame;
}

std::vector<NamedSlot> Symbols::stored_names(FunctionScope& from) const {
  std::set<std::string> names;
  for (const Symbols* scope = this; scope != nullptr; scope = scope->outer_) {
    names.insert(scope->stores_.begin(), scope->stores_.end());
  }
  std::vector<NamedSlot> slots;
  slots.reserve(names.size());
  for (const std::string& name : names) {
    slots.push_back({.name = name, .slot = reference(from, name)});
  }
  return slots;
}

void SymbolCollector::collect(const Expression& expression) {
  if (const auto* name = std::get_if<NameLoad>(&expression.node)) {
    symbols_.load(name->name);
    return;
  }
  for_each_child(expression, [this](const Expression& child) { collect(child); });
}

void SymbolCollector::collect(const Body& body) {
  for (const Statement& statement : body) {
    collect(statement);
  }
}

void SymbolCollector::collect(const Target& target, TargetKind kind) {
  if (const auto* name = std::get_if<NameTarget>(&target.node)) {
    kind == TargetKind::Argument ? symbols_.declare_argument(name->name)
                                 : symbols_.store(name->name);
  } else if (const auto* tuple = std::get_if<TupleTarget>(&target.node)) {
    for (const Target& item : tuple->items) {
      collect(item, kind);
    }
  } else {
    symbols_.load(std::get<AttributeTarget>(target.node).name);
  }
}

void SymbolCollector::collect_if(const If& statement, std::size_t first_branch) {
  const If::Branch& branch = statement.branches[first_branch];
  collect(branch.test);
  std::vector<Symbols> branches(3, symbols_);
  SymbolCollector(branches[0]).collect(branch.body);
  // jinja2 keeps the elifs as ifs of their own, in the one branch beside the body and the else.
  if (first_branch == 0) {
    for (std::size_t i = 1; i < statement.branches.size(); ++i) {
      SymbolCollector(branches[1]).collect_if(statement, i);
    }
    SymbolCollector(branches[2]).collect(statement.otherwise);
  }
  symbols_.merge_branches(branches);
}

namespace {

struct StatementSymbols {
  SymbolCollector& collector;
  Symbols& symbols;

  void operator()(const Output& output) const {
    for (const OutputItem& item : output.items) {
      if (const auto* expression = std::get_if<Expression>(&item.content)) {
        collector.collect(*expression);
      }
    }
  }
  void operator()(const For& loop) const { collector.collect(loop.iterable); }
  void operator()(const MacroDefinition& definition) const {
    symbols.store(*definition.macro->name);
  }
  void operator()(const CallBlock& block) const { collector.collect(block.call); }
  void operator()(const FilterBlock& block) const { collector.collect(block.filter); }
  void operator()(const With& with) const {
    for (const auto& [target, value] : with.assignments) {
      collector.collect(value);
    }
  }
  void operator()(const Assign& assign) const {
    collector.collect(assign.value);
    collector.collect(assign.target, SymbolCollector::TargetKind::Assigned);
  }
  void operator()(const AssignBlock& assign) const {
    collector.collect(assign.target, SymbolCollector::TargetKind::Assigned);
  }
  void operator()(const BlockReference&) const {}
  void operator()(const Extends& extends) const { collector.collect(extends.parent); }
  void operator()(const Include& include) const { collector.collect(include.name); }
  void operator()(const Import& import) const {
    collector.collect(import.name);
    symbols.store(import.target);
  }
  void operator()(const FromImport& import) const {
    collector.collect(import.name);
    for (const ImportedName& name : import.names) {
      symbols.store(name.alias);
    }
  }
  void operator()(const If&) const {}
};

}  // namespace

void SymbolCollector::collect(const Statement& statement) {
  if (const auto* branches = std::get_if<If>(&statement.node)) {
    collect_if(*branches, 0);
  } else {
    std::visit(StatementSymbols{*this, symbols_}, statement.node);
  }
}

}  // namespace stof::render
