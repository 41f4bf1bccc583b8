#include "mask/json.hpp"

#include <doctest/doctest.h>

#include "expr/node.hpp"
#include "random_mask.hpp"
#include "stof/error.hpp"

using namespace stof;
using mask::load_mask;
using mask::save_mask;
using mask::Saved;
using nlohmann::json;

namespace {

Mask some_csr() {
  return Mask::csr(std::vector<std::int32_t>{0, 1, 3}, std::vector<std::int32_t>{2, 0, 3}, 4);
}

// What loading says of the document after `change`.
template <typename Change>
std::string fault(const Mask& mask, const Change& change) {
  Saved saved = save_mask(mask);
  change(saved);
  try {
    load_mask(saved.json, saved.tensors, "/mask");
  } catch (const GraphError& error) {
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("masks come back from JSON as they were") {
  for (const mask::Extent& extent : test::hostile_extents()) {
    test::RandomMask random(static_cast<unsigned>(extent.q_len + extent.kv_len), extent);
    for (int i = 0; i < 10; ++i) {
      const Mask mask = random.next(3).mask;
      const Saved saved = save_mask(mask);
      const Mask back = load_mask(json::parse(saved.json.dump()), saved.tensors, "/mask");
      CHECK(back.digest() == mask.digest());
      CHECK(back.text() == mask.text());
    }
  }
}

TEST_CASE("data lies in the sidecar, once") {
  const Saved saved = save_mask(documents({0, 3, 9}) && !documents({0, 3, 9}));
  CHECK(saved.tensors.size() == 1);
  CHECK(saved.json.at("tables").size() == 1);
  CHECK(save_mask(causal()).json == json{{"expression", "k_pos <= q_pos"}});
  CHECK(save_mask(causal()).tensors.empty());
  CHECK(save_mask(some_csr()).tensors.size() == 2);
}

TEST_CASE("tables of floats and captures come back") {
  const Table slopes("slopes", std::vector<double>{0.1, -2.5e300});
  const Capture bias("bias", DType::BFloat16, 2);
  const Expr score_expression = score() + slopes[head_index()] * bias(query_position(), 0);
  const Saved saved = mask::save_expression(score_expression);
  const Expr back = mask::load_expression(saved.json, saved.tensors, score_names(), "/score");
  CHECK(expr::same(back, score_expression));
  const Mask padding = key_padding(Capture("keep", DType::Int32, 2));
  CHECK(load_mask(save_mask(padding).json, {}, "").digest() == padding.digest());
}

TEST_CASE("faults of the document are told with their place") {
  const Mask csr = some_csr();
  CHECK(fault(csr, [](Saved&) {}) == "");
  CHECK(fault(csr, [](Saved& s) { s.json = 3; }) ==
        "/mask: not an object with one of expression, dense, blocks, csr, and, or, not");
  CHECK(fault(csr, [](Saved& s) {
          s.json = json{{"magic", 1}};
        }) == "/mask/magic: no form of mask is called magic");
  CHECK(fault(csr, [](Saved& s) { s.json["csr"]["colour"] = 1; }) ==
        "/mask/csr: unknown field colour");
  CHECK(fault(csr, [](Saved& s) { s.json["csr"].erase("kv_len"); }) ==
        "/mask/csr: no field kv_len");
  CHECK(fault(csr, [](Saved& s) { s.json["csr"]["kv_len"] = "four"; }) ==
        "/mask/csr/kv_len: not an integer of 64 bits");
  CHECK(fault(csr, [](Saved& s) { s.json["csr"]["kv_len"] = 18446744073709551615u; }) ==
        "/mask/csr/kv_len: not an integer of 64 bits");
  CHECK(fault(csr, [](Saved& s) { s.json["csr"]["kv_len"] = 3; }) ==
        "/mask/csr: mask: csr row 1 holds column 3, which is not below kv_len 3");
  CHECK(fault(csr, [](Saved& s) { s.json["csr"]["col_idx"] = "abc"; }) ==
        "/mask/csr/col_idx: no data abc");
  CHECK(fault(csr, [](Saved& s) {
          s.json = json{{"and", json::array({s.json})}};
        }) == "/mask/and: not two masks");
  CHECK(fault(csr,
              [](Saved& s) {
                s.json = json{{"and", json::array({s.json, json{{"not", 5}}})}};
              }) ==
        "/mask/and/1/not: not an object with one of expression, dense, blocks, csr, and, or, not");
}

TEST_CASE("data that its digest does not match is refused") {
  Saved saved = save_mask(some_csr());
  const std::string digest = saved.json["csr"]["col_idx"];
  saved.tensors.at(digest).set(0, 1);
  CHECK_THROWS_AS(load_mask(saved.json, saved.tensors, "/mask"), GraphError);
  CHECK(fault(some_csr(), [&](Saved& s) {
          s.tensors.at(digest) = s.tensors.at(digest).cast(DType::Int64);
        }) == "/mask/csr/col_idx: data " + digest + " is int64 of rank 1, not int32 of rank 1");
}

TEST_CASE("faults in expressions are told with their place") {
  const Mask packed = documents({0, 3, 9});
  CHECK(fault(packed, [](Saved& s) { s.json["tables"] = 1; }) == "/mask/tables: not an object");
  CHECK(fault(packed, [](Saved& s) { s.json.erase("tables"); }).starts_with("/mask/expression: "));
  CHECK(fault(packed, [](Saved& s) {
          s.json["expression"] = "k_pos <=";
        }).starts_with("/mask/expression: "));
  CHECK(fault(packed, [](Saved& s) { s.json["expression"] = "k_pos + q_pos"; }) ==
        "/mask: mask: the predicate k_pos + q_pos has the type int, not bool");
  CHECK(fault(packed, [](Saved& s) {
          s.json["tables"].begin().value()["type"] = "text";
        }).ends_with("type text is neither int nor float"));
  CHECK(fault(packed, [](Saved& s) {
          s.json["captures"] = {{"x", {{"dtype", "int3"}, {"rank", 1}}}};
        }) == "/mask/captures/x/dtype: no dtype int3");
  CHECK(fault(packed, [](Saved& s) {
          s.json["captures"] = {{"x", {{"dtype", "int32"}, {"rank", 9}}}};
        }) == "/mask/captures/x/rank: rank 9 is not in 1 to 4");
}

TEST_CASE("extents that the data does not have allocate nothing") {
  std::vector<std::uint64_t> words = {1, 2};
  const Mask dense = Mask::bits(words, {2, 64});
  CHECK(fault(dense, [](Saved& s) {
          s.json["dense"]["shape"] = {1, 1, 1 << 18, 1 << 18};
        }) == "/mask/dense: mask: bits of [1, 1, 262144, 262144] take 1073741824 words, not 2");
  CHECK(fault(dense, [](Saved& s) {
          s.json["dense"]["shape"] = {2, 64};
        }) == "/mask/dense/shape: not four integers");
  CHECK(fault(dense, [](Saved& s) {
          s.json["dense"]["shape"] = {1, 1, 2, "x"};
        }) == "/mask/dense/shape: not an integer of 64 bits");
  CHECK(fault(dense, [](Saved& s) { s.json["dense"]["shape"] = {-1, 1, -2, 64}; }) != "");
}

TEST_CASE("documents that nest too deep are refused") {
  const std::string deep = fault(some_csr(), [](Saved& s) {
    for (int i = 0; i < 300; ++i) {
      s.json = json{{"not", s.json}};
    }
  });
  CHECK(deep.ends_with("masks nest deeper than the limit of 256"));
}
