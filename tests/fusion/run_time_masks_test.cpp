// What is planned for masks that arrive at run time.
#include "fusion/run_time_masks.hpp"

#include <algorithm>
#include <cstdint>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "error_of.hpp"
#include "fusion/lowering_testing.hpp"
#include "stof/stof.hpp"

using namespace stof;  // NOLINT(google-build-using-namespace)
using kernel::LayoutArray;
using kernel::LayoutArrayKind;
using kernel::LayoutBuild;
using kernel::MemorySpace;
using kernel::Program;
using mask::InputForm;

namespace {

// Attention over queries and keys of the same length; inputs 0 to 2 are q, k and v.
struct Attention {
  explicit Attention(std::int64_t length = 200, std::int64_t batch = 2)
      : shape{batch, 4, length, 64} {
    q = graph.input("q", shape, DType::Float16);
    k = graph.input("k", shape, DType::Float16);
    v = graph.input("v", shape, DType::Float16);
  }

  // Of so many attentions, each of which has its queries from the one before it.
  Program program(const AttentionOptions& options, int attentions = 1) {
    for (int i = 1; i < attentions; ++i) {
      q = graph.attention(q, k, v, options);
    }
    graph.output("o", graph.attention(q, k, v, options));
    return testing::lowered_by(graph).program;
  }

  Shape shape;
  Graph graph{"attention"};
  Tensor q, k, v;
};

const std::string& kernel_of(const Program& program, std::size_t launch = 0) {
  return program.kernels[static_cast<std::size_t>(program.launches[launch].kernel)];
}

int count_arrays(const Program& program, LayoutArrayKind kind) {
  int count = 0;
  for (const kernel::LaunchRecord& launch : program.launches) {
    for (const kernel::LaunchArgument& argument : launch.arguments) {
      const auto* array = std::get_if<LayoutArray>(&argument);
      count += array != nullptr && array->kind == kind ? 1 : 0;
    }
  }
  return count;
}

bool is_input(const kernel::Location& location, int index) {
  return location == kernel::Location{.space = MemorySpace::Input, .index = index};
}

}  // namespace

TEST_CASE("key lengths alone are kv_lengths, over the layout of the fixed mask") {
  Attention attention;
  const MaskInput lengths = attention.graph.mask_input("m", {2}, {.form = MaskForm::KeyLengths});
  const Program program = attention.program({.mask = strided(7), .mask_input = lengths});
  CHECK(program.layouts.empty());
  CHECK(std::ranges::any_of(program.launches.at(0).arguments, [](const auto& argument) {
    const auto* location = std::get_if<kernel::Location>(&argument);
    return location != nullptr && is_input(*location, 3);
  }));
  CHECK(program.constants.size() > 2);
  Attention band(1000);
  const MaskInput of_band = band.graph.mask_input("m", {2}, {.form = MaskForm::KeyLengths});
  CHECK(kernel_of(band.program({.mask = causal(), .mask_input = of_band})) ==
        "attention_band_sm90");
}

TEST_CASE("key lengths beside kv_lengths are built") {
  Attention attention;
  const Tensor kv_lengths = attention.graph.input("kv_lengths", {2}, DType::Int32);
  const MaskInput lengths = attention.graph.mask_input("m", {2}, {.form = MaskForm::KeyLengths});
  const Program program = attention.program({.mask_input = lengths, .kv_lengths = kv_lengths});
  REQUIRE(program.layouts.size() == 1);
  const LayoutBuild& build = program.layouts[0];
  CHECK(build.name == "m");
  CHECK(build.inputs.at(0).form == InputForm::KeyLengths);
  CHECK(is_input(build.inputs[0].data, 4));
}

TEST_CASE("document offsets, of which each query sees a run along a band") {
  for (const Mask& fixed : {Mask(), causal(), sliding_window(30, 7)}) {
    INFO(fixed.text());
    Attention attention;
    const MaskInput offsets = attention.graph.mask_input("m", {5}, {.form = MaskForm::CuSeqlens});
    const Program program = attention.program({.mask = fixed, .mask_input = offsets});
    REQUIRE(program.layouts.size() == 1);
    const mask::Extent extent = program.layouts[0].extent;
    CHECK(program.layouts[0].runs == mask::band(mask::build_layout(fixed, extent)));
    CHECK(program.layouts[0].tile_q.empty());
    CHECK_FALSE(program.layouts[0].has_key_rows);
    CHECK(count_arrays(program, LayoutArrayKind::RowFirst) == 1);
    CHECK(count_arrays(program, LayoutArrayKind::RowEnd) == 1);
    CHECK(kernel_of(program) == "attention_interval_sm90");
  }
}

