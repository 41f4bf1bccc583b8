#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "render/builtin.hpp"
#include "render/operators.hpp"
#include "render/slots.hpp"

// A parsed template: statements and expressions. Each carries the offset at which it was written;
// the members named slot, frame and the like are filled in by the resolver.
namespace stof::render {

struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;
struct Statement;
using Body = std::vector<Statement>;

struct Constant {
  Value value{};
};
struct NameLoad {
  std::string name{};
  SlotReference slot{};
};
struct SequenceLiteral {
  bool is_tuple = false;
  std::vector<Expression> items;
};
struct DictLiteral {
  std::vector<std::pair<Expression, Expression>> items;
};
enum class UnaryOperator { Negate, Plus, Not };
struct Unary {
  UnaryOperator op{};
  ExpressionPtr operand;
};
struct Binary {
  BinaryOperator op{};
  ExpressionPtr left;
  ExpressionPtr right;
};
struct Logical {
  bool is_and = true;
  ExpressionPtr left;
  ExpressionPtr right;
};
struct Comparison {
  ExpressionPtr first;
  std::vector<std::pair<CompareOperator, Expression>> rest;
};
struct Concatenation {
  std::vector<Expression> parts;
};
struct Conditional {
  ExpressionPtr test;
  ExpressionPtr if_true;
  ExpressionPtr if_false;  // may be null
};
struct Attribute {
  ExpressionPtr object;
  std::string name{};
};
struct Subscript {
  ExpressionPtr object;
  ExpressionPtr key;
};
struct Slice {
  ExpressionPtr object;
  ExpressionPtr start;  // null where left out, as are the others
  ExpressionPtr stop;
  ExpressionPtr step;
};
struct CallArguments {
  std::vector<Expression> positional;
  std::vector<std::pair<std::string, Expression>> named;
  ExpressionPtr star;         // *arguments, may be null
  ExpressionPtr double_star;  // **arguments, may be null
};
struct Call {
  ExpressionPtr callee;
  CallArguments arguments;
};
// A filter or a test. The input is null in a filter block and a filtered set block.
struct Application {
  bool is_filter = true;
  std::string name{};
  const Builtin* builtin = nullptr;  // null for an unknown name
  ExpressionPtr input;
  CallArguments arguments;
};

struct Expression {
  using Node = std::variant<Constant, NameLoad, SequenceLiteral, DictLiteral, Unary, Binary,
                            Logical, Comparison, Concatenation, Conditional, Attribute, Subscript,
                            Slice, Call, Application>;

  Node node;
  std::size_t offset = 0;
  int depth = 1;  // of the tree below, itself included
};

// What an assignment assigns to.
struct Target;
struct NameTarget {
  std::string name{};
  SlotReference slot{};
};
struct TupleTarget {
  std::vector<Target> items;
};
struct AttributeTarget {  // of a namespace
  std::string name{};
  std::string attribute{};
  SlotReference slot{};
};
struct Target {
  std::variant<NameTarget, TupleTarget, AttributeTarget> node;
  std::size_t offset = 0;
};

// Template text as it stands, or an expression to print.
struct OutputItem {
  std::variant<std::string, Expression> content{};
  int line = 0;
};
enum class OutputCheck { Always, Never, UnlessExtended };
struct Output {
  std::vector<OutputItem> items{};
  OutputCheck check = OutputCheck::Always;
};

struct If {
  struct Branch {
    Expression test{};
    Body body;
  };
  std::vector<Branch> branches{};
  Body otherwise;
};

struct For {
  Target target{};
  Expression iterable{};
  std::optional<Expression> filter{};
  bool is_recursive = false;
  Body body;
  Body otherwise;

  bool has_loop_variable = false;
  SlotReference loop_slot{};
  FrameSlots frame{};
  FrameSlots otherwise_frame{};
  Function recursion{};        // of a recursive loop
  Function filter_function{};  // of a loop with a filter
  FrameSlots filter_frame{};
  std::optional<Target> filter_target{};
};

struct MacroParameter {
  std::string name{};
  std::optional<Expression> otherwise{};
  SlotReference slot{};
};
struct Macro {
  std::optional<std::string> name{};  // none for a call block
  std::vector<MacroParameter> parameters{};
  Body body;
  std::size_t offset = 0;

  Function function{};
  FrameSlots frame{};
  std::optional<SlotReference> caller{};  // of the special variables, where the body uses them
  std::optional<SlotReference> named_rest{};
  std::optional<SlotReference> positional_rest{};
};
struct MacroDefinition {
  std::shared_ptr<Macro> macro{};
  SlotReference slot{};
  bool is_exported = false;  // defined on the top level
};
struct CallBlock {
  std::shared_ptr<Macro> caller{};
  Expression call{};
};
struct FilterBlock {
  Expression filter{};
  Body body;
  FrameSlots frame{};
};
struct With {
  std::vector<std::pair<Target, Expression>> assignments{};
  Body body;
  FrameSlots frame{};
};

struct Assign {
  Target target{};
  Expression value{};
  std::vector<NamedSlot> exports{};
};
struct AssignBlock {
  Target target{};
  std::optional<Expression> filter{};
  Body body;
  FrameSlots frame{};
  std::vector<NamedSlot> exports{};
};

struct Block {
  std::string name{};
  bool is_scoped = false;
  bool is_required = false;
  Body body;
  std::size_t offset = 0;

  Function function{};
  FrameSlots frame{};
  std::optional<SlotReference> self{};
  std::optional<SlotReference> super{};
};
struct BlockReference {
  std::shared_ptr<Block> block{};
  OutputCheck check = OutputCheck::Always;
  std::vector<NamedSlot> locals{};  // that a scoped block sees
};
struct Extends {
  Expression parent{};
  enum class Repeated { No, IfExtended, Yes } repeated = Repeated::No;
};

struct Include {
  Expression name{};
  bool ignores_missing = false;
  bool has_context = true;
  std::vector<NamedSlot> locals{};
};
struct Import {
  Expression name{};
  std::string target{};
  bool has_context = false;
  std::vector<NamedSlot> locals{};
  SlotReference slot{};
  bool is_toplevel = false;
};
struct ImportedName {
  std::string name{};
  std::string alias{};
  SlotReference slot{};
};
struct FromImport {
  Expression name{};
  std::vector<ImportedName> names{};
  bool has_context = false;
  std::vector<NamedSlot> locals{};
  bool is_toplevel = false;
};

struct Statement {
  using Node = std::variant<Output, If, For, MacroDefinition, CallBlock, FilterBlock, With, Assign,
                            AssignBlock, BlockReference, Extends, Include, Import, FromImport>;

  Node node;
  std::size_t offset = 0;
};

}  // namespace stof::render
