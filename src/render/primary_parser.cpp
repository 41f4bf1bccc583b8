#include <algorithm>

#include <fmt/format.h>

#include "render/parser.hpp"

// Literals, tuples and targets, and what follows a value: attributes, items, calls, filters and
// tests.
namespace stof::render {

namespace {

bool is_literal_name(std::string_view name) {
  return name == "true" || name == "True" || name == "false" || name == "False" || name == "none" ||
         name == "None";
}

Value literal_of(std::string_view name) {
  if (name == "none" || name == "None") {
    return Value(None{});
  }
  return Value(name == "true" || name == "True");
}

}  // namespace

Expression ExpressionParser::parse_primary() {
  const std::size_t offset = tokens_.current().offset;
  switch (tokens_.current().kind) {
    case TokenKind::Name: {
      std::string name = tokens_.take().text;
      return is_literal_name(name) ? make(Constant{literal_of(name)}, offset)
                                   : make(NameLoad{.name = std::move(name), .slot = {}}, offset);
    }
    case TokenKind::String: {
      std::string text;
      while (tokens_.current().kind == TokenKind::String) {
        text += tokens_.take().text;
      }
      return make(Constant{Value(std::move(text))}, offset);
    }
    case TokenKind::Integer:
      return make(Constant{Value(tokens_.take().integer)}, offset);
    case TokenKind::Real:
      return make(Constant{Value(tokens_.take().real)}, offset);
    default:
      break;
  }
  if (tokens_.current().is_operator("(")) {
    return parse_parenthesis();
  }
  if (tokens_.current().is_operator("[")) {
    return parse_list();
  }
  if (tokens_.current().is_operator("{")) {
    return parse_dict();
  }
  tokens_.fail(fmt::format("expected an expression, got {}", describe(tokens_.current())));
}

Expression ExpressionParser::parse_parenthesis() {
  const std::size_t offset = tokens_.take().offset;
  Expression value = tokens_.current().is_operator(")") ? tuple_of({}, offset) : parse_tuple();
  tokens_.expect_operator(")");
  return value;
}

Expression ExpressionParser::parse_list() {
  const std::size_t offset = tokens_.take().offset;
  std::vector<Expression> items;
  while (!tokens_.current().is_operator("]")) {
    if (!items.empty()) {
      tokens_.expect_operator(",");
    }
    if (tokens_.current().is_operator("]")) {
      break;
    }
    items.push_back(parse());
  }
  tokens_.expect_operator("]");
  return make(SequenceLiteral{.is_tuple = false, .items = std::move(items)}, offset);
}

Expression ExpressionParser::parse_dict() {
  const std::size_t offset = tokens_.take().offset;
  std::vector<std::pair<Expression, Expression>> items;
  while (!tokens_.current().is_operator("}")) {
    if (!items.empty()) {
      tokens_.expect_operator(",");
    }
    if (tokens_.current().is_operator("}")) {
      break;
    }
    Expression key = parse();
    tokens_.expect_operator(":");
    items.emplace_back(std::move(key), parse());
  }
  tokens_.expect_operator("}");
  return make(DictLiteral{.items = std::move(items)}, offset);
}

bool ExpressionParser::is_tuple_end() const {
  const Token& token = tokens_.current();
  return token.kind == TokenKind::VariableEnd || token.kind == TokenKind::BlockEnd ||
         token.is_operator(")");
}

Expression ExpressionParser::tuple_of(std::vector<Expression> items, std::size_t offset) {
  return make(SequenceLiteral{.is_tuple = true, .items = std::move(items)}, offset);
}

Expression ExpressionParser::parse_tuple(Conditionals conditionals) {
  const std::size_t offset = tokens_.current().offset;
  if (is_tuple_end()) {
    tokens_.fail(fmt::format("expected an expression, got {}", describe(tokens_.current())));
  }
  Expression first = parse(conditionals);
  if (!tokens_.current().is_operator(",")) {
    return first;
  }
  std::vector<Expression> items;
  items.push_back(std::move(first));
  while (tokens_.skip_operator(",") && !is_tuple_end()) {
    items.push_back(parse(conditionals));
  }
  return tuple_of(std::move(items), offset);
}

Expression ExpressionParser::parse_simple_tuple() {
  const std::size_t offset = tokens_.current().offset;
  if (is_tuple_end()) {
    tokens_.fail(fmt::format("expected a name, got {}", describe(tokens_.current())));
  }
  Expression first = parse_primary();
  if (!tokens_.current().is_operator(",")) {
    return first;
  }
  std::vector<Expression> items;
  items.push_back(std::move(first));
  while (tokens_.skip_operator(",") && !is_tuple_end()) {
    items.push_back(parse_primary());
  }
  return tuple_of(std::move(items), offset);
}

Target ExpressionParser::to_target(Expression expression) {
  const std::size_t offset = expression.offset;
  if (auto* name = std::get_if<NameLoad>(&expression.node)) {
    return {.node = NameTarget{.name = std::move(name->name), .slot = {}}, .offset = offset};
  }
  auto* sequence = std::get_if<SequenceLiteral>(&expression.node);
  if (sequence == nullptr || !sequence->is_tuple) {
    tokens_.fail(offset, "only a name or a tuple of names can be assigned to");
  }
  TupleTarget tuple;
  for (Expression& item : sequence->items) {
    tuple.items.push_back(to_target(std::move(item)));
  }
  return {.node = std::move(tuple), .offset = offset};
}

Target ExpressionParser::parse_target(Attributes attributes) {
  const std::size_t offset = tokens_.current().offset;
  if (attributes == Attributes::Allowed && tokens_.ahead().is_operator(".")) {
    std::string name = tokens_.expect(TokenKind::Name, "a name").text;
    tokens_.expect_operator(".");
    std::string attribute = tokens_.expect(TokenKind::Name, "a name").text;
    return {
        .node =
            AttributeTarget{.name = std::move(name), .attribute = std::move(attribute), .slot = {}},
        .offset = offset};
  }
  return to_target(parse_simple_tuple());
}

Token ExpressionParser::parse_name_target() {
  Token token = tokens_.expect(TokenKind::Name, "a name");
  if (is_literal_name(token.text)) {
    tokens_.fail(token.offset, fmt::format("'{}' cannot be assigned to", token.text));
  }
  return token;
}

Expression ExpressionParser::parse_postfix(Expression expression) {
  while (true) {
    if (tokens_.current().is_operator(".")) {
      expression = parse_attribute(std::move(expression));
    } else if (tokens_.current().is_operator("[")) {
      expression = parse_subscript(std::move(expression));
    } else if (tokens_.current().is_operator("(")) {
      expression = parse_call(std::move(expression));
    } else {
      return expression;
    }
  }
}

Expression ExpressionParser::parse_filters_and_tests(Expression expression) {
  while (true) {
    if (tokens_.skip_operator("|")) {
      expression = parse_filter(boxed(std::move(expression)));
    } else if (tokens_.current().is_name("is")) {
      expression = parse_test(std::move(expression));
    } else if (tokens_.current().is_operator("(")) {
      expression = parse_call(std::move(expression));
    } else {
      return expression;
    }
  }
}

Expression ExpressionParser::parse_attribute(Expression object) {
  tokens_.take();
  const Token token = tokens_.take();
  if (token.kind == TokenKind::Name) {
    return make(Attribute{.object = boxed(std::move(object)), .name = token.text}, token.offset);
  }
  if (token.kind != TokenKind::Integer) {
    tokens_.fail(token.offset, fmt::format("expected a name or a number, got {}", describe(token)));
  }
  return make(Subscript{.object = boxed(std::move(object)),
                        .key = boxed(make(Constant{Value(token.integer)}, token.offset))},
              token.offset);
}

Expression ExpressionParser::parse_subscript(Expression object) {
  const std::size_t offset = tokens_.take().offset;
  Slice slice;
  std::vector<Expression> keys;
  bool is_slice = false;
  const auto parse_bound = [this](ExpressionPtr& bound) {
    const Token& token = tokens_.current();
    if (!token.is_operator(":") && !token.is_operator("]") && !token.is_operator(",")) {
      bound = boxed(parse());
    }
  };
  while (!tokens_.current().is_operator("]")) {
    if (!keys.empty() || is_slice) {
      tokens_.expect_operator(",");
    }
    if (is_slice) {
      tokens_.fail(offset, "a slice stands alone between brackets");
    }
    if (!tokens_.current().is_operator(":")) {
      keys.push_back(parse());
    }
    if (tokens_.skip_operator(":")) {
      if (keys.size() > 1) {
        tokens_.fail(offset, "a slice stands alone between brackets");
      }
      is_slice = true;
      parse_bound(slice.stop);
      if (tokens_.skip_operator(":")) {
        parse_bound(slice.step);
      }
    }
  }
  tokens_.expect_operator("]");
  if (is_slice) {
    slice.start = keys.empty() ? nullptr : boxed(std::move(keys[0]));
    slice.object = boxed(std::move(object));
    return make(std::move(slice), offset);
  }
  Expression key = keys.size() == 1 ? std::move(keys[0]) : tuple_of(std::move(keys), offset);
  return make(Subscript{.object = boxed(std::move(object)), .key = boxed(std::move(key))}, offset);
}

Expression ExpressionParser::parse_call(Expression callee) {
  const std::size_t offset = tokens_.current().offset;
  CallArguments arguments = parse_arguments();
  return make(Call{.callee = boxed(std::move(callee)), .arguments = std::move(arguments)}, offset);
}

CallArguments ExpressionParser::parse_arguments() {
  const std::size_t offset = tokens_.current().offset;
  tokens_.expect_operator("(");
  CallArguments arguments;
  bool is_first = true;
  while (!tokens_.current().is_operator(")")) {
    if (!is_first) {
      tokens_.expect_operator(",");
      if (tokens_.current().is_operator(")")) {
        break;
      }
    }
    parse_argument(arguments, offset);
    is_first = false;
  }
  tokens_.expect_operator(")");
  return arguments;
}

void ExpressionParser::parse_argument(CallArguments& arguments, std::size_t offset) {
  const auto require = [&](bool is_right) {
    if (!is_right) {
      tokens_.fail(offset, "arguments come in this order: positional, named, *list, **dict");
    }
  };
  if (tokens_.skip_operator("*")) {
    require(arguments.star == nullptr && arguments.double_star == nullptr);
    arguments.star = boxed(parse());
  } else if (tokens_.skip_operator("**")) {
    require(arguments.double_star == nullptr);
    arguments.double_star = boxed(parse());
  } else if (tokens_.current().kind == TokenKind::Name && tokens_.ahead().is_operator("=")) {
    require(arguments.double_star == nullptr);
    const Token name = tokens_.take();
    tokens_.take();
    if (std::ranges::any_of(arguments.named,
                            [&](const auto& named) { return named.first == name.text; })) {
      tokens_.fail(name.offset, fmt::format("the argument '{}' is given twice", name.text));
    }
    arguments.named.emplace_back(name.text, parse());
  } else {
    require(arguments.star == nullptr && arguments.double_star == nullptr &&
            arguments.named.empty());
    arguments.positional.push_back(parse());
  }
}

std::string ExpressionParser::parse_dotted_name() {
  std::string name = tokens_.expect(TokenKind::Name, "a name").text;
  while (tokens_.skip_operator(".")) {
    name += '.' + tokens_.expect(TokenKind::Name, "a name").text;
  }
  return name;
}

Expression ExpressionParser::parse_filters() {
  Expression expression = parse_filter(nullptr);
  while (tokens_.skip_operator("|")) {
    expression = parse_filter(boxed(std::move(expression)));
  }
  return expression;
}

Expression ExpressionParser::parse_filter(ExpressionPtr input) {
  const std::size_t offset = tokens_.current().offset;
  std::string name = parse_dotted_name();
  const Builtin* builtin = find_filter(name);
  CallArguments arguments =
      tokens_.current().is_operator("(") ? parse_arguments() : CallArguments{};
  return make(Application{.is_filter = true,
                          .name = std::move(name),
                          .builtin = builtin,
                          .input = std::move(input),
                          .arguments = std::move(arguments)},
              offset);
}

Expression ExpressionParser::parse_test(Expression input) {
  tokens_.take();
  const bool is_negated = tokens_.skip_name("not");
  const std::size_t offset = tokens_.current().offset;
  std::string name = parse_dotted_name();
  const Builtin* builtin = find_test(name);
  CallArguments arguments = parse_test_arguments();
  Expression test = make(Application{.is_filter = false,
                                     .name = std::move(name),
                                     .builtin = builtin,
                                     .input = boxed(std::move(input)),
                                     .arguments = std::move(arguments)},
                         offset);
  if (!is_negated) {
    return test;
  }
  return make(Unary{.op = UnaryOperator::Not, .operand = boxed(std::move(test))}, offset);
}

// Arguments between parentheses, or one value without: `x is divisibleby 3`.
CallArguments ExpressionParser::parse_test_arguments() {
  const Token& token = tokens_.current();
  if (token.is_operator("(")) {
    return parse_arguments();
  }
  const bool is_value = token.kind == TokenKind::Name || token.kind == TokenKind::String ||
                        token.kind == TokenKind::Integer || token.kind == TokenKind::Real ||
                        token.is_operator("[") || token.is_operator("{");
  CallArguments arguments;
  if (!is_value || token.is_name("else") || token.is_name("or") || token.is_name("and")) {
    return arguments;
  }
  if (token.is_name("is")) {
    tokens_.fail("tests cannot be chained with is");
  }
  arguments.positional.push_back(parse_postfix(parse_primary()));
  return arguments;
}

}  // namespace stof::render
