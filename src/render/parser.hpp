#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "render/ast.hpp"
#include "render/lexer.hpp"
#include "render/parsed_template.hpp"

namespace stof::render {

inline ExpressionPtr boxed(Expression expression) {
  return std::make_unique<Expression>(std::move(expression));
}

inline constexpr int kMaxExpressionDepth = 150;
inline constexpr int kMaxStatementDepth = 60;

// The tokens of a template, read one after another.
class TokenStream {
 public:
  explicit TokenStream(const Source& source) : source_(source), tokens_(tokenize(source)) {}

  const Token& current() const { return tokens_[position_]; }
  const Token& ahead() const { return tokens_[std::min(position_ + 1, tokens_.size() - 1)]; }
  Token take();
  bool skip_operator(std::string_view op);
  bool skip_name(std::string_view name);
  Token expect(TokenKind kind, std::string_view what);
  void expect_operator(std::string_view op);
  void expect_name(std::string_view name);

  [[noreturn]] void fail(std::size_t offset, const std::string& message) const;
  [[noreturn]] void fail(const std::string& message) const { fail(current().offset, message); }
  const Source& source() const { return source_; }

 private:
  const Source& source_;
  std::vector<Token> tokens_;
  std::size_t position_ = 0;
};

class ExpressionParser {
 public:
  explicit ExpressionParser(TokenStream& tokens) : tokens_(tokens) {}

  enum class Conditionals { Allowed, Refused };
  Expression parse(Conditionals conditionals = Conditionals::Allowed);
  // One expression, or a tuple of those between commas.
  Expression parse_tuple(Conditionals conditionals = Conditionals::Allowed);
  // The filters of a filter block, of a set block: applied to nothing yet.
  Expression parse_filters();

  // A name, an attribute of a name (where allowed) or a tuple of targets.
  enum class Attributes { Allowed, Refused };
  Target parse_target(Attributes attributes);
  // A name that may be assigned to.
  Token parse_name_target();

 private:
  class Level;

  Expression parse_conditional();
  Expression parse_or();
  Expression parse_and();
  Expression parse_not();
  Expression parse_comparison();
  Expression parse_sum();
  Expression parse_concatenation();
  Expression parse_product();
  Expression parse_power();
  enum class Filters { Allowed, Refused };
  Expression parse_unary(Filters filters);
  Expression parse_primary();
  Expression parse_parenthesis();
  Expression parse_list();
  Expression parse_dict();
  Expression parse_postfix(Expression expression);
  Expression parse_filters_and_tests(Expression expression);
  Expression parse_attribute(Expression object);
  Expression parse_subscript(Expression object);
  Expression parse_call(Expression callee);
  Expression parse_filter(ExpressionPtr input);
  Expression parse_test(Expression input);
  CallArguments parse_test_arguments();
  CallArguments parse_arguments();
  void parse_argument(CallArguments& arguments, std::size_t offset);
  std::string parse_dotted_name();
  Expression parse_simple_tuple();
  Expression tuple_of(std::vector<Expression> items, std::size_t offset);
  bool is_tuple_end() const;
  Target to_target(Expression expression);

  Expression make(Expression::Node node, std::size_t offset) const;

  TokenStream& tokens_;
  int level_ = 0;
};

}  // namespace stof::render
