#include "mask_layout/device_mask.hpp"

#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "cuda/device_array.hpp"
#include "expr/node.hpp"
#include "expr/random_expression.hpp"
#include "expr/transform.hpp"
#include "layouts.hpp"
#include "stof/error.hpp"

using namespace stof;
using mask::Extent;

namespace {

// These differ in the last place between the GPU and the host.
bool is_exact(const Expr& expression) {
  const expr::Op op = expression.node().op;
  return op != expr::Op::Exp && op != expr::Op::Log && op != expr::Op::Tanh &&
         std::ranges::all_of(expression.node().operands, is_exact);
}

// A random predicate over what masks know.
Expr random_predicate(test::RandomExpression& random) {
  const Expr q = query_position();
  const Expr k = key_position();
  // Not q_pos itself: a table that it indexes must have an entry for each.
  const expr::Replacements replacements = {{"q_pos", q - 3},
                                           {"k_pos", k - 5},
                                           {"dim.hidden", key_length() - 37 * head_index()},
                                           {"score", to_float(q - k) / 3.0},
                                           {"attr.epsilon", Expr(0.37)},
                                           {"flag", (q + 3 * k + batch_index()) % 4 == 0}};
  Expr predicate = random.truth(4);
  while (!is_exact(predicate)) {
    predicate = random.truth(4);
  }
  return expr::substitute(predicate, replacements);
}

}  // namespace

TEST_CASE("random expressions see the same pairs on the GPU") {
  const Extent extent = {.batch = 2, .heads = 2, .q_len = 130, .kv_len = 200};
  test::RandomExpression random(7);
  random.with_captures = false;
  for (int i = 0; i < 300; ++i) {
    random.with_floats = i % 3 == 0;
    test::check_build(Mask(random_predicate(random)) || Mask(key_position() == 0), extent);
  }
}

TEST_CASE("captures of every dtype are read where they lie") {
  const Extent extent = {.batch = 2, .heads = 1, .q_len = 70, .kv_len = 100};
  for (const DType dtype : {DType::Float16, DType::BFloat16, DType::Float32, DType::Int32,
                            DType::Int64, DType::UInt8, DType::Bool}) {
    INFO(name(dtype));
    const Capture keep("keep", dtype, 2);
    const Expr entry = keep(batch_index(), key_position() + query_position());  // beyond the end
    const Mask mask(keep.type() == ScalarType::Bool ? entry : entry >= 1);
    HostTensor values(dtype, {2, 100});
    for (std::int64_t i = 0; i < 200; ++i) {
      values.set(i, i % 7 < 3 ? 1 : 0);
    }
    const mask::MaskLayout expected = mask::build_layout(mask, extent, {{"keep", values.view()}});
    const mask_layout::DeviceMask copied(mask, extent, {{"keep", values.view()}});
    test::check_layout(mask_layout::build_layout(copied).layout(), expected);

    const cuda::DeviceArray<std::byte> memory{std::span<const std::byte>(values.bytes())};
    TensorView view = values.view();
    view.data = memory.data();
    view.location = Location::Device;
    const mask_layout::DeviceMask read(mask, extent, {{"keep", view}});
    test::check_layout(mask_layout::build_layout(read).layout(), expected);
  }
}

TEST_CASE("a strided capture") {
  const Extent extent = {.q_len = 70, .kv_len = 100};
  const Mask mask(Capture("keep", DType::Int32, 1)(key_position()) != 0);
  std::vector<std::int32_t> values(300);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<std::int32_t>(i % 5 / 4);
  }
  TensorView view{.data = values.data(), .dtype = DType::Int32, .shape = {100}, .strides = {3}};
  const mask::MaskLayout expected = mask::build_layout(mask, extent, {{"keep", view}});
  const cuda::DeviceArray<std::int32_t> memory{std::span<const std::int32_t>(values)};
  view.data = memory.data();
  view.location = Location::Device;
  const mask_layout::DeviceMask device(mask, extent, {{"keep", view}});
  test::check_layout(mask_layout::build_layout(device).layout(), expected);
}

TEST_CASE("captures that do not fit are refused") {
  const Extent extent = {.q_len = 70, .kv_len = 100};
  const Mask mask(Capture("keep", DType::Int32, 1)(key_position()) != 0);
  CHECK_THROWS_WITH_AS(
      mask_layout::DeviceMask(mask, extent),
      "mask: keep is known at run time only; what depends on its values cannot be built here",
      GraphError);
  HostTensor floats(DType::Float32, {100});
  CHECK_THROWS_WITH_AS(mask_layout::DeviceMask(mask, extent, {{"keep", floats.view()}}),
                       "mask: keep is float32 of rank 1, not int32 of rank 1", GraphError);
  HostTensor none(DType::Int32, {0});
  CHECK_THROWS_WITH_AS(mask_layout::DeviceMask(mask, extent, {{"keep", none.view()}}),
                       "mask: keep is empty", GraphError);
}

TEST_CASE("more inputs or captures than kernels take are refused") {
  const Extent extent = {.batch = 2, .heads = 1, .q_len = 70, .kv_len = 100};
  const std::vector<mask_layout::MaskInput> inputs(5, {.form = mask_layout::InputForm::KeyLengths});
  CHECK_THROWS_WITH_AS(mask_layout::DeviceMask(Mask(), extent, {}, inputs),
                       "mask: 5 inputs, more than the limit of 4", GraphError);
  HostTensor values(DType::Int32, {100});
  mask_layout::CaptureTensors captures;
  Expr sees = key_position() == 0;
  for (int i = 0; i < 17; ++i) {
    const std::string name = "c" + std::to_string(i);
    sees = sees || Capture(name, DType::Int32, 1)(key_position()) == 1;
    captures.emplace(name, values.view());
  }
  CHECK_THROWS_WITH_AS(mask_layout::DeviceMask(Mask(sees), extent, captures),
                       "mask: expressions read 17 captures, more than the limit of 16", GraphError);
}
