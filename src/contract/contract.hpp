#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "expr/evaluate.hpp"
#include "kernel/kernel_config.hpp"
#include "stof/dtype.hpp"
#include "stof/expr.hpp"

namespace stof::contract {

// One extent of a port: a dim by name, or an expression that the extent must equal.
struct Extent {
  std::string dim;  // empty where it is an expression
  Expr value = 0;
};

// A tensor at the border of a kernel. Where the graph's tensor has a higher rank than the port, the
// first extent is the product of its leading ones.
struct Port {
  std::string name;
  std::vector<Extent> shape;  // outermost first
  std::string dtype;          // a name of `dtypes`, or of a dtype
  std::string may_alias;      // an input that this output may overwrite, or empty
  bool is_output = false;
  // Said to be so, or only optional operators read it; the kernel gets a null pointer then.
  bool is_optional = false;
};

struct PatternAttribute {
  std::string name;
  ScalarType type = ScalarType::Float;
  std::optional<double> value;  // the operator must have this one; else it binds attr.<name>
};

// One operator of the pattern: outputs = op(inputs; attributes), or op|alternative|…. An optional
// one may be absent from the graph; its first input then stands for its output.
struct PatternStep {
  std::vector<std::string> outputs;
  std::string op;
  std::vector<std::string> alternatives;  // that may stand in its place
  bool is_optional = false;
  std::vector<std::string> inputs;
  std::vector<PatternAttribute> attributes;
};

enum class WeightTransform : std::uint8_t {
  Transpose,
  Concat,
  Interleave,
  FoldScale,
  Centre,
  ColumnSum
};

struct WeightRequest {
  std::string port;
  WeightTransform transform = WeightTransform::Transpose;
  std::vector<std::string> with;  // further ports that the transform reads
};

struct Workspace {
  expr::Formula bytes = Expr(0);
  bool must_be_zero = false;  // before the first launch; a launch leaves it zero again
};

// What the author declares; compiling tells the truth, and validation compares the two.
struct Resources {
  expr::Formula threads = Expr(0);
  expr::Formula shared_bytes = Expr(0);
  expr::Formula registers = Expr(0);
};

enum class ArgumentKind : std::uint8_t { Port, TensorMap, Workspace, Mask, Scalar };

struct Argument {
  ArgumentKind kind = ArgumentKind::Scalar;
  std::string name = {};          // of the port of a Port or TensorMap, or of one of kMaskArrays
  expr::Formula value = Expr(0);  // of a Scalar: an int, a float or a bool of the kernel
  bool is_wide = false;           // a long long: it reads a stride, or is one of kWideMaskScalars
  // Of a TensorMap: the extents of a tile, one for each axis of the port.
  std::vector<expr::Formula> box = {};
};

struct Launch {
  std::vector<expr::Formula> grid;     // one to three extents
  std::vector<expr::Formula> block;    // one to three
  std::vector<expr::Formula> cluster;  // none, or one to three
  bool pdl = false;                    // programmatic dependent launch
  std::vector<Argument> arguments;
};

struct Cost {
  expr::Formula flops = Expr(0);
  expr::Formula bytes = Expr(0);
};

struct Constraint {
  std::string text;
  expr::Formula condition = Expr(true);
};

// The header of a template: what it computes, for which tensors, and how it is launched.
struct TemplateContract {
  std::string name;
  std::int64_t version = 1;
  std::string summary;
  std::string replaces;  // the embedded template whose problems it takes first, or empty
  std::vector<Port> ports;
  std::vector<PatternStep> pattern;
  std::vector<std::string> escapes;  // inner values that are written as well
  std::map<std::string, std::vector<DType>> dtypes;
  DType accumulate = DType::Float32;
  std::vector<Constraint> constraints;  // over dim, stride, attr, size, device
  std::vector<kernel::ConfigParameter> params;
  std::vector<Constraint> restrictions;  // over param as well
  std::vector<WeightRequest> weights;
  Workspace workspace;
  Resources resources;
  Launch launch;
  Cost cost;
  std::map<std::string, std::string> hooks;  // hook -> the value that it sees
  bool takes_scores = false;                 // of attention, score modifiers
  bool is_deterministic = true;
  std::vector<std::map<std::string, std::int64_t>> tests;  // dims of cases worth testing

  const Port* find_port(std::string_view name) const;
  // Whether it takes that array of the layout of a mask.
  bool takes_mask_array(std::string_view name) const;
  // Whether launch.arguments hands the scalar ("dim.tokens") to the kernel as it is, so that its
  // source does not depend on it.
  bool is_passed(std::string_view scalar) const;
  // What an argument, a constraint or a restriction reads ("stride.q.heads"). Strides that none
  // reads are packed, and bases of which none reads the alignment are aligned to 16 bytes.
  std::set<std::string, std::less<>> scalars_read;
  bool reads(std::string_view scalar) const { return scalars_read.contains(scalar); }
};

// Reads the JSON header in the first comment of a template. Throws TemplateError at the very place
// in the file; unknown fields and names are errors.
TemplateContract parse_contract(const std::string& file, std::string_view text);

// True if the template opens with a comment that holds a header. Parts and macros have none.
bool has_contract(std::string_view text);

}  // namespace stof::contract