TEST_CASE("document offsets beside a mask that could differ between heads are lists") {
  Attention attention;
  const MaskInput offsets = attention.graph.mask_input("m", {5}, {.form = MaskForm::CuSeqlens});
  const Mask same = causal() && Mask(head_index() >= 0);
  const Program program = attention.program({.mask = same, .mask_input = offsets});
  REQUIRE(program.layouts.size() == 1);
  CHECK_FALSE(program.layouts[0].runs);
  CHECK(program.layouts[0].tile_q.size() == 1);
}

TEST_CASE("document offsets") {
  Attention attention;
  const MaskInput offsets =
      attention.graph.mask_input("m", {5}, {.form = MaskForm::CuSeqlens, .max_part_tiles = 7});
  const Program program = attention.program({.mask = strided(3), .mask_input = offsets});
  REQUIRE(program.layouts.size() == 1);
  const LayoutBuild& build = program.layouts[0];
  CHECK(build.name == "m");
  CHECK(build.mask.digest() == strided(3).digest());
  CHECK(build.extent == mask::Extent{.batch = 2, .heads = 4, .q_len = 200, .kv_len = 200});
  CHECK(build.inputs.at(0).form == InputForm::CuSeqlens);
  CHECK(build.inputs[0].count == 5);
  CHECK(is_input(build.inputs[0].data, 3));
  CHECK(build.max_part_tiles == 7);
  CHECK_FALSE(build.has_key_rows);
  CHECK_FALSE(build.runs);
  CHECK(build.first_launch == 0);
  CHECK(build.last_launch == 0);
  CHECK(build.tile_q.size() == 1);
  CHECK(count_arrays(program, LayoutArrayKind::Order) == 1);
  CHECK(count_arrays(program, LayoutArrayKind::Bitmaps) == 1);
}

TEST_CASE("a sample drives selection: few keys take lists of keys") {
  constexpr int kAttentions = 12;
  const auto program_like = [](const Mask& like) {
    Attention attention(4096);
    const MaskInput dense = attention.graph.mask_input("m", {2, 1, 4096, 4096},
                                                       {.form = MaskForm::Dense, .like = like});
    return attention.program({.mask_input = dense}, kAttentions);
  };
  CHECK(kernel_of(program_like({})).starts_with("attention_block_wise"));
  CHECK(kernel_of(program_like(causal())).starts_with("attention_block_wise"));
  const Program sparse = program_like(random_tokens(0.0005, 1));
  CHECK(kernel_of(sparse) == "attention_row_wise");
  REQUIRE(sparse.layouts.size() == 1);
  CHECK(sparse.layouts[0].has_key_rows);
  CHECK(sparse.layouts[0].max_keys == 2 * 4096 * 4096);  // a plane a batch element
  CHECK(sparse.layouts[0].inputs.at(0).batch == 2);
  CHECK(sparse.layouts[0].tile_q.empty());
  CHECK(count_arrays(sparse, LayoutArrayKind::KeyCol) == kAttentions);
}

TEST_CASE("tiles of a sample say how large they are, and which are worked on in parts") {
  Attention attention(4096, 1);
  const MaskInput dense = attention.graph.mask_input(
      "m", {1, 1, 4096, 4096}, {.form = MaskForm::Dense, .like = bigbird(64, 3, 2, 3, 3)});
  const Program program = attention.program({.mask_input = dense});
  CHECK(kernel_of(program) == "attention_block_wise_sm90");
  CHECK(program.layouts.at(0).tile_q == std::vector<std::int64_t>{64});
  CHECK(program.arena.size() > 0);  // sums of the two tiles that see all keys
}

TEST_CASE("lists of keys take long to make, and are worth it for several attentions") {
  const auto kernel_for = [](int attentions) {
    Attention attention(4096, 3);
    const MaskInput dense = attention.graph.mask_input(
        "m", {1, 1, 4096, 4096}, {.form = MaskForm::Dense, .like = random_tokens(0.006, 1)});
    return kernel_of(attention.program({.mask_input = dense}, attentions));
  };
  CHECK(kernel_for(1) == "attention_block_wise_sm90");
  CHECK(kernel_for(12) == "attention_row_wise");
}

TEST_CASE("each plane is expected to be like the sample, however many there are") {
  const auto program_of = [](const Shape& shape, const Mask& like) {
    Attention attention(2112);
    return attention.program({.mask_input = attention.graph.mask_input(
                                  "m", shape, {.form = MaskForm::Dense, .like = like})});
  };
  for (const Mask& like : {random_tokens(0.005, 7), random_tokens(0.1, 7)}) {
    const Program shared = program_of({1, 1, 2112, 2112}, like);
    for (const Shape& shape :
         {Shape{2, 1, 2112, 2112}, Shape{1, 4, 2112, 2112}, Shape{2, 4, 2112, 2112}}) {
      INFO(shape.text());
      const Program own = program_of(shape, like);
      CHECK(kernel_of(own) == kernel_of(shared));
      CHECK(own.layouts.at(0).tile_q == shared.layouts.at(0).tile_q);
    }
  }
}

