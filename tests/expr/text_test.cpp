#include <string>

#include <doctest/doctest.h>

#include "expr/node.hpp"
#include "random_expression.hpp"
#include "stof/error.hpp"
#include "stof/expr.hpp"

using stof::Expr;
using stof::ExpressionError;
using stof::ExprNames;
using stof::parse_expression;
using stof::ScalarType;
using stof::test::RandomExpression;

namespace {

std::string reprinted(std::string_view text) {
  return parse_expression(text, RandomExpression::names()).text();
}

struct Failure {
  int column = 0;
  std::string message;
};

Failure failure(std::string_view text, const ExprNames& names = RandomExpression::names()) {
  try {
    parse_expression(text, names);
  } catch (const ExpressionError& error) {
    return {error.column(), error.what()};
  }
  return {};
}

}  // namespace

TEST_CASE("an expression that is built in C++ reads like its source") {
  const Expr q = Expr::scalar("q_pos");
  const Expr k = Expr::scalar("k_pos");
  CHECK((q >= k && q - k < 1024).text() == "q_pos >= k_pos && q_pos - k_pos < 1024");
  CHECK((select(q > k, q, -k) * 2).text() == "(q_pos > k_pos ? q_pos : -k_pos) * 2");
  CHECK(keep(1, q, k, 0.1).text() == "keep(1, q_pos, k_pos, 0.1)");
  CHECK(RandomExpression::bias()(q, k + 1).text() == "bias[q_pos, k_pos + 1]");
  CHECK((Expr::scalar("score", ScalarType::Float) * 2 + q).text() == "score * 2.0 + float(q_pos)");
}

TEST_CASE("parentheses stand where precedence or associativity needs them, and nowhere else") {
  for (const char* text : {"q_pos - (k_pos - 1)",
                           "q_pos - k_pos - 1",
                           "(q_pos + k_pos) * 2",
                           "q_pos + k_pos * 2",
                           "-(q_pos + 1)",
                           "-q_pos + 1",
                           "-(-q_pos)",
                           "-(5)",
                           "-5",
                           "- 5 + 0",
                           "~-q_pos",
                           "!flag",
                           "!(flag && flag)",
                           "q_pos & (k_pos == 1 ? 1 : 2)",
                           "(q_pos | 1) == 1",
                           "q_pos | 1 + 1",
                           "flag ? 1 : flag ? 2 : 3",
                           "(flag ? flag : flag) ? 1 : 2",
                           "flag || flag && flag",
                           "(flag || flag) && flag",
                           "(q_pos << 2) >>> k_pos",
                           "q_pos << (2 >>> k_pos)",
                           "offsets[q_pos ? 1 : 2]"}) {
    std::string_view given(text);
    if (given == "- 5 + 0") {
      CHECK(reprinted(given) == "-5 + 0");
    } else if (given == "(q_pos << 2) >>> k_pos") {
      CHECK(reprinted(given) == "q_pos << 2 >>> k_pos");
    } else if (given == "offsets[q_pos ? 1 : 2]") {
      CHECK(failure(given).message ==
            "expression, column 15: '?:' takes a truth value, then two numbers or two truth "
            "values, not int, int and int");
    } else {
      CHECK(reprinted(given) == given);
    }
  }
}

TEST_CASE("literals keep their value and their type") {
  CHECK(reprinted("0xff") == "255");
  CHECK(reprinted("0xffffffffffffffff") == "-1");
  CHECK(reprinted("-9223372036854775808") == "-9223372036854775808");
  CHECK(reprinted("1e3") == "1000.0");
  CHECK(reprinted("1.5e-3") == "0.0015");
  CHECK(reprinted("1e300") == "1e+300");
  CHECK(reprinted("0.1") == "0.1");
  CHECK(reprinted("-0.0") == "-0.0");
  CHECK(reprinted("-inf") == "-inf");
  CHECK(reprinted("nan") == "nan");
  CHECK(reprinted("true") == "true");
  CHECK(reprinted("float(3)") == "3.0");
}

