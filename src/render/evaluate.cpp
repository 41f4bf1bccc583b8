#include <fmt/format.h>

#include "render/access.hpp"
#include "render/formatting.hpp"
#include "render/interpreter.hpp"
#include "render/iteration.hpp"
#include "render/operators.hpp"
#include "render/text_operations.hpp"

// Expressions.
namespace stof::render {

class ExpressionEvaluator {
 public:
  ExpressionEvaluator(Interpreter& interpreter, Activation& activation)
      : interpreter_(interpreter), activation_(activation), runtime_(interpreter.runtime_) {}

  Value operator()(const Constant& node) const { return node.value; }

  Value operator()(const NameLoad& node) const {
    const Value& value = Interpreter::slot(node.slot, activation_);
    return value.is_missing() ? make_undefined(fmt::format("'{}' is undefined", node.name)) : value;
  }

  Value operator()(const SequenceLiteral& node) const {
    std::vector<Value> items;
    runtime_.budget.allocate((node.items.size() + 2) * sizeof(Value));
    for (const Expression& item : node.items) {
      items.push_back(evaluate(item));
    }
    return node.is_tuple ? make_tuple(std::move(items)) : make_list(std::move(items));
  }

  Value operator()(const DictLiteral& node) const {
    auto dict = std::make_shared<Dict>();
    runtime_.budget.allocate((node.items.size() + 1) * 4 * sizeof(Value));
    for (const auto& [key, value] : node.items) {
      Value evaluated_key = evaluate(key);
      dict->set(std::move(evaluated_key), evaluate(value));
    }
    return Value(std::move(dict));
  }

  Value operator()(const Unary& node) const {
    const Value operand = evaluate(*node.operand);
    switch (node.op) {
      case UnaryOperator::Negate:
        return negate(operand);
      case UnaryOperator::Plus:
        return plus(operand);
      default:
        return Value(!is_truthy(operand));
    }
  }

  Value operator()(const Binary& node) const {
    const Value left = evaluate(*node.left);
    return binary(runtime_, node.op, left, evaluate(*node.right));
  }

  Value operator()(const Logical& node) const {
    Value left = evaluate(*node.left);
    return is_truthy(left) == node.is_and ? evaluate(*node.right) : left;
  }

  Value operator()(const Comparison& node) const {
    Value left = evaluate(*node.first);
    for (const auto& [op, operand] : node.rest) {
      Value right = evaluate(operand);
      if (!compare(runtime_, op, left, right)) {
        return Value(false);
      }
      left = std::move(right);
    }
    return Value(true);
  }

  Value operator()(const Concatenation& node) const {
    std::vector<Value> texts;
    for (const Expression& part : node.parts) {
      texts.push_back(evaluate(part));
    }
    for (Value& text : texts) {
      text = to_text(text);
    }
    return Value(join_texts(runtime_, "", texts));
  }

  Value operator()(const Conditional& node) const {
    if (is_truthy(evaluate(*node.test))) {
      return evaluate(*node.if_true);
    }
    if (node.if_false != nullptr) {
      return evaluate(*node.if_false);
    }
    return Value(Undefined{
        .message = "the inline if-expression evaluated to false and no else section was defined",
        .is_strict = false});
  }

  Value operator()(const Attribute& node) const {
    return get_attribute(runtime_, evaluate(*node.object), node.name);
  }

  Value operator()(const Subscript& node) const {
    const Value object = evaluate(*node.object);
    return get_item(runtime_, object, evaluate(*node.key));
  }

  Value operator()(const Slice& node) const {
    const Value object = evaluate(*node.object);
    const Value start = evaluate_bound(node.start);
    const Value stop = evaluate_bound(node.stop);
    return get_slice(runtime_, object, start, stop, evaluate_bound(node.step));
  }

  Value operator()(const Call& node) const {
    const Value callee = evaluate(*node.callee);
    return interpreter_.call(callee, interpreter_.evaluate_arguments(node.arguments, activation_));
  }

  Value operator()(const Application& node) const {
    return interpreter_.evaluate_application(node, activation_);
  }

 private:
  Value evaluate(const Expression& expression) const {
    return interpreter_.evaluate(expression, activation_);
  }
  Value evaluate_bound(const ExpressionPtr& bound) const {
    return bound == nullptr ? Value(None{}) : evaluate(*bound);
  }

  Interpreter& interpreter_;
  Activation& activation_;
  Runtime& runtime_;
};

Value Interpreter::evaluate(const Expression& expression, Activation& activation) {
  try {
    const Level level(*this);
    return std::visit(ExpressionEvaluator(*this, activation), expression.node);
  } catch (const Failure& failure) {
    throw activation.owner->parsed->source.error(expression.offset, failure.what());
  }
}

Value Interpreter::evaluate_application(const Application& node, Activation& activation) {
  Value input = node.input == nullptr ? block_inputs_.back() : evaluate(*node.input, activation);
  Arguments arguments = evaluate_arguments(node.arguments, activation);
  if (node.builtin == nullptr) {
    throw Failure(fmt::format("no {} named '{}'", node.is_filter ? "filter" : "test", node.name));
  }
  arguments.positional.insert(arguments.positional.begin(), std::move(input));
  return render::call(runtime_, *node.builtin, std::move(arguments));
}

Arguments Interpreter::evaluate_arguments(const CallArguments& node, Activation& activation) {
  Arguments arguments;
  for (const Expression& argument : node.positional) {
    arguments.positional.push_back(evaluate(argument, activation));
  }
  for (const auto& [name, value] : node.named) {
    arguments.named.emplace_back(name, evaluate(value, activation));
  }
  if (node.star != nullptr) {
    std::vector<Value> more = to_vector(runtime_, evaluate(*node.star, activation));
    arguments.positional.insert(arguments.positional.end(), more.begin(), more.end());
  }
  if (node.double_star == nullptr) {
    return arguments;
  }
  const Value more = evaluate(*node.double_star, activation);
  if (more.dict() == nullptr) {
    require_defined(more);
    throw Failure(fmt::format("** wants a mapping, not '{}'", type_name(more)));
  }
  for (const auto& [key, value] : more.dict()->entries()) {
    const std::string& name = text_argument(key, "a named argument");
    for (const auto& [other, given] : arguments.named) {
      if (other == name) {
        throw Failure(fmt::format("got two values for the argument '{}'", name));
      }
    }
    arguments.named.emplace_back(name, value);
  }
  return arguments;
}

Value Interpreter::call(const Value& callee, Arguments arguments) {
  if (const Undefined* undefined = callee.undefined()) {
    fail_undefined(*undefined);
  }
  if (callee.object() == nullptr || !callee.object()->is_callable()) {
    throw Failure(fmt::format("'{}' object is not callable", type_name(callee)));
  }
  return callee.object()->call(runtime_, std::move(arguments));
}

}  // namespace stof::render
