#include "render/include_closure.hpp"

#include <map>
#include <set>
#include <string>

#include <doctest/doctest.h>

#include "render/template_store.hpp"

namespace stof::render {
namespace {

using Texts = std::map<std::string, std::string>;

const Texts kTexts = {
    {"a.jinja",
     "{% from \"b.jinja\" import f %}{% if x %}{% include 'c.jinja' %}{% endif %}\n"
     "#include <cuda_fp16.h>\n#include \"device/d.cuh\"\n"},
    {"b.jinja",
     "{% macro f() %}{% for i in x %}{% include [\"e.jinja\", \"none.jinja\"] %}{% endfor %}{% "
     "endmacro %}"},
    {"c.jinja", ""},
    {"e.jinja", "{% extends \"f.jinja\" %}"},
    {"f.jinja", "{% block body %}{% import \"a.jinja\" as a %}{% endblock %}"},
    {"other.jinja", ""},
    {"computed.jinja", "{% include name %}"},
    {"header.jinja", "#include \"device/{{ name }}.cuh\"\n"},
    {"device/d.cuh", "#include \"device/e.cuh\"\n"},
    {"device/e.cuh", ""},
    {"device/f.cuh", ""},
};

TEST_CASE("include_closure: what is named, however deep, and nothing else") {
  const TemplateStore store = TemplateStore::from_texts(kTexts);
  CHECK(include_closure(store, "a.jinja") == std::set<std::string>{"a.jinja", "b.jinja", "c.jinja",
                                                                   "device/d.cuh", "device/e.cuh",
                                                                   "e.jinja", "f.jinja"});
  CHECK(include_closure(store, "other.jinja") == std::set<std::string>{"other.jinja"});
}

TEST_CASE("include_closure: everything, where a name is computed") {
  const TemplateStore store = TemplateStore::from_texts(kTexts);
  CHECK(include_closure(store, "computed.jinja").size() == kTexts.size());
  CHECK(include_closure(store, "header.jinja").size() == kTexts.size());
}

TEST_CASE("include_closure: of what does not parse, its headers alone") {
  const TemplateStore store = TemplateStore::from_texts(
      {{"a.jinja", "#include \"device/d.cuh\"\n{% include 'b.jinja' %}{% if %}"},
       {"b.jinja", ""},
       {"device/d.cuh", ""}});
  CHECK(include_closure(store, "a.jinja") == std::set<std::string>{"a.jinja", "device/d.cuh"});
}

TEST_CASE("closure_digest: alters with each file of the closure, and with no other") {
  const auto digest = [](const char* changed) {
    Texts texts = kTexts;
    texts.at(changed) += " ";
    return closure_digest(TemplateStore::from_texts(texts), "a.jinja");
  };
  const base::Digest before = closure_digest(TemplateStore::from_texts(kTexts), "a.jinja");
  for (const char* part : {"a.jinja", "f.jinja", "device/e.cuh"}) {
    CHECK(digest(part) != before);
  }
  CHECK(digest("other.jinja") == before);
  CHECK(digest("device/f.cuh") == before);
}

}  // namespace
}  // namespace stof::render
