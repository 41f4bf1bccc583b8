#include "attention_testing.hpp"
#include "stof/mask.hpp"

using namespace stof::testing;
using stof::AttentionOptions;
using stof::Dim;
using stof::DType;
using stof::Graph;
using stof::GraphError;
using stof::HostTensor;
using stof::MaskForm;
using stof::Shape;

namespace {

// Options with a mask input "m" that has the shape of the tensor of that name.
MakeOptions mask_input(HostTensors& tensors, MaskForm form) {
  return [&tensors, form](Graph& graph) {
    return AttentionOptions{.mask_input =
                                graph.mask_input("m", shape_of(tensors.at("m")), {.form = form})};
  };
}

HostTensor integers(const Values& values) {
  return tensor_of(DType::Int32, {static_cast<std::int64_t>(values.size())}, values);
}

}  // namespace

TEST_CASE("key lengths, as a mask input and as kv_lengths") {
  HostTensors tensors = attention_inputs({});
  tensors["m"] = integers({17, 0});
  const auto sees = [](const Position& at) { return at.batch == 0 && at.key < 17; };
  check_attention(tensors, mask_input(tensors, MaskForm::KeyLengths), sees);
  check_attention(
      tensors,
      [&](Graph& graph) {
        return AttentionOptions{.kv_lengths = input_like(graph, "m", tensors["m"])};
      },
      sees);
}

TEST_CASE("cu_seqlens; tokens behind the last offset see nothing") {
  HostTensors tensors = attention_inputs({.q_len = 131});
  tensors["m"] = integers({0, 30, 30, 64, 100});
  const auto document = [](std::int64_t token) {
    return token < 30 ? 0 : token < 64 ? 1 : token < 100 ? 2 : 3;
  };
  check_attention(tensors, mask_input(tensors, MaskForm::CuSeqlens), [&](const Position& at) {
    return document(at.query) == document(at.key) && document(at.key) < 3;
  });
}

TEST_CASE("dense masks, shared by batch elements or heads or not") {
  for (const std::int64_t batch : {1, 2}) {
    for (const std::int64_t heads : {1, 4}) {
      HostTensors tensors = attention_inputs({});
      tensors["m"] = HostTensor(DType::Bool, {batch, heads, 67, 131});
      for (std::int64_t i = 0; i < tensors["m"].element_count(); ++i) {
        tensors["m"].set(i, i * 40503 % 31 < 9 ? 1 : 0);
      }
      check_attention(tensors, mask_input(tensors, MaskForm::Dense), [&](const Position& at) {
        const std::int64_t plane = (batch == 1 ? 0 : at.batch) * heads + (heads == 1 ? 0 : at.head);
        return tensors["m"].at((plane * 67 + at.query) * 131 + at.key) != 0;
      });
    }
  }
}

TEST_CASE("csr masks, with room behind the last entry") {
  HostTensors tensors = attention_inputs({});
  Values row_ptr = {0};
  Values columns;
  for (std::int64_t row = 0; row < 67; ++row) {
    for (std::int64_t key = 0; key < 131; key += 3 + row) {
      columns.push_back(static_cast<double>(key));
    }
    row_ptr.push_back(static_cast<double>(columns.size()));
  }
  columns.resize(columns.size() + 5, -77);
  tensors["m.row_ptr"] = integers(row_ptr);
  tensors["m.col_idx"] = integers(columns);
  check_attention(
      tensors,
      [&](Graph& graph) {
        const Shape shape{67, static_cast<std::int64_t>(columns.size())};
        return AttentionOptions{.mask_input =
                                    graph.mask_input("m", shape, {.form = MaskForm::Csr})};
      },
      [](const Position& at) { return at.key % (3 + at.query) == 0; });
}

TEST_CASE("a fixed mask, a mask input and kv_lengths hide together") {
  HostTensors tensors = attention_inputs({});
  tensors["m"] = integers({100, 60});
  tensors["lengths"] = integers({50, 131});
  check_attention(
      tensors,
      [&](Graph& graph) {
        AttentionOptions options = mask_input(tensors, MaskForm::KeyLengths)(graph);
        options.mask = stof::causal();
        options.kv_lengths = input_like(graph, "lengths", tensors["lengths"]);
        return options;
      },
      [](const Position& at) { return at.key <= at.query && at.key < (at.batch == 0 ? 50 : 60); });
}

