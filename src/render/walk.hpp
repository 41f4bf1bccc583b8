#pragma once

#include <set>
#include <string>
#include <variant>

#include "render/ast.hpp"

// Walks over the tree of a template, in the order in which jinja2 visits its own.
namespace stof::render {

template <typename Visit>
void for_each_argument(CallArguments& arguments, const Visit& visit) {
  for (Expression& argument : arguments.positional) {
    visit(argument);
  }
  for (auto& [name, value] : arguments.named) {
    visit(value);
  }
  for (const ExpressionPtr* rest : {&arguments.star, &arguments.double_star}) {
    if (*rest != nullptr) {
      visit(**rest);
    }
  }
}

template <typename Visit>
class ChildVisitor {
 public:
  explicit ChildVisitor(const Visit& visit) : visit_(visit) {}

  void operator()(Constant&) const {}
  void operator()(NameLoad&) const {}
  void operator()(SequenceLiteral& node) const {
    for (Expression& item : node.items) {
      visit_(item);
    }
  }
  void operator()(DictLiteral& node) const {
    for (auto& [key, value] : node.items) {
      visit_(key);
      visit_(value);
    }
  }
  void operator()(Unary& node) const { visit_(*node.operand); }
  void operator()(Binary& node) const { both(node.left, node.right); }
  void operator()(Logical& node) const { both(node.left, node.right); }
  void operator()(Comparison& node) const {
    visit_(*node.first);
    for (auto& [op, operand] : node.rest) {
      visit_(operand);
    }
  }
  void operator()(Concatenation& node) const {
    for (Expression& part : node.parts) {
      visit_(part);
    }
  }
  void operator()(Conditional& node) const {
    both(node.test, node.if_true);
    optional(node.if_false);
  }
  void operator()(Attribute& node) const { visit_(*node.object); }
  void operator()(Subscript& node) const { both(node.object, node.key); }
  void operator()(Slice& node) const {
    visit_(*node.object);
    optional(node.start);
    optional(node.stop);
    optional(node.step);
  }
  void operator()(Call& node) const {
    visit_(*node.callee);
    for_each_argument(node.arguments, visit_);
  }
  void operator()(Application& node) const {
    optional(node.input);
    for_each_argument(node.arguments, visit_);
  }

 private:
  void both(ExpressionPtr& first, ExpressionPtr& second) const {
    visit_(*first);
    visit_(*second);
  }
  void optional(ExpressionPtr& expression) const {
    if (expression != nullptr) {
      visit_(*expression);
    }
  }

  const Visit& visit_;
};

template <typename Visit>
void for_each_child(Expression& expression, const Visit& visit) {
  std::visit(ChildVisitor<Visit>(visit), expression.node);
}
template <typename Visit>
void for_each_child(const Expression& expression, const Visit& visit) {
  // The visitor reads only: `visit` takes a const Expression here.
  for_each_child(const_cast<Expression&>(expression), visit);
}

// Those of the names that are read somewhere in the body before they are assigned there; blocks
// aside.
std::set<std::string> names_read(const Body& body, std::set<std::string> names);
// Whether a name is assigned anywhere in a loop, its target included.
bool assigns_name(const For& loop, const std::string& name);
// Whether a body holds a scoped block.
bool has_scoped_block(const Body& body);

// The templates that a body includes, imports or extends.
struct LoadedNames {
  std::set<std::string> names;
  bool is_complete = true;  // false: some name is computed
};
LoadedNames names_loaded(const Body& body);

}  // namespace stof::render
