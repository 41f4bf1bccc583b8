#include "render/renderer.hpp"

#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "stof/error.hpp"

using stof::render::from_json;
using stof::render::Renderer;
using stof::render::RenderLimits;
using stof::render::TemplateStore;
using stof::render::Value;

namespace {

using Texts = std::map<std::string, std::string>;

Renderer make_renderer(const Texts& texts) {
  return Renderer(std::make_shared<const TemplateStore>(TemplateStore::from_texts(texts)));
}

std::string render(const std::string& text,
                   const nlohmann::ordered_json& variables = nlohmann::ordered_json::object(),
                   const RenderLimits& limits = {}) {
  const Renderer renderer(
      std::make_shared<const TemplateStore>(TemplateStore::from_texts({{"main", text}})));
  return renderer.render("main", from_json(variables), limits).text;
}

std::string error_of(const std::string& text, const RenderLimits& limits = {}) {
  try {
    render(text, nlohmann::ordered_json::object(), limits);
  } catch (const stof::TemplateError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("a template renders with its variables, dicts in their order") {
  CHECK(render("{% for k, v in d.items() %}{{ k }}={{ v }} {% endfor %}",
               {{"d", {{"z", 1}, {"a", 2.5}, {"m", nullptr}}}}) == "z=1 a=2.5 m=None ");
}

TEST_CASE("an error carries file, line and column, and shows the line") {
  CHECK(error_of("one\n  {{ missing }}\n") ==
        "main:2:6: 'missing' is undefined\n    {{ missing }}\n       ^");
  CHECK(error_of("{% for x in 5 %}{% endfor %}") ==
        "main:1:4: 'int' object is not iterable\n  {% for x in 5 %}{% endfor %}\n     ^");
  CHECK(error_of("a {{ 1 +/ 2 }}") ==
        "main:1:9: expected an expression, got '/'\n  a {{ 1 +/ 2 }}\n          ^");
  CHECK(error_of("{{ 9223372036854775807 + 1 }}") ==
        "main:1:24: +: the result is beyond 64-bit integers\n  {{ 9223372036854775807 + 1 }}\n  "
        "                       ^");
  CHECK(
      error_of("{% if true %}\nx") ==
      "main:1:4: this tag is never closed: expected {% elif %} or {% else %} or {% endif %}\n  {% "
      "if true %}\n     ^");
}

TEST_CASE("an error in an included template names that template") {
  const Renderer renderer(std::make_shared<const TemplateStore>(TemplateStore::from_texts(
      {{"main", "a\n{% include 'part' %}"}, {"part", "b\nc {{ 1 / zero }}"}})));
  try {
    renderer.render("main", from_json(nlohmann::json{{"zero", 0}}));
    FAIL("no error");
  } catch (const stof::TemplateError& error) {
    CHECK(error.file() == "part");
    CHECK(error.line() == 2);
    CHECK(error.column() == 8);
    CHECK(std::string(error.what()) ==
          "part:2:8: division by zero\n  c {{ 1 / zero }}\n         ^");
  }
}

TEST_CASE("what is outside of the language is named") {
  CHECK(error_of("{% do x %}").starts_with("main:1:4: unknown tag 'do'"));
  CHECK(error_of("{% autoescape true %}").starts_with("main:1:4: autoescape is not supported"));
  CHECK(error_of("{{ x | urlize }}").starts_with("main:1:8: no filter named 'urlize'"));
  CHECK(error_of("{{ 1 is escaped }}").starts_with("main:1:9: no test named 'escaped'"));
  CHECK(error_of("{{ 'a'.encode() }}").starts_with("main:1:8: 'encode' of str is not supported"));
  CHECK(error_of("{{ 'a'.__class__ }}").starts_with("main:1:8: attribute '__class__': names"));
  CHECK(error_of("{{ [1] | map('string') }}").find("a generator has no text of its own") !=
        std::string::npos);
}

TEST_CASE("fail() is an error at its place, with the message of the template") {
  CHECK(
      error_of("ok\n{% if true %}{{ fail('tile ' ~ 3 ~ ' is odd') }}{% endif %}") ==
      "main:2:21: tile 3 is odd\n  {% if true %}{{ fail('tile ' ~ 3 ~ ' is odd') }}{% endif %}\n  "
      "                    ^");
}

TEST_CASE("a template cannot exhaust memory, stack or time") {
  CHECK(error_of("{{ range(10000000) }}").find("range of 10000000 numbers, more than 1000000") !=
        std::string::npos);
  CHECK(error_of("{{ 'x' * 100000000 }}").find("a text of more than 16777216 bytes") !=
        std::string::npos);
  CHECK(error_of("{{ ['x'] * 100000000 }}").find("the template") != std::string::npos);
  CHECK(error_of("{% for i in range(1000) %}{{ 'x' * 100000 }}{% endfor %}")
            .find("a text of more than 16777216 bytes") != std::string::npos);
  CHECK(error_of("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}").find("nested deeper than") !=
        std::string::npos);
  CHECK(error_of("{% include 'main' %}").find("nested deeper than 1200 levels") !=
        std::string::npos);
  CHECK(error_of("{% for i in range(1000) %}{% for j in range(1000) %}{% endfor %}{% endfor %}",
                 {.steps = 10'000})
            .find("the template takes more than 10000 steps") != std::string::npos);
  CHECK(error_of("{% set l = [] %}{% for i in range(100000) %}{% set _ = l.append('x' * 9000) %}{% "
                 "endfor %}")
            .find("the template makes more than 268435456 bytes of values") != std::string::npos);
  CHECK(error_of("{{ " + std::string(5000, '(') + "1" + std::string(5000, ')') + " }}")
            .find("an expression nested deeper than 150 levels") != std::string::npos);
  std::string sum = "1";
  for (int i = 0; i < 5000; ++i) {
    sum += "+1";
  }
  CHECK(error_of("{{ " + sum + " }}").find("an expression nested deeper than 150 levels") !=
        std::string::npos);
  std::string ifs;
  for (int i = 0; i < 5000; ++i) {
    ifs += "{% if 1 %}";
  }
  CHECK(error_of(ifs).find("tags nested deeper than 60 levels") != std::string::npos);
  CHECK(error_of(std::string((1U << 20U) + 1, 'x')) ==
        "main:1:1: 1048577 bytes, more than 1048576");
}

TEST_CASE("long texts and lists cost what it takes to go through them") {
  const RenderLimits limits = {.steps = 1'000'000};  // those by default take a minute, sanitised
  const std::string steps = "the template takes more than 1000000 steps";
  for (const char* text : {"{% set s = 'a' * 8000000 %}{% for i in range(1000000) %}{% if "
                           "s.find('b') > 0 %}{% endif %}{% endfor %}",
                           "{% set s = 'a' * 8000000 %}{% for i in range(1000000) %}{% if s|length "
                           "> 0 %}{% endif %}{% endfor %}",
                           "{% set s = 'a' * 8000000 %}{% for i in range(1000000) %}{% if s[7] > "
                           "'b' %}{% endif %}{% endfor %}",
                           "{% set l = range(1000000)|list %}{% for i in range(100000) %}{{ "
                           "l.index(999999) }}{% endfor %}",
                           "{{ ('a' * 2000000).rfind('b' ~ 'a' * 1000000) }}"}) {
    CAPTURE(text);
    CHECK(error_of(text, limits).find(steps) != std::string::npos);
  }
  CHECK(render("{{ ('a' * 2000000).find('a' * 1000000 ~ 'b') }}") == "-1");
}

TEST_CASE("values nested without end are taken down, or refused where they are printed") {
  const std::string chain = "{% set ns = namespace(v=[]) %}{% for i in range(200000) %}";
  CHECK(render(chain + "{% set ns.v = [ns.v] %}{% endfor %}ok") == "ok");
  CHECK(render(chain + "{% set ns.v = {'k': ns.v} %}{% endfor %}ok") == "ok");
  CHECK(render(chain + "{% set ns.v = (ns.v,) %}{% endfor %}ok") == "ok");
  CHECK(render(chain + "{% set ns.v = namespace(v=ns.v) %}{% endfor %}ok") == "ok");
  CHECK(render(chain + "{% set ns.v = [ns.v].append %}{% endfor %}ok") == "ok");
  CHECK(render(chain + "{% set ns.v = cycler(ns.v) %}{% endfor %}ok") == "ok");
  CHECK(render(chain + "{% set ns.v = joiner(ns.v) %}{% endfor %}ok") == "ok");
  CHECK(error_of(chain + "{% set ns.v = [] | map('default', ns.v) %}{% endfor %}")
            .find("more than 64 filters over one sequence") != std::string::npos);
  CHECK(error_of(chain + "{% set ns.v = [ns.v] %}{% endfor %}{{ ns.v }}")
            .find("values nested deeper than 100 levels") != std::string::npos);
  CHECK(error_of(chain + "{% set ns.v = [ns.v] %}{% endfor %}{{ ns.v == [ns.v] }}")
            .find("values nested deeper than 100 levels") != std::string::npos);
  CHECK(error_of(chain + "{% set ns.v = ns.v | map('string') %}{% endfor %}{{ ns.v | list }}")
            .find("more than 64 filters over one sequence") != std::string::npos);
}

// AddressSanitizer tells whether they leak.
TEST_CASE("values that hold themselves do not leak") {
  CHECK(render("{% set l = [1] %}{% set _ = l.append(l) %}{{ l | length }}") == "2");
  CHECK(render("{% set d = {} %}{% set _ = d.update(d=d) %}{{ d | length }}") == "1");
  CHECK(render("{% set ns = namespace() %}{% set ns.me = ns %}x") == "x");
  CHECK(render("{% set ns = namespace() %}{% for i in [1] %}{% set ns.l = loop %}{{ "
               "loop.changed(loop) }}{% endfor %}") == "True");
  CHECK(render("{% macro m() %}{% set l = [m] %}{% macro n() %}{{ l }}{% endmacro %}{{ l | length "
               "}}{% endmacro %}{{ m() }}") == "1");
  CHECK(render("{% set ns = namespace() %}{% for i in [1, 2] if i %}{% set ns.l = loop %}{% endfor "
               "%}{{ ns.l.index }}") == "2");
}

TEST_CASE("the variables given to a template stay as they are") {
  const Value variables = from_json(nlohmann::json{{"list", {1}}});
  const Renderer renderer = make_renderer({{"main", "{% set _ = list.append(2) %}{{ list }}"}});
  CHECK(renderer.render("main", variables).text == "[1, 2]");
  CHECK(renderer.render("main", variables).text == "[1, 2]");
}

TEST_CASE("many threads render at a time") {
  const Renderer renderer = make_renderer(
      {{"main", "{% import 'lib' as lib %}{% for i in range(50) %}{{ lib.f(i + n) }}{% endfor %}"},
       {"lib", "{% macro f(x) %}<{{ x }}>{% endmacro %}"}});
  std::vector<std::string> results(8);
  std::vector<std::thread> threads;
  threads.reserve(8);
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&renderer, &results, i] {
      results[static_cast<std::size_t>(i)] =
          renderer.render("main", from_json(nlohmann::json{{"n", i}})).text;
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (int i = 0; i < 8; ++i) {
    std::string expected;
    for (int k = 0; k < 50; ++k) {
      expected += '<' + std::to_string(k + i) + '>';
    }
    CHECK(results[static_cast<std::size_t>(i)] == expected);
  }
}

TEST_CASE("names and variables that are none are refused") {
  const Renderer renderer = make_renderer({{"main", "x"}});
  const Value none = from_json(nlohmann::json::object());
  CHECK_THROWS_WITH_AS(renderer.render("nope", none), "nope:1:1: no such template",
                       stof::TemplateError);
  CHECK_THROWS_WITH_AS(renderer.render("../main", none),
                       "../main:1:1: template path '../main' leaves the template folders",
                       stof::TemplateError);
  CHECK_THROWS_WITH_AS(renderer.render("main", Value(5)),
                       "main:1:1: the variables of a template are a dict", stof::TemplateError);
  CHECK(error_of("{% include 'a.cuh' %}").starts_with("main:1:4: 'a.cuh' is a device header"));
  CHECK(error_of("{% include '/etc/passwd' %}")
            .starts_with("main:1:4: template path '/etc/passwd' leaves"));
}
