// What masks that arrive at run time hold where they are tried: attention sees what it sees of the
// sample as a fixed mask.
#include "engine/mask_sample.hpp"

#include <functional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "engine/segment_check.hpp"
#include "graph/normalise.hpp"
#include "reference/testing.hpp"
#include "stof/stof.hpp"

using namespace stof;  // NOLINT(google-build-using-namespace)

namespace {

using Options = std::function<AttentionOptions(Graph&)>;

graph::Ir attention(const Options& options, std::int64_t q_len, std::int64_t kv_len) {
  Graph built("attention");
  const Tensor q = built.input("q", {2, 2, q_len, 32}, DType::Float16);
  const Tensor k = built.input("k", {2, 2, kv_len, 32}, DType::Float16);
  built.output("o", built.attention(q, k, k, options(built)));
  return graph::normalise_but_attention(built.ir());
}

Options masked(const Shape& shape, const MaskInputOptions& options) {
  return [=](Graph& built) {
    return AttentionOptions{.mask_input = built.mask_input("m", shape, options)};
  };
}

std::vector<double> run(const graph::Ir& ir) {
  engine::HostTensors tensors = engine::random_tensors(ir);
  return testing::run_exactly(Graph(ir), tensors).at("o").values;
}

std::vector<double> with_input(const Shape& shape, const MaskInputOptions& options,
                               std::int64_t q_len = 100, std::int64_t kv_len = 100) {
  return run(attention(masked(shape, options), q_len, kv_len));
}

std::vector<double> with_fixed(const Mask& mask, std::int64_t q_len = 100,
                               std::int64_t kv_len = 100) {
  return run(attention([&](Graph&) { return AttentionOptions{.mask = mask}; }, q_len, kv_len));
}

std::vector<double> offsets(const Shape& shape, const Mask& like) {
  const graph::Ir ir =
      attention(masked(shape, {.form = MaskForm::CuSeqlens, .like = like}), 100, 100);
  return testing::values_of(engine::random_tensors(ir).at("m"));
}

}  // namespace

TEST_CASE("bytes are those of the sample, of each plane") {
  const Mask like = random_tokens(0.2, 3) && (query_position() + head_index()) % 3 != 0 &&
                    key_position() < 90 - batch_index();
  CHECK(with_input({2, 2, 100, 100}, {.form = MaskForm::Dense, .like = like}) == with_fixed(like));
  CHECK(with_input({1, 1, 70, 130}, {.form = MaskForm::Dense, .like = causal()}, 70, 130) ==
        with_fixed(causal(), 70, 130));
  CHECK(with_input({1, 1, 100, 100}, {.form = MaskForm::Dense}) == with_fixed(Mask()));
}

TEST_CASE("offsets are those of the documents of the sample") {
  const Mask like = documents({0, 30, 31, 64, 100});
  CHECK(offsets({9}, like) == std::vector<double>{0, 30, 31, 64, 100, 100, 100, 100, 100});
  CHECK(offsets({9}, like && causal()) == offsets({9}, like));
  CHECK(offsets({4}, like) == std::vector<double>{0, 30, 31, 100});  // more than there is room for
  CHECK(offsets({3}, {}) == std::vector<double>{0, 100, 100});
  CHECK(with_input({9}, {.form = MaskForm::CuSeqlens, .like = like}) == with_fixed(like));
}

TEST_CASE("columns are those of the sample, as far as there is room") {
  const Mask like = random_tokens(0.1, 5);
  CHECK(with_input({100, 10000}, {.form = MaskForm::Csr, .like = like}) == with_fixed(like));
  CHECK(with_input({100, 500}, {.form = MaskForm::Csr}) == with_fixed(Mask(key_position() < 5)));
}

TEST_CASE("lengths beside kv_lengths are all keys") {
  CHECK(run(attention(
            [](Graph& built) {
              return AttentionOptions{
                  .mask_input = built.mask_input("m", {2}, {.form = MaskForm::KeyLengths}),
                  .kv_lengths = built.input("lengths", {2}, DType::Int32)};
            },
            100, 100)) == with_fixed(Mask()));
}