TEST_CASE("truth values have one text for & and &&") {
  CHECK(reprinted("flag & flag | ~flag ^ flag") == "flag && flag || !flag != flag");
}

TEST_CASE("printing and parsing a random expression gives the very same tree") {
  RandomExpression random(1);
  const ExprNames names = RandomExpression::names();
  for (int i = 0; i < 5000; ++i) {
    const Expr expr = random.any(random.below(7));
    const std::string text = expr.text();
    const Expr again = parse_expression(text, names);
    REQUIRE_MESSAGE(stof::expr::same(expr, again), text, " became ", again.text());
    REQUIRE(again.text() == text);
    // What the expression says of its names is enough to read it.
    REQUIRE(stof::expr::same(expr, parse_expression(text, stof::expr::names_used(expr))));
  }
}

TEST_CASE("no parenthesis can be left out") {
  RandomExpression random(2);
  const ExprNames names = RandomExpression::names();
  int tried = 0;
  for (int i = 0; i < 1000; ++i) {
    const Expr expr = random.any(3);
    const std::string text = expr.text();
    for (std::size_t open = 0; open < text.size(); ++open) {
      const bool is_call = open > 0 && (std::isalnum(text[open - 1]) != 0 || text[open - 1] == '_');
      if (text[open] != '(' || is_call) {
        continue;
      }
      std::size_t close = open;
      for (int depth = 0; close < text.size(); ++close) {
        depth += text[close] == '(' ? 1 : text[close] == ')' ? -1 : 0;
        if (depth == 0) {
          break;
        }
      }
      std::string without = text;
      without[open] = ' ';
      without[close] = ' ';
      bool is_other = true;
      try {
        is_other = !stof::expr::same(expr, parse_expression(without, names));
      } catch (const ExpressionError&) {
      }
      // The one parenthesis for the reader's sake: -(-x).
      const bool is_double_minus = open > 0 && text[open - 1] == '-' && text[open + 1] == '-';
      REQUIRE_MESSAGE((is_other || is_double_minus), text);
      ++tried;
    }
  }
  CHECK(tried > 500);
}

TEST_CASE("syntax errors say where, what was expected and what was found") {
  CHECK(failure("(q_pos + 1 < 3").message == "expression, column 15: expected ')' before the end");
  CHECK(failure("max(q_pos < 3").message == "expression, column 14: expected ')' before the end");
  CHECK(failure("(q_pos ] 3").message == "expression, column 8: expected ')' before ']'");
  CHECK(failure("(q_pos ] 3").column == 8);
  CHECK(failure("q_pos + ").message == "expression, column 9: expected an operand before the end");
  CHECK(failure("").message == "expression, column 1: expected an operand before the end");
  CHECK(failure("q_pos + * 2").message == "expression, column 9: expected an operand before '*'");
  CHECK(failure("q_pos k_pos").message ==
        "expression, column 7: expected an operator or the end before 'k_pos'");
  CHECK(failure("flag ? 1").message == "expression, column 9: expected ':' before the end");
  CHECK(failure("q_pos @ 2").message == "expression, column 7: unexpected '@'");
  CHECK(failure("q_pos = 2").message == "expression, column 7: unexpected '='");
  CHECK(failure("q_pos + \x80").message == "expression, column 9: unexpected byte 0x80");
  CHECK(failure(std::string_view("1\0", 2)).message ==
        "expression, column 2: unexpected byte 0x00");
  CHECK(failure("offsets").message == "expression, column 1: expected '[' after offsets");
}

