#include "validate/check_template.hpp"

#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/files.hpp"
#include "compile/nvrtc_compiler.hpp"
#include "fusion/match.hpp"
#include "fusion/template_library.hpp"
#include "graph/op_info.hpp"
#include "validate/template_cases.hpp"

namespace stof::validate {
namespace {

// A template that doubles, with holes for what a test changes.
std::string doubles(const std::string& body, const std::string& constraint = "device.sm >= 80",
                    const std::string& tests = R"([{"rows": 3, "hidden": 8}])",
                    const std::string& grid = "dim.rows", const std::string& shared = "0",
                    const std::string& entry = "{{ kernel }}") {
  return R"text({#
{ "contract": 1, "name": "doubles", "version": 1, "summary": "y = x + x",
  "ports": {"x": {"shape": ["rows", "hidden"], "dtype": "T"}, "y": {"like": "x"}},
  "pattern": ["y = add(x, x)"],
  "dtypes": {"T": ["float16", "float32"]}, "accumulate": "float32",
  "constraints": [")text" +
         constraint + R"text("],
  "params": {"threads": {"values": [32, 64, 128], "default": 64}}, "restrictions": [],
  "resources": {"threads": "param.threads", "shared_bytes": ")text" +
         shared + R"text(", "registers": "16"},
  "launch": {"grid": [")text" +
         grid + R"text("], "block": ["param.threads"], "arguments": ["x", "y", "dim.rows"]},
  "cost": {"flops": "dim.rows", "bytes": "dim.rows"}, "deterministic": true, "tests": )text" +
         tests + R"text( }
#}
#include <cuda_fp16.h>
extern "C" __global__ void __launch_bounds__({{ param.threads }}) )text" +
         entry + R"text((const {{ dtype.T }}* x, {{ dtype.T }}* y, int rows) {
)text" + body +
         "\n}\n";
}

constexpr const char* kBody = "  y[threadIdx.x % {{ dim.hidden }}] = x[0] + x[0];";

TemplateCheck check(const std::string& text,
                    const std::vector<std::string>& targets = {"a100", "h200"}) {
  const render::Renderer renderer(std::make_shared<const render::TemplateStore>(
      render::TemplateStore::from_texts({{"doubles.jinja", text}})));
  std::vector<base::DeviceProfile> devices;
  for (const std::string& target : targets) {
    devices.push_back(base::shipped_profile(target));
  }
  const compile::NvrtcCompiler compiler;
  return check_template({.renderer = &renderer, .compiler = &compiler, .devices = devices},
                        "doubles.jinja");
}

TEST_CASE("check_template: a good one climbs every rung") {
  const TemplateCheck good = check(doubles(kBody));
  CHECK(good.is_passed());
  REQUIRE(good.rungs.size() == 4);
  CHECK(good.rungs[0].detail == "y = x + x");
  // Its dims; float32; the least and the most threads. There are no optional ports.
  CHECK(good.rungs[1].detail == "10 cases for sm_80, sm_90a are 8 sources");
  CHECK(good.rungs[2].detail == "8 sources, 0 warnings");
  CHECK(good.rungs[3].detail.starts_with("8 blocks can be launched, "));
  CHECK(good.warnings.empty());
  CHECK_FALSE(good.is_validated());  // there is no GPU
}

