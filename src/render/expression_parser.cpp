#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>

#include "render/parser.hpp"

// Expressions by recursive descent, one function a level of precedence, loosest first.
namespace stof::render {

namespace {

int depth_of(const ExpressionPtr& expression) {
  return expression == nullptr ? 0 : expression->depth;
}
int depth_of(const std::vector<Expression>& expressions) {
  int depth = 0;
  for (const Expression& expression : expressions) {
    depth = std::max(depth, expression.depth);
  }
  return depth;
}
int depth_of(const CallArguments& arguments) {
  int depth = std::max(
      {depth_of(arguments.positional), depth_of(arguments.star), depth_of(arguments.double_star)});
  for (const auto& [name, value] : arguments.named) {
    depth = std::max(depth, value.depth);
  }
  return depth;
}

struct DepthBelow {
  int operator()(const Constant&) const { return 0; }
  int operator()(const NameLoad&) const { return 0; }
  int operator()(const SequenceLiteral& node) const { return depth_of(node.items); }
  int operator()(const DictLiteral& node) const {
    int depth = 0;
    for (const auto& [key, value] : node.items) {
      depth = std::max({depth, key.depth, value.depth});
    }
    return depth;
  }
  int operator()(const Unary& node) const { return depth_of(node.operand); }
  int operator()(const Binary& node) const {
    return std::max(depth_of(node.left), depth_of(node.right));
  }
  int operator()(const Logical& node) const {
    return std::max(depth_of(node.left), depth_of(node.right));
  }
  int operator()(const Comparison& node) const {
    int depth = depth_of(node.first);
    for (const auto& [op, operand] : node.rest) {
      depth = std::max(depth, operand.depth);
    }
    return depth;
  }
  int operator()(const Concatenation& node) const { return depth_of(node.parts); }
  int operator()(const Conditional& node) const {
    return std::max({depth_of(node.test), depth_of(node.if_true), depth_of(node.if_false)});
  }
  int operator()(const Attribute& node) const { return depth_of(node.object); }
  int operator()(const Subscript& node) const {
    return std::max(depth_of(node.object), depth_of(node.key));
  }
  int operator()(const Slice& node) const {
    return std::max(
        {depth_of(node.object), depth_of(node.start), depth_of(node.stop), depth_of(node.step)});
  }
  int operator()(const Call& node) const {
    return std::max(depth_of(node.callee), depth_of(node.arguments));
  }
  int operator()(const Application& node) const {
    return std::max(depth_of(node.input), depth_of(node.arguments));
  }
};

struct OperatorName {
  std::string_view text;
  BinaryOperator op;
};
constexpr std::array<OperatorName, 2> kSums = {
    {{"+", BinaryOperator::Add}, {"-", BinaryOperator::Subtract}}};
constexpr std::array<OperatorName, 4> kProducts = {{{"*", BinaryOperator::Multiply},
                                                    {"/", BinaryOperator::Divide},
                                                    {"//", BinaryOperator::FloorDivide},
                                                    {"%", BinaryOperator::Modulo}}};
constexpr std::array<OperatorName, 1> kPowers = {{{"**", BinaryOperator::Power}}};

std::optional<BinaryOperator> skip_any(TokenStream& tokens, std::span<const OperatorName> names) {
  for (const auto& [text, op] : names) {
    if (tokens.skip_operator(text)) {
      return op;
    }
  }
  return std::nullopt;
}

std::optional<CompareOperator> skip_comparison(TokenStream& tokens) {
  using enum CompareOperator;
  constexpr std::pair<std::string_view, CompareOperator> kNames[] = {
      {"==", Equal},     {"!=", NotEqual}, {"<", Less},
      {"<=", LessEqual}, {">", Greater},   {">=", GreaterEqual}};
  for (const auto& [text, op] : kNames) {
    if (tokens.skip_operator(text)) {
      return op;
    }
  }
  if (tokens.skip_name("in")) {
    return In;
  }
  if (tokens.current().is_name("not") && tokens.ahead().is_name("in")) {
    tokens.take();
    tokens.take();
    return NotIn;
  }
  return std::nullopt;
}

}  // namespace

// Bounds the recursion of the parser itself.
class ExpressionParser::Level {
 public:
  explicit Level(ExpressionParser& parser) : parser_(parser) {
    if (++parser_.level_ > kMaxExpressionDepth) {
      parser_.tokens_.fail(
          fmt::format("an expression nested deeper than {} levels", kMaxExpressionDepth));
    }
  }
  ~Level() { --parser_.level_; }
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;