TEST_CASE("symbolic lengths take their values from the inputs, each time anew") {
  Graph graph;
  const Dim batch = graph.dim("batch", 1, 8);
  const Dim seq = graph.dim("seq", 1, 200);
  const auto q = graph.input("q", {batch, 4, seq, 5}, DType::Float32);
  const auto k = graph.input("k", {batch, 2, seq, 5}, DType::Float32);
  const auto v = graph.input("v", {batch, 2, seq, 3}, DType::Float32);
  const auto lengths = graph.input("lengths", {batch}, DType::Int32);
  const auto result = graph.attention(q, k, v, {.mask = stof::causal(), .kv_lengths = lengths});
  graph.output("y", graph.merge_heads(result));
  for (const std::int64_t length : {1, 64, 67, 200}) {
    HostTensors tensors = attention_inputs({.q_len = length, .kv_len = length});
    tensors["lengths"] = integers({1, static_cast<double>(length)});
    const AttentionValues expected = naive_attention(
        tensors["q"], tensors["k"], tensors["v"], 1 / std::sqrt(5.0), [&](const Position& at) {
          return at.key <= at.query && at.key < (at.batch == 0 ? 1 : length);
        });
    const auto output = run_exactly(graph, tensors).at("y");
    CHECK(output.shape == Sizes{2, length, 12});
    Values merged;
    for (std::int64_t i = 0; i < 2 * length * 12; ++i) {
      const std::int64_t row = (i / (12 * length) * 4 + i % 12 / 3) * length + i / 12 % length;
      merged.push_back(expected.output[static_cast<std::size_t>(row * 3 + i % 3)]);
    }
    check_close(output.values, merged);
  }
}

TEST_CASE("data that cannot be a mask is an error that names it") {
  const auto fails_with = [](MaskForm form, const Values& values, const char* message) {
    HostTensors tensors = attention_inputs({});
    tensors["m"] = integers(values);
    const Graph graph = attention_graph(tensors, mask_input(tensors, form));
    CHECK_THROWS_WITH_AS(run_exactly(graph, tensors), message, GraphError);
  };
  fails_with(MaskForm::KeyLengths, {5, 132},
             "mask: key_lengths \"m\" holds 132 at position 1, outside 0 to 131");
  fails_with(MaskForm::KeyLengths, {-1, 5},
             "mask: key_lengths \"m\" holds -1 at position 0, outside 0 to 131");
  fails_with(MaskForm::CuSeqlens, {1, 5},
             "mask: cu_seqlens \"m\" holds 1 at position 0, outside 0 to 0");
  fails_with(MaskForm::CuSeqlens, {0, 9, 5},
             "mask: cu_seqlens \"m\" holds 5 at position 2, outside 9 to 131");
  fails_with(MaskForm::CuSeqlens, {0, 132},
             "mask: cu_seqlens \"m\" holds 132 at position 1, outside 0 to 131");
}

TEST_CASE("csr data out of range is an error that names it") {
  const auto fails_with = [](double end, double column, const char* message) {
    HostTensors tensors = attention_inputs({.q_len = 1});
    tensors["m.row_ptr"] = integers({0, end});
    tensors["m.col_idx"] = integers({column});
    const Graph graph = attention_graph(tensors, [](Graph& of) {
      return AttentionOptions{.mask_input = of.mask_input("m", {1, 1}, {.form = MaskForm::Csr})};
    });
    CHECK_THROWS_WITH_AS(run_exactly(graph, tensors), message, GraphError);
  };
  fails_with(2, 0, "mask: csr \"m.row_ptr\" holds 2 at position 1, outside 0 to 1");
  fails_with(1, 131, "mask: csr \"m.col_idx\" holds 131 at position 0, outside 0 to 130");
  fails_with(1, -1, "mask: csr \"m.col_idx\" holds -1 at position 0, outside 0 to 130");
}

TEST_CASE("a mask that no memory holds is an error") {
  const std::int64_t length = std::int64_t{1} << 17;
  HostTensors tensors = attention_inputs({.batch = 1,
                                          .heads = 1,
                                          .kv_heads = 1,
                                          .q_len = length,
                                          .kv_len = length,
                                          .head_dim = 1,
                                          .value_dim = 1});
  tensors["m"] = integers({5});
  const Graph graph = attention_graph(tensors, mask_input(tensors, MaskForm::KeyLengths));
  CHECK_THROWS_WITH_AS(run_exactly(graph, tensors),
                       "mask: [1, 1, 131072, 131072] is too large to be written out in full",
                       GraphError);
}
