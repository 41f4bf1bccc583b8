#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "render/ast.hpp"
#include "render/slots.hpp"

namespace stof::render {

// A function under construction: hands out its slots.
class FunctionScope {
 public:
  FunctionScope(FunctionScope* outer, Function& function) : outer_(outer), function_(function) {}

  // The slot of a name at a level of nesting; scopes side by side at one level share it.
  int slot(int level, const std::string& name);
  // From this function to a slot of it or of one that encloses it.
  SlotReference reference(FunctionScope& owner, int level, const std::string& name);

 private:
  FunctionScope* outer_;
  Function& function_;
  std::map<std::pair<int, std::string>, int> slots_;
};

// The names of one scope: what each means, and how its slot is set when the scope is entered. This
// is the analysis of jinja2.idtracking: a name is settled for the whole scope by its first use,
// whether it is read first (looked up once, on entry) or assigned first.
class Symbols {
 public:
  struct Load {
    SlotSetup::From from = SlotSetup::From::Nothing;
    const Symbols* outer = nullptr;  // of From::Outer
  };

  Symbols(Symbols* outer, FunctionScope& function)
      : outer_(outer), function_(&function), level_(outer == nullptr ? 0 : outer->level_ + 1) {}

  void load(const std::string& name);
  void store(const std::string& name);
  void declare_argument(const std::string& name);

  // The scopes of the branches of an if: copies, merged afterwards.
  void merge_branches(const std::vector<Symbols>& branches);

  // The scope that a name is found in, from here outwards; null if it is unknown.
  const Symbols* find(const std::string& name) const;

  SlotReference reference(FunctionScope& from, const std::string& name) const;
  FrameSlots frame_slots() const;
  // Every name assigned here or further out, with the slot that it has here.
  std::vector<NamedSlot> stored_names(FunctionScope& from) const;
  std::size_t size() const { return loads_.size(); }

 private:
  Symbols* outer_;
  FunctionScope* function_;
  int level_;
  std::map<std::string, Load> loads_;
  std::set<std::string> stores_;
};

// Notes every name that expressions and statements use in their own scope; inner scopes are noted
// when they are resolved.
class SymbolCollector {
 public:
  explicit SymbolCollector(Symbols& symbols) : symbols_(symbols) {}

  void collect(const Expression& expression);
  void collect(const Body& body);
  // The names of a target, as arguments or as assigned names.
  enum class TargetKind { Argument, Assigned };
  void collect(const Target& target, TargetKind kind);

 private:
  void collect(const Statement& statement);
  void collect(const CallArguments& arguments);
  void collect_if(const If& statement, std::size_t first_branch);

  Symbols& symbols_;
};

}  // namespace stof::render
