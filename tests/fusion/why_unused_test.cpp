#include "fusion/why_unused.hpp"

#include <algorithm>
#include <map>
#include <string>

#include <doctest/doctest.h>

#include "base/files.hpp"
#include "graph/normalise.hpp"
#include "render/template_store.hpp"
#include "stof/stof.hpp"

using namespace stof;  // NOLINT(google-build-using-namespace)

namespace {

constexpr const char* kFile = "norm/unit_rows.jinja";

// Of the template of the fourth example, with some of its text in another form.
std::string why_unused(const Graph& graph, const std::string& from = {},
                       const std::string& to = {}) {
  std::string text = base::read_file(
      STOF_SOURCE_DIR "/examples/04_custom_template/templates/norm/unit_rows.jinja", 1 << 20);
  if (!from.empty()) {
    REQUIRE(text.find(from) != std::string::npos);
    text.replace(text.find(from), from.size(), to);
  }
  std::map<std::string, std::string> texts = render::TemplateStore::open({}).texts();
  texts[kFile] = text;
  const fusion::TemplateLibrary library = fusion::read_templates(texts);
  const auto kernel = std::ranges::find(library, kFile, &fusion::KernelTemplate::file);
  REQUIRE(kernel != library.end());
  return fusion::why_unused(*kernel, graph::normalise_but_attention(graph.ir()), library,
                            base::shipped_profile("h200"));
}

enum class Form { Whole, SumIsRead, OtherShape };

Graph unit_rows(Form form = Form::Whole, std::int64_t hidden = 1024) {
  Graph graph("unit_rows");
  const auto x = graph.input("x", {3000, hidden}, DType::Float16);
  const auto sum = graph.reduce_sum(graph.multiply(x, x), -1, /*keep_axis=*/true);
  const auto other = graph.input("other", {3000, 1}, DType::Float16);
  graph.output("y", graph.divide(form == Form::OtherShape ? other : x, graph.sqrt(sum)));
  if (form == Form::SumIsRead) {
    graph.output("sum", sum);
  }
  return graph;
}

}  // namespace

TEST_CASE("why unused: what of the pattern the graph has not") {
  Graph graph("relu");
  graph.output("y", graph.relu(graph.input("x", {8, 64}, DType::Float16)));
  CHECK(why_unused(graph) == "the graph, made of primitive operators, has no multiply");
  const std::string apart =
      "nowhere do the operators of its pattern follow each other as it has them, with nothing "
      "else that reads what is between them";
  CHECK(why_unused(unit_rows(Form::SumIsRead)) == apart);
  CHECK(why_unused(unit_rows(Form::OtherShape)) == apart);
}

TEST_CASE("why unused: what does not fit where the pattern is") {
  CHECK(why_unused(unit_rows(Form::Whole, 1001)) ==
        "it does not fit at multiply_1: dim.hidden % 8 == 0, where dim.hidden is 1001");
  CHECK(why_unused(unit_rows(), "\"like\": \"x\"", R"("shape": ["rows", "rows"], "dtype": "T")") ==
        "it does not fit at multiply_1: 'divide_5' [3000, 1024] does not go with the port y [rows, "
        "rows]");
}

TEST_CASE("why unused: what it should take where others should take less") {
  const std::string text =
      why_unused(unit_rows(), R"("flops": "3)", R"("flops": "100000000000000)");
  CHECK(text.starts_with("it should take "));
  CHECK(text.ends_with(" us for multiply_1, and the plan less with others"));
}
