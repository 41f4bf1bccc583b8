// Precedence climbing over the operators of operation.cpp. Types are checked by make(), whose
// complaint gets the column of the operator.
#include <algorithm>
#include <limits>
#include <vector>

#include <fmt/format.h>

#include "base/text.hpp"
#include "expr/lexer.hpp"
#include "expr/node.hpp"
#include "stof/error.hpp"

namespace stof {

namespace {

using expr::fail_at;
using expr::info;
using expr::Op;
using expr::shortened;
using expr::Token;
using expr::TokenKind;

// Each operation prints as at most a prefix and a parenthesis.
constexpr int kMaxNesting = 2 * expr::kMaxDepth + 2;

bool is_symbol(const Token& token, std::string_view text) {
  return token.kind == TokenKind::Symbol && token.text == text;
}

std::string found(const Token& token) {
  return token.kind == TokenKind::End ? "the end" : fmt::format("'{}'", shortened(token.text));
}

// The operation in a range of Op whose text is that of the token.
std::optional<Op> find_op(Op first, Op last, std::string_view text) {
  for (int i = static_cast<int>(first); i <= static_cast<int>(last); ++i) {
    const Op op = static_cast<Op>(i);
    if (info(op).text == text) {
      return op;
    }
  }
  return std::nullopt;
}

// "; did you mean q_pos?", or what there is to choose from.
std::string suggestion(std::string_view name, const std::vector<std::string>& known) {
  const std::string_view nearest = base::nearest(name, known);
  if (!nearest.empty()) {
    return fmt::format("; did you mean {}?", nearest);
  }
  if (known.empty()) {
    return "; no names are";
  }
  const std::size_t shown = std::min<std::size_t>(known.size(), 12);
  return fmt::format("; known are {}{}", fmt::join(known.begin(), known.begin() + shown, ", "),
                     shown < known.size() ? ", ..." : "");
}

template <typename... Maps>
std::vector<std::string> keys(const Maps&... maps) {
  std::vector<std::string> result;
  const auto add = [&](const auto& map) {
    for (const auto& entry : map) {
      result.push_back(entry.first);
    }
  };
  (add(maps), ...);
  return result;
}

class Parser {
 public:
  Parser(std::string_view text, const ExprNames& names) : lexer_(text), names_(names) { advance(); }

  Expr parse() {
    Expr result = conditional();
    if (token_.kind != TokenKind::End) {
      fail_at(token_.column, "expected an operator or the end before " + found(token_));
    }
    return result;
  }

 private:
  // Counts how deep the recursion is, for as long as it lives.
  class Nesting {
   public:
    explicit Nesting(Parser& parser) : parser_(parser) {
      if (++parser_.nesting_ > kMaxNesting) {
        fail_at(parser_.token_.column,
                fmt::format("more than {} operations inside each other", expr::kMaxDepth));
      }
    }
    ~Nesting() { --parser_.nesting_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;

   private:
    Parser& parser_;
  };

  Expr conditional() {
    const Nesting nesting(*this);
    Expr condition = infix(expr::kTernaryPrecedence + 1);
    if (!is_symbol(token_, "?")) {
      return condition;
    }
    const int column = advance();
    Expr a = conditional();
    expect(":");
    Expr b = conditional();
    return build(column, Op::Select, {std::move(condition), std::move(a), std::move(b)});
  }

  Expr infix(int least_precedence) {
    Expr left = prefix();
    for (;;) {
      const std::optional<Op> op = infix_op();
      if (!op || info(*op).precedence < least_precedence) {
        return left;
      }
      const int column = advance();
      left = build(column, *op, {left, infix(info(*op).precedence + 1)});
    }
  }

  Expr prefix() {
    if (token_.kind != TokenKind::Symbol) {
      return primary();
    }
    const std::optional<Op> op = find_op(Op::Negate, Op::BitNot, token_.text);
    if (!op) {
      return primary();
    }
    const Nesting nesting(*this);
    const int column = advance();
    if (*op == Op::Negate && is_number()) {
      return number(true);
    }
    return build(column, *op, {prefix()});
  }

  Expr primary() {
    if (is_number()) {
      return number(false);
    }
    if (token_.kind == TokenKind::Name) {
      return named();
    }
    if (!is_symbol(token_, "(")) {
      fail_at(token_.column, "expected an operand before " + found(token_));
    }
    advance();
    Expr inner = conditional();
    expect(")");
    return inner;
  }

  Expr named() {
    const Token name = token_;
    advance();
    if (is_symbol(token_, "(")) {
      return call(name);
    }
    if (is_symbol(token_, "[")) {
      return indexed(name);
    }
    if (name.text == "true" || name.text == "false") {
      return Expr::truth(name.text == "true");
    }
    const auto scalar = names_.scalars.find(name.text);
    if (scalar == names_.scalars.end()) {
      fail_scalar(name);
    }
    return Expr::scalar(name.text, scalar->second);
  }