 private:
  ExpressionParser& parser_;
};

Expression ExpressionParser::make(Expression::Node node, std::size_t offset) const {
  const int depth = std::visit(DepthBelow(), node) + 1;
  if (depth > kMaxExpressionDepth) {
    tokens_.fail(offset,
                 fmt::format("an expression nested deeper than {} levels", kMaxExpressionDepth));
  }
  return {.node = std::move(node), .offset = offset, .depth = depth};
}

Expression ExpressionParser::parse(Conditionals conditionals) {
  return conditionals == Conditionals::Allowed ? parse_conditional() : parse_or();
}

Expression ExpressionParser::parse_conditional() {
  const Level level(*this);
  Expression value = parse_or();
  while (tokens_.current().is_name("if")) {
    const std::size_t offset = tokens_.take().offset;
    Expression test = parse_or();
    ExpressionPtr otherwise = tokens_.skip_name("else") ? boxed(parse_conditional()) : nullptr;
    value = make(Conditional{.test = boxed(std::move(test)),
                             .if_true = boxed(std::move(value)),
                             .if_false = std::move(otherwise)},
                 offset);
  }
  return value;
}

Expression ExpressionParser::parse_or() {
  Expression left = parse_and();
  while (tokens_.current().is_name("or")) {
    const std::size_t offset = tokens_.take().offset;
    left =
        make(Logical{.is_and = false, .left = boxed(std::move(left)), .right = boxed(parse_and())},
             offset);
  }
  return left;
}

Expression ExpressionParser::parse_and() {
  Expression left = parse_not();
  while (tokens_.current().is_name("and")) {
    const std::size_t offset = tokens_.take().offset;
    left =
        make(Logical{.is_and = true, .left = boxed(std::move(left)), .right = boxed(parse_not())},
             offset);
  }
  return left;
}

Expression ExpressionParser::parse_not() {
  if (!tokens_.current().is_name("not")) {
    return parse_comparison();
  }
  const Level level(*this);
  const std::size_t offset = tokens_.take().offset;
  return make(Unary{.op = UnaryOperator::Not, .operand = boxed(parse_not())}, offset);
}

Expression ExpressionParser::parse_comparison() {
  const std::size_t offset = tokens_.current().offset;
  Expression first = parse_sum();
  std::vector<std::pair<CompareOperator, Expression>> rest;
  while (const auto op = skip_comparison(tokens_)) {
    rest.emplace_back(*op, parse_sum());
  }
  if (rest.empty()) {
    return first;
  }
  return make(Comparison{.first = boxed(std::move(first)), .rest = std::move(rest)}, offset);
}

Expression ExpressionParser::parse_sum() {
  Expression left = parse_concatenation();
  for (std::size_t offset = tokens_.current().offset; const auto op = skip_any(tokens_, kSums);
       offset = tokens_.current().offset) {
    left = make(
        Binary{.op = *op, .left = boxed(std::move(left)), .right = boxed(parse_concatenation())},
        offset);
  }
  return left;
}

Expression ExpressionParser::parse_concatenation() {
  const std::size_t offset = tokens_.current().offset;
  std::vector<Expression> parts;
  do {
    parts.push_back(parse_product());
  } while (tokens_.skip_operator("~"));
  if (parts.size() == 1) {
    return std::move(parts.front());
  }
  return make(Concatenation{.parts = std::move(parts)}, offset);
}

Expression ExpressionParser::parse_product() {
  Expression left = parse_power();
  for (std::size_t offset = tokens_.current().offset; const auto op = skip_any(tokens_, kProducts);
       offset = tokens_.current().offset) {
    left = make(Binary{.op = *op, .left = boxed(std::move(left)), .right = boxed(parse_power())},
                offset);
  }
  return left;
}

Expression ExpressionParser::parse_power() {
  Expression left = parse_unary(Filters::Allowed);
  for (std::size_t offset = tokens_.current().offset; const auto op = skip_any(tokens_, kPowers);
       offset = tokens_.current().offset) {
    left = make(Binary{.op = *op,
                       .left = boxed(std::move(left)),
                       .right = boxed(parse_unary(Filters::Allowed))},
                offset);
  }
  return left;
}

Expression ExpressionParser::parse_unary(Filters filters) {
  const Level level(*this);
  const std::size_t offset = tokens_.current().offset;
  std::optional<Expression> expression;
  if (tokens_.skip_operator("-")) {
    expression =
        make(Unary{.op = UnaryOperator::Negate, .operand = boxed(parse_unary(Filters::Refused))},
             offset);
  } else if (tokens_.skip_operator("+")) {
    expression = make(
        Unary{.op = UnaryOperator::Plus, .operand = boxed(parse_unary(Filters::Refused))}, offset);
  } else {
    expression = parse_primary();
  }
  Expression value = parse_postfix(std::move(*expression));
  return filters == Filters::Allowed ? parse_filters_and_tests(std::move(value)) : std::move(value);
}

}  // namespace stof::render