TEST_CASE("check_template: the first rung that fails is the last, and says why") {
  const TemplateCheck no_contract = check("no header");
  CHECK_FALSE(no_contract.is_passed());
  CHECK(no_contract.rungs.size() == 1);

  std::string misspelt = doubles(kBody);
  misspelt.replace(misspelt.find("= add("), 6, "= addd(");
  const auto fault_of = [](const std::string& text) {
    const std::string detail = check(text).rungs.back().detail;
    return detail.substr(0, detail.find('\n'));  // behind it is the line
  };
  CHECK(fault_of(misspelt) ==
        "doubles.jinja:4:15: pattern.0: there is no operator 'addd'; did you mean add?");
  misspelt.replace(misspelt.find("addd(x, x)"), 10, "linear(x, x)");
  CHECK(fault_of(misspelt) ==
        "doubles.jinja:4:15: pattern.0: linear is taken apart before templates are matched, name "
        "what it is made of");
  std::string arity = doubles(kBody);
  arity.replace(arity.find("add(x, x)"), 9, "add(x)");
  CHECK(fault_of(arity) == "doubles.jinja:4:15: pattern.0: add of 1 operands, the least is 2");
  arity.replace(arity.find("add(x)"), 6, "add(x, x, x)");
  CHECK(fault_of(arity) == "doubles.jinja:4:15: pattern.0: add of 3 operands, the most is 2");
  std::string attribute = doubles(kBody);
  attribute.replace(attribute.find("add(x, x)"), 9, "reduce_max(x; axes = -1)");
  CHECK(
      fault_of(attribute) ==
      "doubles.jinja:4:15: pattern.0: reduce_max has no attribute 'axes', it has axis, keep_axis");
  CHECK(check(misspelt).rungs.size() == 1);

  const TemplateCheck no_render = check(doubles("{{ dim.rows }}"));  // is passed, not baked
  REQUIRE(no_render.rungs.size() == 2);
  CHECK_FALSE(no_render.is_passed());
  CHECK(no_render.rungs[1].detail.starts_with("sm_80, hidden 8, rows 3: doubles.jinja:"));

  const TemplateCheck no_compile = check(doubles("  y = z;"));
  REQUIRE(no_compile.rungs.size() == 3);
  CHECK_FALSE(no_compile.is_passed());
  CHECK(no_compile.rungs[2].detail.find("identifier \"z\" is undefined") != std::string::npos);

  const TemplateCheck no_tests = check(doubles(kBody, "device.sm >= 80", "[]"));
  CHECK(no_tests.rungs.back().detail == "\"tests\" names no dims to try");
}

TEST_CASE("check_template: ports that the operators of the pattern have not") {
  std::string turned = doubles(kBody);
  const std::string like = R"("y": {"like": "x"})";
  turned.replace(turned.find(like), like.size(),
                 R"("y": {"shape": ["hidden", "rows"], "dtype": "T"})");
  const TemplateCheck check = validate::check(turned);
  CHECK(check.rungs.size() == 4);
  CHECK(check.rungs.back().detail ==
        "no case of \"tests\" is taken: it does not fit at add_1: hidden is 3 in y");
}

TEST_CASE("check_template: what could not be launched") {
  const auto fault = [](const char* grid, const char* shared, const char* entry) {
    return check(doubles(kBody, "device.sm >= 80", R"([{"rows": 3, "hidden": 8}])", grid, shared,
                         entry))
        .rungs.back()
        .detail;
  };
  CHECK(fault("dim.rows - 3", "0", "{{ kernel }}") ==
        "contract doubles: grid[0] = dim.rows - 3 is 0, the least is 1");
  CHECK(fault("dim.rows", "200000", "{{ kernel }}") ==
        "contract doubles: shared_bytes = 200000 is 200000, the most is 166912");
  CHECK(fault("dim.rows", "0", "other")
            .starts_with("sm_80, hidden 8, rows 3: doubles.jinja:1:1: the rendered source has no "
                         "entry 'doubles', which is written"));
}

