#include "validate/numeric_cases.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "error_of.hpp"
#include "mutants.hpp"
#include "stof/error.hpp"
#include "validate/pattern_graph.hpp"

namespace stof::validate {
namespace {

std::vector<NumericCase> cases_of(const std::string& file) {
  const auto library = fusion::read_templates(stof::testing::good_templates());
  return numeric_cases(alone(library, file), base::shipped_profile("h200"));
}

bool has_text(const std::vector<NumericCase>& cases, const std::string& text) {
  return std::ranges::any_of(
      cases, [&](const NumericCase& one) { return one.text.find(text) != std::string::npos; });
}

TEST_CASE("numeric_cases: ragged, long, bare, strided and with each end of a parameter") {
  const std::vector<NumericCase> cases = cases_of("norm/layer_norm.jinja");
  CHECK(has_text(cases, "hidden 997, rows 331"));
  CHECK(has_text(cases, "hidden 4096, rows 61"));
  CHECK(has_text(cases, "rows 4096"));
  CHECK(has_text(cases, "strided"));
  CHECK(has_text(cases, "with an epilogue"));
  CHECK(has_text(cases, "without biased"));
  CHECK(has_text(cases, "the required operators alone"));
  CHECK(has_text(cases, "in bfloat16"));
  CHECK(has_text(cases, "in float32"));
  const auto whole = std::ranges::find(cases, "hidden 1000, rows 333", &NumericCase::text);
  REQUIRE(whole != cases.end());
  for (const std::string text :
       {"threads_per_row 64,", "threads_per_row 512", "rows_per_block 1,", "vector 1"}) {
    CHECK_MESSAGE(std::ranges::any_of(whole->variants,
                                      [&](const NumericVariant& variant) {
                                        return variant.text.find(text) != std::string::npos;
                                      }),
                  text);
  }
}

TEST_CASE("numeric_cases: every variant launches the template, with the setting that it names") {
  for (const char* file : {"norm/softmax.jinja", "reduce/sum.jinja", "gated.jinja",
                           "elementwise/transposed.jinja", "rotary/rotary.jinja"}) {
    const std::vector<NumericCase> cases = cases_of(file);
    CHECK(cases.size() > 4);
    for (const NumericCase& one : cases) {
      REQUIRE_FALSE(one.variants.empty());
      for (const NumericVariant& variant : one.variants) {
        CHECK_MESSAGE(
            std::ranges::any_of(variant.lowered.specs,
                                [&](const kernel::KernelSpec& spec) { return spec.file == file; }),
            one.text);
      }
    }
  }
}

TEST_CASE("numeric_cases: every kernel template is tried") {
  const auto library = fusion::read_templates(stof::testing::good_templates());
  for (const fusion::KernelTemplate& kernel : library) {
    // Lowering keeps it for graphs that fill a GPU.
    if (kernel.file != "attention/block_wise_sm90.jinja") {
      CHECK_MESSAGE(cases_of(kernel.file).size() > kernel.contract.tests.size(), kernel.file);
    }
  }
}

TEST_CASE("pattern_graph: operators without a pattern name, absent steps, swapped operands") {
  const auto library = fusion::read_templates(stof::testing::good_templates());
  const TemplateAlone product = alone(library, "matmul/gemm_simple.jinja");
  PatternUse use{.dims = {{"batch", 1}, {"m", 5}, {"n", 3}, {"k", 7}},
                 .dtypes = {{"T", DType::Float16}, {"Y", DType::Float16}},
                 .attributes = {{"transpose_b", 1}}};
  const graph::Ir ir = pattern_graph(product.kernel.contract, use);
  REQUIRE(ir.operators.size() == 1);
  CHECK(graph::value_at(ir, ir.operators[0].inputs[0]).shape == Shape{5, 7});
  CHECK(graph::value_at(ir, ir.operators[0].inputs[1]).shape == Shape{3, 7});

  const TemplateAlone norm = alone(library, "norm/rms_norm.jinja");
  PatternUse bare{.dims = {{"rows", 5}, {"hidden", 8}},
                  .dtypes = {{"T", DType::Float16}, {"W", DType::Float16}, {"Y", DType::Float16}},
                  .attributes = {{"epsilon", 1e-5}},
                  .absent_steps = {0, 1}};
  CHECK(pattern_graph(norm.kernel.contract, bare).operators.size() == 1);
  bare.absent_steps = {};
  const graph::Ir whole = pattern_graph(norm.kernel.contract, bare);
  CHECK(whole.operators.size() == 3);
  CHECK(whole.outputs.size() == 2);  // the sum escapes
}

// Why no case is taken of the template with one more constraint.
std::string refusal(const std::string& file, const std::string& constraint) {
  auto texts = stof::testing::good_templates();
  std::string& text = texts.at(file);
  const std::string list = "\"constraints\": [";
  const std::size_t at = text.find(list);
  if (at == std::string::npos) {
    text.insert(text.find("\"params\""), list + '"' + constraint + "\"], ");
  } else {
    text.insert(at + list.size(), '"' + constraint + "\", ");
  }
  return test::error_of<GraphError>([&] {
    numeric_cases(alone(fusion::read_templates(texts), file), base::shipped_profile("h200"));
  });
}

TEST_CASE("numeric_cases: a template that takes none of its tests says why") {
  const std::string reason = refusal("norm/softmax.jinja", "dim.rows > 100000");
  INFO(reason);
  CHECK(reason.starts_with("no case of \"tests\" is taken: lower: no template takes"));
  CHECK(reason.find("softmax: dim.rows > 100000") != std::string::npos);
  // Elementwise operators run by a shipped template then.
  CHECK(refusal("gated.jinja", "dim.rows > 100000") ==
        "no case of \"tests\" is taken: it does not fit at silu_1: dim.rows > 100000, where "
        "dim.rows is 1");
}

TEST_CASE("alone: what else is there, and a file that is not") {
  const auto library = fusion::read_templates(stof::testing::good_templates());
  const TemplateAlone one = alone(library, "norm/rms_norm.jinja");
  CHECK(one.with_copies.size() == 3);
  CHECK(one.others.size() == library.size() - 1);
  CHECK_THROWS_WITH(alone(library, "none.jinja"), "'none.jinja' is no template of this library");
}

}  // namespace
}  // namespace stof::validate
