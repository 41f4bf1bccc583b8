#pragma once

#include <memory>
#include <string>

#include "render/interpreter.hpp"

namespace stof::render {

// A macro, or the caller of a call block, with the variables that it was defined among.
class MacroObject final : public Object {
 public:
  MacroObject(Interpreter& interpreter, std::shared_ptr<const Macro> macro, Activation& closure)
      : interpreter_(interpreter), macro_(std::move(macro)), closure_(closure) {}

  std::string_view type_name() const override { return "Macro"; }
  std::string repr() const override;
  bool is_callable() const override { return true; }
  Value call(Runtime&, Arguments arguments) override {
    return interpreter_.call_macro(*macro_, closure_, std::move(arguments));
  }
  Value attribute(Runtime& runtime, std::string_view name) override;

 private:
  Interpreter& interpreter_;
  std::shared_ptr<const Macro> macro_;
  Activation& closure_;
};

// An imported template: its exported names, and as text its output.
class Module final : public Object {
 public:
  Module(std::string name, std::map<std::string, Value> exports, Text body)
      : name_(std::move(name)), exports_(std::move(exports)), body_(std::move(body)) {}

  // An exported value, or no value.
  Value exported(std::string_view name) const;
  const Value& body() const { return body_; }

  std::string_view type_name() const override { return "TemplateModule"; }
  std::string repr() const override;
  Value str() const override { return body_; }
  Value attribute(Runtime&, std::string_view name) override { return exported(name); }
  void release(Remains& remains) override;

 private:
  std::string name_;
  std::map<std::string, Value> exports_;
  Value body_;
};

// super(), or self.name(): a block at some level of inheritance.
class BlockObject final : public Object {
 public:
  BlockObject(Interpreter& interpreter, std::string name, Context& context, std::size_t depth)
      : interpreter_(interpreter), name_(std::move(name)), context_(context), depth_(depth) {}

  std::string_view type_name() const override { return "BlockReference"; }
  bool is_callable() const override { return true; }
  Value call(Runtime& runtime, Arguments arguments) override;
  Value attribute(Runtime& runtime, std::string_view name) override;

 private:
  Interpreter& interpreter_;
  std::string name_;
  Context& context_;
  std::size_t depth_;
};

// self: the blocks of the template.
class SelfObject final : public Object {
 public:
  SelfObject(Interpreter& interpreter, Context& context)
      : interpreter_(interpreter), context_(context) {}

  std::string_view type_name() const override { return "TemplateReference"; }
  std::string repr() const override;
  Value item(Runtime& runtime, const Value& key) override;

 private:
  Interpreter& interpreter_;
  Context& context_;
};

}  // namespace stof::render
