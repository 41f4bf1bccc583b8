#include "graph/op_info.hpp"

#include <cstddef>
#include <set>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include "stof/error.hpp"

namespace stof::graph {
namespace {

bool is_snake_case(std::string_view name) {
  return !name.empty() &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_") == std::string_view::npos;
}

TEST_CASE("op_info: the table stands in the order of OpKind and every name is its own") {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < all_ops().size(); ++i) {
    const OpInfo& info = all_ops()[i];
    CHECK(info.kind == static_cast<OpKind>(i));
    CHECK(is_snake_case(info.name));
    CHECK(names.insert(info.name).second);
    CHECK(op_kind_from_name(info.name) == info.kind);
    CHECK_FALSE(info.meaning.empty());
  }
  CHECK(all_ops().back().kind == OpKind::Broadcast);
  CHECK_FALSE(op_kind_from_name("convolution"));
}

TEST_CASE("op_info: classes follow the paper") {
  CHECK(op_info(OpKind::MatMul).op_class == OpClass::ComputeIntensive);
  CHECK(op_info(OpKind::Attention).op_class == OpClass::ComputeIntensive);
  CHECK(op_info(OpKind::Softmax).op_class == OpClass::MemoryIntensive);
  CHECK(op_info(OpKind::Concat).op_class == OpClass::MemoryIntensive);
  CHECK(op_info(OpKind::Slice).op_class == OpClass::View);
}

TEST_CASE("op_info: optional inputs come last") {
  for (const OpInfo& info : all_ops()) {
    CAPTURE(std::string(info.name));
    CHECK(info.min_inputs() >= 1);
    for (int i = 0; i < info.min_inputs(); ++i) {
      CHECK_FALSE(info.inputs[static_cast<std::size_t>(i)].is_optional);
    }
  }
}

TEST_CASE("op_info: attributes are read by type") {
  Operator op{.kind = OpKind::Scale, .attributes = {{"factor", 0.5}}};
  CHECK(attribute<double>(op, "factor") == 0.5);
  CHECK(find_attribute<double>(op, "addend") == nullptr);
  CHECK_THROWS_AS(attribute<bool>(op, "factor"), InternalError);
  CHECK_THROWS_AS(attribute<double>(op, "addend"), InternalError);
  CHECK(op_info(OpKind::Scale).attribute("factor")->type == AttributeType::Float);
  CHECK(op_info(OpKind::Scale).attribute("addend") == nullptr);
}

TEST_CASE("op_info: forms and styles have names") {
  CHECK(mask_form_from_name(name(MaskForm::Csr)) == MaskForm::Csr);
  CHECK_FALSE(mask_form_from_name("coo"));
  CHECK(rotary_style_from_name(name(RotaryStyle::Interleaved)) == RotaryStyle::Interleaved);
  CHECK_FALSE(rotary_style_from_name("whole"));
}

}  // namespace
}  // namespace stof::graph