  Expr call(const Token& name) {
    const std::optional<Op> op = find_op(Op::Min, Op::Keep, name.text);
    if (!op) {
      fail_function(name);
    }
    return build(name.column, *op, list(")"));
  }

  Expr indexed(const Token& name) {
    const auto table = names_.tables.find(name.text);
    const auto capture = names_.captures.find(name.text);
    if (table == names_.tables.end() && capture == names_.captures.end()) {
      fail_at(name.column,
              fmt::format("{} is no table or capture{}", shortened(name.text),
                          suggestion(name.text, keys(names_.tables, names_.captures))));
    }
    std::vector<Expr> indices = list("]");
    return with_column(name.column, [&] {
      if (table == names_.tables.end()) {
        return capture->second.at(std::move(indices));
      }
      if (indices.size() != 1) {
        fail_at(name.column, fmt::format("table {} takes one index, not {}", shortened(name.text),
                                         indices.size()));
      }
      return table->second[indices[0]];
    });
  }

  // Operands up to `close`, from the bracket before them.
  std::vector<Expr> list(std::string_view close) {
    std::vector<Expr> operands;
    do {
      advance();
      operands.push_back(conditional());
    } while (is_symbol(token_, ",") && operands.size() < kMaxOperands);
    expect(close);
    return operands;
  }

  bool is_number() const {
    return token_.kind == TokenKind::Integer || token_.kind == TokenKind::Float ||
           (token_.kind == TokenKind::Name && (token_.text == "inf" || token_.text == "nan"));
  }

  Expr number(bool is_negative) {
    const Token token = token_;
    advance();
    if (token.kind == TokenKind::Integer) {
      constexpr auto kLargest =
          static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
      if (!token.is_hexadecimal && token.magnitude > kLargest + (is_negative ? 1 : 0)) {
        fail_at(token.column, fmt::format("{} does not fit in 64 bits", shortened(token.text)));
      }
      return Expr::integer(
          static_cast<std::int64_t>(is_negative ? 0 - token.magnitude : token.magnitude));
    }
    double value = token.number;
    if (token.kind == TokenKind::Name) {
      value = token.text == "inf" ? std::numeric_limits<double>::infinity()
                                  : std::numeric_limits<double>::quiet_NaN();
    }
    return {is_negative ? -value : value};
  }

  std::optional<Op> infix_op() const {
    if (token_.kind != TokenKind::Symbol) {
      return std::nullopt;
    }
    return find_op(Op::Add, Op::ShiftRightLogical, token_.text);
  }

  static Expr build(int column, Op op, std::vector<Expr> operands) {
    return with_column(column, [&] { return expr::make(op, std::move(operands)); });
  }

  template <typename Build>
  static Expr with_column(int column, Build build_it) {
    try {
      return build_it();
    } catch (const ExpressionError& error) {
      if (error.column() > 0) {
        throw;
      }
      constexpr std::string_view kPrefix = "expression: ";
      fail_at(column, std::string(error.what()).substr(kPrefix.size()));
    }
  }

  [[noreturn]] void fail_scalar(const Token& name) const {
    if (names_.tables.contains(name.text) || names_.captures.contains(name.text)) {
      fail_at(name.column, fmt::format("expected '[' after {}", shortened(name.text)));
    }
    fail_at(name.column, fmt::format("{} is not defined{}", shortened(name.text),
                                     suggestion(name.text, keys(names_.scalars))));
  }

  [[noreturn]] static void fail_function(const Token& name) {
    std::vector<std::string> known;
    for (int i = static_cast<int>(Op::Min); i <= static_cast<int>(Op::Keep); ++i) {
      known.emplace_back(info(static_cast<Op>(i)).text);
    }
    fail_at(name.column,
            fmt::format("{} is no function{}", shortened(name.text), suggestion(name.text, known)));
  }

  void expect(std::string_view symbol) {
    if (!is_symbol(token_, symbol)) {
      fail_at(token_.column, fmt::format("expected '{}' before {}", symbol, found(token_)));
    }
    advance();
  }

  // Goes to the next token; the column of the one before.
  int advance() {
    const int column = token_.column;
    token_ = lexer_.next();
    return column;
  }

  static constexpr std::size_t kMaxOperands = 8;

  expr::Lexer lexer_;
  const ExprNames& names_;
  Token token_;
  int nesting_ = 0;
};

}  // namespace

Expr parse_expression(std::string_view text, const ExprNames& names) {
  constexpr std::size_t kMaxText = 16 << 20;
  if (text.size() > kMaxText) {
    throw ExpressionError(
        0, fmt::format("expression: a text of {} bytes, above {}", text.size(), kMaxText));
  }
  return Parser(text, names).parse();
}

}  // namespace stof