TEST_CASE("lists that could be too long are not taken; those of csr hold what it holds") {
  constexpr std::int64_t kLength = 16384;
  const Mask few = (key_position() - 37 * query_position()) % 4096 == 0;
  {
    Attention attention(kLength, 1);
    const MaskInput offsets = attention.graph.mask_input(
        "m", {99}, {.form = MaskForm::CuSeqlens, .max_part_tiles = 500, .like = few});
    CHECK(kernel_of(attention.program({.mask_input = offsets})) != "attention_row_wise");
  }
  {
    Attention attention(kLength, 1);
    const MaskInput csr = attention.graph.mask_input(
        "m", {kLength, 5000}, {.form = MaskForm::Csr, .max_part_tiles = 500, .like = few});
    const Program program = attention.program({.mask_input = csr});
    CHECK(kernel_of(program) == "attention_row_wise");
    REQUIRE(program.layouts.size() == 1);
    const LayoutBuild& build = program.layouts[0];
    CHECK(build.name == "m");
    CHECK(build.max_keys == 5000);
    CHECK(is_input(build.inputs.at(0).row_ptr, 3));
    CHECK(is_input(build.inputs[0].data, 4));
  }
}

TEST_CASE("attentions of one mask share its layout, as long as they live") {
  Attention attention(2100);
  const MaskInput dense =
      attention.graph.mask_input("m", {1, 1, 2100, 2100}, {.form = MaskForm::Dense});
  const Tensor first =
      attention.graph.attention(attention.q, attention.k, attention.v, {.mask_input = dense});
  const Tensor other = attention.graph.attention(attention.q, attention.k, first,
                                                 {.mask = causal(), .mask_input = dense});
  const Program program = [&] {
    attention.graph.output("x", other);
    attention.v = other;
    return attention.program({.mask_input = dense});
  }();
  REQUIRE(program.layouts.size() == 2);
  CHECK(program.layouts[0].first_launch == 0);
  CHECK(program.layouts[0].last_launch == 2);
  CHECK(program.layouts[1].first_launch == 1);
  CHECK(program.layouts[1].last_launch == 1);
  CHECK(program.layouts[0].tile_q.size() == 1);
}

TEST_CASE("masks with data, and tensors that they read") {
  Attention attention;
  const Capture keep =
      attention.graph.capture(attention.graph.input("keep", {2, 200}, DType::Bool));
  HostTensor bits(DType::Bool, {200, 200});
  bits.set(0, 1);
  const Program program =
      attention.program({.mask = Mask::dense(bits.view()) || key_padding(keep)});
  REQUIRE(program.layouts.size() == 1);
  CHECK(program.layouts[0].name == "keep");
  CHECK(program.layouts[0].inputs.empty());
  REQUIRE(program.layouts[0].captures.size() == 1);
  const kernel::MaskCapture& capture = program.layouts[0].captures.begin()->second;
  CHECK(is_input(capture.data, 3));
  CHECK(capture.shape == std::vector<std::int64_t>{2, 200});
  CHECK(capture.strides == std::vector<std::int64_t>{200, 1});
}

TEST_CASE("data that lies in strides is packed first") {
  Attention attention(2100);
  const Tensor all = attention.graph.input("all", {1, 1, 2100, 3000}, DType::Bool);
  const MaskInput dense{.form = MaskForm::Dense,
                        .tensors = {attention.graph.slice(all, 3, 100, 2100)}};
  const Program program = attention.program({.mask_input = dense});
  REQUIRE(program.layouts.size() == 1);
  CHECK(program.launches.size() == 2);
  CHECK(program.layouts[0].first_launch == 1);
  CHECK(program.layouts[0].inputs.at(0).data.space == MemorySpace::Arena);
}

TEST_CASE("a sample that does not fit is an error, however few tiles there are") {
  for (const std::int64_t length : {64, 2100}) {
    Attention attention(length);
    HostTensor keep(DType::Bool, {length, length});
    const MaskInput sees_nothing = attention.graph.mask_input(
        "m", {1, 1, length, length}, {.form = MaskForm::Dense, .like = Mask::dense(keep.view())});
    CHECK(test::error_of([&] { attention.program({.mask_input = sees_nothing}); }) ==
          fmt::format("mask: no query sees any key with {0} queries and {0} keys: dense[{0}, {0}]",
                      length));
  }
}
