// Layouts of large fixed masks that plans have the GPU build.
#include "engine/gpu_layouts.hpp"

#include <vector>

#include <doctest/doctest.h>

#include "error_of.hpp"
#include "stof/stof.hpp"

using namespace stof;  // NOLINT(google-build-using-namespace)

TEST_CASE("the layouts that the host builds, bit for bit") {
  const mask::Extent large = {.batch = 2, .heads = 2, .q_len = 2100, .kv_len = 2300};
  const mask::Extent small = {.q_len = 300, .kv_len = 200};
  HostTensor keep(DType::Bool, {2100, 2300});
  for (std::int64_t i = 0; i < keep.element_count(); i += 1 + i % 577) {
    keep.set(i, 1);
  }
  const std::vector<Mask> masks = {
      Mask(), causal(), sliding_window(100, 3), random_tokens(0.01, 3),
      strided(7) || global_tokens(70), bigbird(64, 1, 1, 2, 5),
      causal() && query_position() - key_position() < 300 * (head_index() + 2 * batch_index() + 1),
      // Rounded apart on the host and on the GPU: stays on the host.
      exp(to_float(query_position() - key_position()) / 7.0) > 2.5, Mask::dense(keep.view())};
  for (const Mask& mask : masks) {
    INFO(mask.text());
    CHECK(engine::build_layout(0, mask, large) == mask::build_layout(mask, large));
    if (mask.is_expression()) {
      CHECK(engine::build_layout(0, mask, small) == mask::build_layout(mask, small));
    }
  }
}

TEST_CASE("a mask that shows nothing is the same error") {
  const mask::Extent extent = {.q_len = 3000, .kv_len = 3000};
  const Mask nothing = key_position() * 2 == query_position() * 2 + 1;
  const auto message = test::error_of([&] { mask::build_layout(nothing, extent); });
  CHECK(test::error_of([&] { engine::build_layout(0, nothing, extent); }) == message);
}
