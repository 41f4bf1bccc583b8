#include "render/lexer.hpp"

#include <string>
#include <vector>

#include <doctest/doctest.h>

using stof::render::Source;
using stof::render::Token;
using stof::render::tokenize;
using stof::render::TokenKind;

namespace {

std::vector<Token> tokens_of(const std::string& text) {
  return tokenize(Source("t", text));
}

// The texts of all tokens but the last.
std::vector<std::string> texts_of(const std::string& text) {
  std::vector<std::string> texts;
  for (const Token& token : tokens_of(text)) {
    texts.push_back(token.text);
  }
  texts.pop_back();
  return texts;
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("text, tags and what is in them") {
  CHECK(texts_of("a{{ b+1 }}c{% if x %}d") ==
        Texts{"a", "{{", "b", "+", "1", "}}", "c", "{%", "if", "x", "%}", "d"});
  CHECK(texts_of("{{ a//b**c<=d!=e }}") ==
        Texts{"{{", "a", "//", "b", "**", "c", "<=", "d", "!=", "e", "}}"});
  CHECK(texts_of("") == Texts{});
  CHECK(tokens_of("").back().kind == TokenKind::End);
}

TEST_CASE("tokens know where they begin") {
  const std::vector<Token> tokens = tokens_of("ab\n  {% set  x = 'y' %}");
  CHECK(tokens[0].offset == 0);   // ab
  CHECK(tokens[1].offset == 5);   // {%
  CHECK(tokens[3].offset == 13);  // x
  CHECK(tokens[5].offset == 17);  // 'y'
}

TEST_CASE("white space goes as trim_blocks, lstrip_blocks and the signs say") {
  CHECK(texts_of("a\n  {% x %}\nb")[0] == "a\n");
  CHECK(texts_of("a\n  {% x %}\nb")[4] == "b");
  CHECK(texts_of("a\n  {%+ x +%}\nb")[0] == "a\n  ");
  CHECK(texts_of("a\n  {%+ x +%}\nb")[4] == "\nb");
  CHECK(texts_of("a \n {%- x -%} \n b")[0] == "a");
  CHECK(texts_of("a \n {%- x -%} \n b")[4] == "b");
  CHECK(texts_of("a\n  {{ x }}\nb")[0] == "a\n  ");
  CHECK(texts_of("a  {# c #}\nb") == Texts{"a  ", "b"});
  CHECK(texts_of("{% raw %}\n{{ x }}{% endraw %}\nb") == Texts{"\n{{ x }}", "b"});
  CHECK(texts_of("a\r\nb\rc") == Texts{"a\nb\nc"});
}

TEST_CASE("numbers") {
  const auto number = [](const std::string& text) { return tokens_of("{{ " + text + " }}")[1]; };
  CHECK(number("1_000").integer == 1000);
  CHECK(number("0xFf").integer == 255);
  CHECK(number("0b_11").integer == 3);
  CHECK(number("9223372036854775807").integer == 9223372036854775807);
  CHECK(number("1.5e-3").real == 0.0015);
  CHECK(number("2E3").real == 2000);
  CHECK(number("1.e").kind == TokenKind::Integer);
  CHECK(texts_of("{{ a.1.5 }}") == Texts{"{{", "a", ".", "1", ".", "5", "}}"});
}

TEST_CASE("strings and their escapes") {
  const auto string = [](const std::string& text) {
    return tokens_of("{{ " + text + " }}")[1].text;
  };
  CHECK(string(R"("a\tb\x41\u00e9\101\\")") == "a\tbAéA\\");
  CHECK(string(R"('\d\'')") == "\\d'");
  CHECK(string("'a\\\nb'") == "ab");
  CHECK(string("'}} %}'") == "}} %}");
}

TEST_CASE("what is no token is an error at its place") {
  const auto check = [](const std::string& text, const std::string& message) {
    CHECK_THROWS_WITH_AS(tokens_of(text), message.c_str(), stof::TemplateError);
  };
  check("{{ a ? }}", "t:1:6: unexpected character '?'\n  {{ a ? }}\n       ^");
  check("{{ é }}", "t:1:4: unexpected character 'é'\n  {{ é }}\n     ^");
  check("{{ 'abc }}", "t:1:4: the string has no end\n  {{ 'abc }}\n     ^");
  check("{{ (a] }}", "t:1:6: unexpected ']', expected ')'\n  {{ (a] }}\n       ^");
  check("{{ a", "t:1:1: the tag has no }}\n  {{ a\n  ^");
  check("x{# y", "t:1:2: missing end of comment tag\n  x{# y\n   ^");
  check("{% raw %}x", "t:1:1: missing end of raw directive\n  {% raw %}x\n  ^");
  check("{{ 9223372036854775808 }}",
        "t:1:4: the number is beyond 64 bits\n  {{ 9223372036854775808 }}\n     ^");
  check("{{ '\\x4' }}",
        "t:1:4: an escape of 2 hexadecimal digits is cut short\n  {{ '\\x4' }}\n     ^");
  check("\xff", "t:1:1: the file is not UTF-8");
}