TEST_CASE("numbers that are none, or too large, are errors") {
  CHECK(failure("9223372036854775808").message ==
        "expression, column 1: 9223372036854775808 does not fit in 64 bits");
  CHECK(failure("-9223372036854775809").message ==
        "expression, column 2: 9223372036854775809 does not fit in 64 bits");
  CHECK(failure("99999999999999999999").message ==
        "expression, column 1: 99999999999999999999 does not fit in 64 bits");
  CHECK(failure("0x10000000000000000").message ==
        "expression, column 1: 0x10000000000000000 does not fit in 64 bits");
  CHECK(failure("1e999").message == "expression, column 1: 1e999 does not fit in 64 bits");
  CHECK(failure("0x").message == "expression, column 1: 0x is no hexadecimal number");
  CHECK(failure("0xfg").message == "expression, column 1: 0xfg is no hexadecimal number");
  CHECK(failure("12abc").message == "expression, column 3: unexpected 'a' in a number");
  CHECK(failure("1.5f").message == "expression, column 4: unexpected 'f' in a number");
  CHECK(failure("1.").message == "expression, column 2: unexpected '.' in a number");
  CHECK(failure("012").message == "expression, column 1: a number does not begin with 0");
}

TEST_CASE("an unknown name is named, with the nearest that is known") {
  CHECK(failure("1 + q_poss").message ==
        "expression, column 5: q_poss is not defined; did you mean q_pos?");
  CHECK(failure("dim.hiden").message ==
        "expression, column 1: dim.hiden is not defined; did you mean dim.hidden?");
  CHECK(failure("elephant").message ==
        "expression, column 1: elephant is not defined; known are attr.epsilon, dim.hidden, flag, "
        "k_pos, q_pos, score");
  CHECK(failure("x", {}).message == "expression, column 1: x is not defined; no names are");
  CHECK(failure("mox(1, 2)").message ==
        "expression, column 1: mox is no function; did you mean max?");
  CHECK(failure("offset[1]").message ==
        "expression, column 1: offset is no table or capture; did you mean offsets?");
}

TEST_CASE("types that do not fit are errors at their operator") {
  CHECK(failure("1 + (q_pos + flag)").message ==
        "expression, column 12: '+' takes two numbers, not int and bool");
  CHECK(failure("q_pos % 2.0").message ==
        "expression, column 7: '%' takes two integers, not int and float");
  CHECK(failure("!q_pos").message == "expression, column 1: '!' takes one truth value, not int");
  CHECK(failure("min(1)").message == "expression, column 1: 'min' takes 2 operands, not 1");
  CHECK(failure("lengths[1, 2]").message ==
        "expression, column 1: capture lengths takes 1 indices, not 2");
  CHECK(failure("offsets[1, 2]").message ==
        "expression, column 1: table offsets takes one index, not 2");
  CHECK(failure("keep(1, 2, 3, score)").message ==
        "expression, column 1: 'keep' takes three integers and a literal fraction, not int, int, "
        "int and float");
  CHECK(failure("keep(1, 2, 3, 1.5)").message ==
        "expression, column 1: the fraction 1.5 of 'keep' is not between 0 and 1");
}

TEST_CASE(
    "what is nested too deep is an error, and what is just not is read, printed and dropped") {
  const auto repeated = [](std::string_view part, int count) {
    std::string text;
    for (int i = 0; i < count; ++i) {
      text += part;
    }
    return text;
  };
  constexpr int kDepth = stof::expr::kMaxDepth;
  for (const char* prefix : {"-(", "!(", "1 - (", "true ? 1 : (", "abs("}) {
    const bool is_truth = std::string_view(prefix) == "!(";
    const std::string leaf = is_truth ? "flag" : "q_pos";
    const std::string fits = repeated(prefix, kDepth - 1) + leaf + repeated(")", kDepth - 1);
    const std::string text = parse_expression(fits, RandomExpression::names()).text();
    CHECK(reprinted(text) == text);
    const std::string deeper = repeated(prefix, kDepth) + leaf + repeated(")", kDepth);
    CHECK(failure(deeper).message.ends_with("more than 512 operations inside each other"));
  }
  for (const char* part : {"(", "-", "!", "~(", "offsets[", "max(1, ", "true ? 1 : ", "1 ? "}) {
    CHECK(failure(repeated(part, 1000000)).message.starts_with("expression, column"));
  }
  CHECK(failure("q_pos" + repeated(" + 1", 600)).message ==
        "expression, column 2051: more than 512 operations inside each other");
  CHECK(reprinted(repeated("(", 1000) + "q_pos" + repeated(")", 1000)) == "q_pos");
}