TEST_CASE("check_template: a kernel whose parameters are not what its launch passes") {
  const auto fault = [](const std::string& from, const std::string& to) {
    std::string text = doubles(kBody);
    text.replace(text.find(from), from.size(), to);
    const TemplateCheck refused = check(text);
    CHECK(refused.rungs.back().name == "compile");
    return refused.rungs.back().detail;
  };
  CHECK(fault("int rows)", "long long rows)") ==
        "sm_80, hidden 8, rows 3: doubles.jinja:1:1: parameter 2 of the kernel is of 8 bytes, the "
        "argument that its launch "
        "passes, dim.rows, of 4");
  CHECK(fault(", int rows)", ")") ==
        "sm_80, hidden 8, rows 3: doubles.jinja:1:1: the kernel has 2 parameters, its launch "
        "passes 3 arguments");
  CHECK(fault("int rows)", "int rows, float more)") ==
        "sm_80, hidden 8, rows 3: doubles.jinja:1:1: the kernel has 4 parameters, its launch "
        "passes 3 arguments");
}

TEST_CASE("check_template: the document names every operator of patterns, with its attributes") {
  const std::string document =
      base::read_file(std::filesystem::path(STOF_SOURCE_DIR) / "templates/README.md", 1 << 20);
  const std::size_t begin = document.find("## Operators of patterns");
  const std::string operators = document.substr(begin, document.find("\n## ", begin) - begin);
  for (const graph::OpInfo& op : graph::all_ops()) {
    if (op.op_class == graph::OpClass::View || op.is_composite || op.is_variadic ||
        op.kind == graph::OpKind::Score || op.kind == graph::OpKind::Mask) {
      continue;
    }
    CHECK_MESSAGE(operators.find(op.name) != std::string::npos, op.name);
    for (const std::string& attribute : fusion::pattern_attributes(op.kind)) {
      const bool is_of_primitives =
          op.kind == graph::OpKind::MatMul && (attribute == "group" || attribute == "dtype");
      CHECK_MESSAGE((is_of_primitives || operators.find(attribute) != std::string::npos), op.name,
                    " ", attribute);
    }
  }
}

TEST_CASE("check_template: targets that the constraints refuse are left out") {
  CHECK(check(doubles(kBody, "device.sm == 90")).rungs[1].detail ==
        "5 cases for sm_90a are 4 sources");
  CHECK(check(doubles(kBody, "device.sm == 90"), {"a100"}).rungs[1].detail ==
        "there is no case of \"tests\" to try: sm_80, hidden 8, rows 3: device.sm == 90 does not "
        "hold");
}

TEST_CASE("check_template: kernels for long tiles render with the code for these and without") {
  const auto store = std::make_shared<const render::TemplateStore>(render::TemplateStore::open({}));
  const render::Renderer renderer(store);
  int count = 0;
  for (const fusion::KernelTemplate& one : fusion::read_templates(store->texts())) {
    if (!one.contract.is_passed("mask.long_tiles")) {
      continue;
    }
    ++count;
    std::set<bool> seen;
    for (const TemplateCase& use : template_cases(one.contract, base::shipped_profile("h200"))) {
      const std::string text = renderer.render(one.file, render::from_json(use.variables)).text;
      const bool has_them = text.find("stof::LongTiles long_tiles") != std::string::npos;
      CHECK(has_them != (text.find("stof::NoLongTiles long_tiles") != std::string::npos));
      CHECK(has_them == (use.text.find("a long tile") != std::string::npos));
      CHECK(has_them == (use.launch.workspace_bytes > 16));  // for parts, beside counts
      seen.insert(has_them);
    }
    CHECK(seen.size() == 2);
  }
  CHECK(count == 2);
}

TEST_CASE("check_template: every kernel template of the library renders in its cases") {
  const auto store = std::make_shared<const render::TemplateStore>(render::TemplateStore::open({}));
  const render::Renderer renderer(store);
  for (const fusion::KernelTemplate& one : fusion::read_templates(store->texts())) {
    const auto cases = template_cases(one.contract, base::shipped_profile("h200"));
    CHECK_MESSAGE(cases.size() >= one.contract.tests.size(), one.file);
    for (const TemplateCase& use : cases) {
      CHECK_NOTHROW_MESSAGE(renderer.render(one.file, render::from_json(use.variables)), one.file,
                            ": ", use.text);
    }
  }
}

}  // namespace
}  // namespace stof::validate
