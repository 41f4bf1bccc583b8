#include "contract/contract.hpp"

#include <fstream>
#include <vector>

#include "contract_support.hpp"

namespace stof::contract {

using nlohmann::json;
using Names = std::vector<std::string>;

TEST_CASE("a full header is read field by field") {
  const TemplateContract contract = parse(full_header());
  CHECK(contract.name == "rms_norm_residual");
  CHECK(contract.version == 3);
  CHECK(contract.dtypes.at("T") == std::vector{DType::Float16, DType::BFloat16});
  CHECK(contract.ports.size() == 5);

  const Port* sum = contract.find_port("sum");
  REQUIRE(sum != nullptr);
  CHECK(sum->is_output);
  CHECK(sum->may_alias == "r");
  CHECK(sum->dtype == "T");
  REQUIRE(sum->shape.size() == 2);
  CHECK(sum->shape[1].dim == "hidden");
  CHECK_FALSE(contract.find_port("x")->is_output);
  CHECK(contract.find_port("z") == nullptr);

  REQUIRE(contract.pattern.size() == 2);
  CHECK(contract.pattern[1].op == "rms_norm");
  CHECK(contract.pattern[1].inputs == Names{"sum", "gain"});
  CHECK(contract.pattern[1].attributes[0].name == "epsilon");
  CHECK_FALSE(contract.pattern[1].attributes[0].value);

  CHECK(contract.constraints[1].text == "dim.hidden <= 16384");
  CHECK(contract.params[0].name == "rows_per_block");  // in order of name
  CHECK(contract.workspace.must_be_zero);
  CHECK(contract.launch.pdl);
  CHECK(contract.launch.arguments[5].kind == ArgumentKind::Workspace);
  CHECK(contract.launch.arguments[6].value.expr().text() == "dim.tokens");
  CHECK(contract.launch.arguments[7].value.expr().type() == ScalarType::Float);
  CHECK(contract.hooks.at("epilogue") == "y");
  CHECK(contract.tests[1].at("hidden") == 1000);
}

TEST_CASE("a step may stand for one of several operators") {
  json header = full_header();
  header["pattern"] = {"sum = add|multiply | maximum?(x, r)", "y = rms_norm(sum, gain; epsilon)"};
  const TemplateContract contract = parse(header);
  CHECK(contract.pattern[0].op == "add");
  CHECK(contract.pattern[0].alternatives == Names{"multiply", "maximum"});
  CHECK(contract.pattern[0].is_optional);
  header["pattern"][0] = "sum = add|(x, r)";
  CHECK_THROWS_WITH_AS(parse(header), doctest::Contains("expected an operator name, found '('"),
                       TemplateError);
}

TEST_CASE("optional operators make optional ports, but their first input is always there") {
  json header = full_header();
  header["pattern"] = {"sum = add?(x, r)", "y = rms_norm(sum, gain; epsilon, axis: int = -1)"};
  const TemplateContract contract = parse(header);
  CHECK(contract.pattern[0].is_optional);
  CHECK(contract.find_port("r")->is_optional);
  CHECK_FALSE(contract.find_port("x")->is_optional);
  CHECK_FALSE(contract.find_port("gain")->is_optional);
  CHECK(contract.pattern[1].attributes[1].value == -1.0);
}

TEST_CASE("extents are dims, numbers or expressions over dims") {
  json header = full_header();
  header["ports"]["gain"]["shape"] = {"dim.hidden"};
  header["ports"]["x"]["shape"] = {"tokens", 64, "2 * dim.hidden", "hidden"};
  const Port x = *parse(header).find_port("x");
  CHECK(x.shape[1].dim.empty());
  CHECK(x.shape[1].value.text() == "64");
  CHECK(x.shape[2].value.text() == "2 * dim.hidden");
  CHECK(x.shape[3].dim == "hidden");
}

TEST_CASE("a tensor map is an argument of its own, and passes its port") {
  json header = full_header();
  header["launch"]["arguments"][0] = {{"tensor_map", "x"}, {"box", {"param.rows_per_block", 64}}};
  const Argument map = parse(header).launch.arguments[0];
  CHECK(map.kind == ArgumentKind::TensorMap);
  CHECK(map.name == "x");
  REQUIRE(map.box.size() == 2);
  CHECK(map.box[0].expr().text() == "param.rows_per_block");
}

TEST_CASE("weights, escapes and replacements") {
  json header = full_header();
  header["weights"] = {{{"port", "gain"}, {"transform", "fold_scale"}, {"with", {"x"}}}};
  header["replaces"] = "rms_norm";
  const TemplateContract contract = parse(header);
  CHECK(contract.weights[0].transform == WeightTransform::FoldScale);
  CHECK(contract.weights[0].with == Names{"x"});
  CHECK(contract.replaces == "rms_norm");
}

TEST_CASE("the header that templates/README.md teaches is a good one") {
  std::ifstream file(STOF_SOURCE_DIR "/tests/contract/taught_header.json");
  const TemplateContract contract = parse(json::parse(file));
  CHECK(contract.launch.arguments.size() == 7);
  CHECK(contract.tests.size() == 2);
}

namespace {

struct Fault {
  const char* pointer;  // where the header changes
  json value;
  const char* error;
};

const std::vector<Fault> kFaults = {
    {"/contract", 2, "contract: schema 2 is not known, this version reads 1"},
    {"/name", "rms norm",
     "name: 'rms norm' is not a name: letters, digits and underscores, no digit first"},
    {"/name", std::string(129, 'n'), "name: a name has at most 128 letters, this one 129"},
    {"/version", 0, "version: a version is at least 1, found 0"},
    {"/version", 1.5, "version: expected a 64-bit integer, found 1.5"},
    {"/summary", 7, "summary: expected a string, found number"},
    {"/colour", 1,
     "colour: unknown field; known are contract, name, version, summary, ports, pattern, dtypes, "
     "resources, launch, "
     "replaces, escapes, accumulate, constraints, params, restrictions, weights, workspace, "
     "cost, "
     "hooks, score_modifiers, deterministic, tests"},
    {"/dtypes/T/0", "float8",
     "dtypes.T.0: 'float8' is no dtype: float16, bfloat16, float32, int32, int64, uint8, bool"},
    {"/dtypes/T", json::array(), "dtypes.T: a dtype symbol needs at least one dtype"},
    {"/dtypes/int32", {"int32"}, "dtypes.int32: a dtype symbol may not be called like a dtype"},
    {"/pattern", json::array(), "pattern: a pattern has at least one operator"},
    {"/pattern/0", "sum = add(x, r", "pattern.0: expected ')', found the end"},
    {"/pattern/0", "sum add(x, r)", "pattern.0: expected '=', found 'a'"},
    {"/pattern/0", "sum = r\u00e9lu(x)", "pattern.0: expected '(', found byte 0xc3"},
    {"/pattern/0", "sum = add(x, r; a, a)", "pattern.0: the attribute 'a' stands twice"},
    {"/pattern/0", "sum = add(x, r; a: real)", "pattern.0: expected int, float or bool, found 'r'"},
    {"/pattern/0", "sum, z = add?(x, r)",
     "pattern.0: an optional operator has one output and at least one input, which stands for it"},
    {"/pattern/0", "x = add(x, r)", "pattern.0: 'x' is read or written before this step"},
    {"/pattern/0", "sum = add(x, q)", "ports.r: no step of the pattern reads or writes this port"},
    {"/pattern/1", "y = rms_norm(sum, gain, q; epsilon)",
     "pattern: 'q' is read, but it is no port and no step writes it"},
    {"/pattern/1", "y, q = rms_norm(sum, gain; epsilon)",
     "pattern: 'q' is written, but it is no port and no step reads it"},
    {"/escapes", json::array(),
     "pattern: 'sum' is a port that a later step reads: list it in 'escapes'"},
    {"/escapes", {"y"}, "escapes.0: 'y' is not a port that one step writes and another reads"},
    {"/ports/r",
     {{"like", "q"}},
     "ports.r.like: 'q' is not a port, or ports are like each other in a circle"},
    {"/ports/x",
     {{"like", "r"}},
     "ports.x.like: 'r' is not a port, or ports are like each other in a circle"},
    {"/ports/x/dtype", "U", "ports.x.dtype: 'U' is neither a dtype nor a symbol of 'dtypes'"},
    {"/ports/x/shape/0", 0, "ports.x.shape.0: an extent is at least 1, found 0"},
    {"/ports/x/shape/0", true, "ports.x.shape.0: expected a string, found boolean"},
    {"/ports/sum/may_alias", "y",
     "ports.sum.may_alias: an output may alias an input, 'sum' to 'y' is not that"},
    {"/constraints/0", "dim.hidden % 8", "constraints.0: expected a condition, found an integer"},
    {"/params/rows_per_block/default", 3, "params.rows_per_block.default: 3 is none of the values"},
    {"/params/rows_per_block/values", {1, 1}, "params.rows_per_block.values.1: 1 stands twice"},
    {"/params/n m",
     {{"values", {1}}, {"default", 1}},
     "params.n m: 'n m' is not a name: letters, digits and underscores, no digit first"},
    {"/hooks/1st", "sum",
     "hooks.1st: '1st' is not a name: letters, digits and underscores, no digit first"},
    {"/dtypes/T-2",
     {"float16"},
     "dtypes.T-2: 'T-2' is not a name: letters, digits and underscores, no digit first"},
    {"/workspace/bytes", -1, "workspace.bytes: is -1, the least is 0"},
    {"/resources/registers", "8 - 16", "resources.registers: is -8, the least is 0"},
    {"/weights",
     {{{"port", "y"}, {"transform", "transpose"}}},
     "weights.0.port: 'y' is not an input port"},
    {"/weights",
     {{{"port", "gain"}, {"transform", "flip"}}},
     "weights.0.transform: 'flip' is no transform: transpose, concat, interleave, fold_scale, "
     "centre, colsum"},
    {"/workspace/bytes", "attr.epsilon",
     "workspace.bytes: expected an integer expression, found a float"},
    {"/launch/grid", json::array(), "launch.grid: one to three extents, found 0"},
    {"/launch/arguments",
     {"x", "r", "gain", "sum"},
     "launch.arguments: the port 'y' is not passed to the kernel"},
    {"/launch/arguments/0",
     {{"tensor_map", "z"}, {"box", {1, 64}}},
     "launch.arguments.0.tensor_map: 'z' is not a port that is always there"},
    {"/launch/arguments/0",
     {{"tensor_map", "x"}, {"box", {64}}},
     "launch.arguments.0.box: the port 'x' has 2 axes, the box 1"},
    {"/launch/arguments/0", "mask.order",
     "launch.arguments.0: mask.order is of the mask of an attention, and the pattern has none"},
    {"/hooks/epilogue", "x", "hooks.epilogue: no step writes 'x'"},
    {"/tests/0", {{"rows", 1}}, "tests.0.rows: no port has a dim 'rows'"},
    {"/tests/0", {{"tokens", 0}}, "tests.0.tokens: a dim is at least 1, found 0"},
    {"/tests/0", {{"tokens", 8}}, "tests.0: the dim 'hidden' of the port 'gain' is missing"},
};

}  // namespace

TEST_CASE("each fault has its own error") {
  for (const Fault& fault : kFaults) {
    json header = full_header();
    header[json::json_pointer(fault.pointer)] = fault.value;
    CAPTURE(fault.pointer);
    CHECK(error_of(header) == fault.error);
  }
  for (const char* field : {"contract", "name", "version", "summary", "ports", "pattern", "dtypes",
                            "resources", "launch"}) {
    json header = full_header();
    header.erase(field);
    CHECK(error_of(header) == std::string("the header: the field '") + field + "' is missing");
  }
}

TEST_CASE("a parameter space without bounds is refused") {
  json header = full_header();
  for (int p = 0; p < 5; ++p) {
    json values = json::array();
    for (int i = 0; i < 20; ++i) {
      values.push_back(i);
    }
    header["params"]["p" + std::to_string(p)] = {{"values", values}, {"default", 0}};
  }
  CHECK(error_of(header) ==
        "params.p3.values: a parameter has at most 64 values, and a template 131072 settings");
}

}  // namespace stof::contract
