#include "mask/signature.hpp"

#include <doctest/doctest.h>

#include "random_mask.hpp"

using namespace stof;
using mask::Extent;
using mask::MaskSignature;

namespace {

MaskSignature signature(const Mask& mask, const Extent& extent = {.q_len = 1024, .kv_len = 1024}) {
  return mask::signature_of(mask, mask::measure(mask, mask::build_layout(mask, extent)));
}

}  // namespace

TEST_CASE("steps are four an octave") {
  CHECK(mask::step_of(0) == 0);
  CHECK(mask::step_of(1) == 1);
  CHECK(mask::step_of(2) == 5);
  CHECK(mask::step_of(3) == 7);
  CHECK(mask::step_of(4) == 9);
  CHECK(mask::step_of(5) == 10);
  CHECK(mask::step_of(7) == 12);
  CHECK(mask::step_of(8) == 13);
  CHECK(mask::step_of(1023) == 40);
  CHECK(mask::step_of(1024) == 41);
  CHECK(mask::step_of(std::int64_t{1} << 62) == 249);
  for (std::int64_t n = 0; n < 5000; ++n) {
    REQUIRE(mask::step_of(n) <= mask::step_of(n + 1));
  }
}

// Tuning records of other builds name masks by this text: it may never change.
TEST_CASE("the text is stable") {
  CHECK(signature(causal()).text() ==
        "mask 1 interval_rows batch=all heads=all q=2^10 k=2^10 full=28 part=17 row=17 "
        "keys=1,37,41 <=(k_pos, q_pos)");
  CHECK(signature(causal()).digest().size() == 32);
}

TEST_CASE("masks that differ in numbers alone share a signature") {
  CHECK(signature(sliding_window(500, 20)) == signature(sliding_window(501, 21)));
  CHECK(signature(random_tokens(0.1, 1)) == signature(random_tokens(0.1001, 2)));
  const auto packed = [](std::int32_t first) {
    return documents({0, first, 520, 1024}) && causal();
  };
  CHECK(signature(packed(300)) == signature(packed(301)));
  CHECK(signature(packed(300)).digest() == signature(packed(301)).digest());
}

TEST_CASE("another form, length or density is another signature") {
  const MaskSignature window = signature(sliding_window(500, 20));
  CHECK(signature(sliding_window(50, 20)) != window);
  CHECK(signature(sliding_window(500, 20), {.q_len = 2048, .kv_len = 2048}) != window);
  CHECK(signature(Mask(query_position() - key_position() <= 500 &&
                       key_position() - query_position() < 21)) != window);
  const Extent heads = {.batch = 1, .heads = 4, .q_len = 1024, .kv_len = 1024};
  CHECK(signature(Mask(key_position() <= query_position() + head_index()), heads).per_head);
  CHECK_FALSE(signature(causal(), heads).per_head);
}

TEST_CASE("lengths fall into powers of two") {
  const auto q_len = [](std::int64_t n) {
    return signature(Mask(), {.q_len = n, .kv_len = 1}).q_len;
  };
  CHECK(q_len(1) == 0);
  CHECK(q_len(2) == 1);
  CHECK(q_len(3) == 2);
  CHECK(q_len(4) == 2);
  CHECK(q_len(5) == 3);
  CHECK(q_len(1024) == 10);
  CHECK(q_len(1025) == 11);
}

TEST_CASE("skeletons tell forms apart and leave data out") {
  CHECK(signature(Mask()).skeleton == "true");
  CHECK(signature(documents({0, 100, 1024})).skeleton == "==(t0(q_pos), t0(k_pos))");
  CHECK(signature(documents({0, 100, 1024}) && documents({0, 200, 1024})).skeleton ==
        "&&(==(t0(q_pos), t0(k_pos)), ==(t1(q_pos), t1(k_pos)))");
  std::vector<std::uint8_t> keep(1024 * 1024, 1);
  keep[5] = 0;
  const Mask data = Mask::dense(
      {.data = keep.data(), .dtype = DType::Bool, .shape = {1024, 1024}, .strides = {}});
  CHECK(signature(!data).skeleton == "~(dense)");
  CHECK(signature(data && causal()).skeleton == "&(dense, <=(k_pos, q_pos))");
  CHECK(signature(random_blocks(64, 100, 1)).skeleton.size() == 32);
}
