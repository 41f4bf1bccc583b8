// Masks that arrive at run time, on a GPU: against the reference, and against the fixed mask of the
// same content.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>

#include "cuda/check.hpp"
#include "cuda/stream.hpp"
#include "error_of.hpp"
#include "gpu_testing.hpp"
#include "mask/evaluate.hpp"
#include "stof/stof.hpp"

using namespace stof;           // NOLINT(google-build-using-namespace)
using namespace stof::testing;  // NOLINT(google-build-using-namespace)

namespace {

constexpr double kTolerance = 1e-3;
constexpr const char* kBlockWise = "attention/block_wise";
constexpr const char* kRowWise = "attention/row_wise";
constexpr const char* kAttention = "attention/";  // either
// What a plan says of a mask whose rows see a run of keys each, and no more of.
constexpr const char* kRuns = ", runs of keys, ";

bool is_hopper() {
  int major = 0;
  STOF_CUDA(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0));
  return major == 9;
}

using MakeOptions = std::function<AttentionOptions(Graph&)>;

const Engine& gpu() {
  static const Engine engine({.backend = Backend::Gpu, .cache_dir = ""});
  return engine;
}

// Several attentions have their queries from the one before them: lists of keys of a mask that
// arrives take so long to make that one alone does not have them.
constexpr int kSeveral = 24;

Graph attention(const mask::Extent& extent, const MakeOptions& make_options,
                DType dtype = DType::Float16, int attentions = 1) {
  Graph graph("attention");
  Tensor q = graph.input("q", {extent.batch, extent.heads, extent.q_len, 64}, dtype);
  const Tensor k = graph.input("k", {extent.batch, 2, extent.kv_len, 64}, dtype);
  const Tensor v = graph.input("v", {extent.batch, 2, extent.kv_len, 64}, dtype);
  const AttentionOptions options = make_options(graph);
  for (int i = 1; i < attentions; ++i) {
    q = graph.attention(q, k, v, options);
  }
  const AttentionResult result = graph.attention_with_lse(q, k, v, options);
  graph.output("o", result.output);
  graph.output("lse", result.lse);
  return graph;
}

HostTensors operands(const mask::Extent& extent, DType dtype = DType::Float16) {
  HostTensors tensors;
  tensors.emplace("q", random_tensor({extent.batch, extent.heads, extent.q_len, 64}, 1, dtype));
  tensors.emplace("k", random_tensor({extent.batch, 2, extent.kv_len, 64}, 2, dtype, -1, 1));
  tensors.emplace("v", random_tensor({extent.batch, 2, extent.kv_len, 64}, 3, dtype));
  return tensors;
}

HostTensor int32s(const Values& values) {
  return tensor_of(DType::Int32, {std::ssize(values)}, values);
}

// What a mask shows, as the tensors of a run-time mask.
HostTensor dense_of(const Mask& mask, const mask::Extent& extent, std::int64_t batch = 1,
                    std::int64_t heads = 1) {
  const mask::BitTensor bits = mask::evaluate_all(mask, extent);
  HostTensor keep(DType::Bool, {batch, heads, extent.q_len, extent.kv_len});
  std::int64_t at = 0;
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t h = 0; h < heads; ++h) {
      for (std::int64_t q = 0; q < extent.q_len; ++q) {
        for (std::int64_t k = 0; k < extent.kv_len; ++k) {
          keep.set(at++, bits.at(b, h, q, k) ? 1 : 0);
        }
      }
    }
  }
  return keep;
}

// Whatever byte is not 0 is true.
void use_other_bytes(HostTensor& keep) {
  std::uint8_t next = 0;
  for (std::byte& byte : keep.bytes()) {
    next = next == 255 ? 1 : next + 1;
    byte = byte == std::byte{0} ? byte : std::byte{next};
  }
}

// With room for `count` columns.
std::pair<HostTensor, HostTensor> csr_of(const Mask& mask, const mask::Extent& extent,
                                         std::int64_t count) {
  const mask::BitTensor bits = mask::evaluate_all(mask, extent);
  HostTensor row_ptr(DType::Int32, {extent.q_len + 1});
  HostTensor col_idx(DType::Int32, {count});
  std::int64_t at = 0;
  for (std::int64_t q = 0; q < extent.q_len; ++q) {
    for (std::int64_t k = extent.kv_len; k-- > 0;) {  // in any order within a row
      if (bits.at(0, 0, q, k)) {
        col_idx.set(at++, static_cast<double>(k));
      }
    }
    row_ptr.set(q + 1, static_cast<double>(at));
  }
  return {std::move(row_ptr), std::move(col_idx)};
}

void check_close(const std::map<std::string, Values>& actual, const reference::Outputs& expected,
                 double tolerance) {
  for (const auto& output : expected) {
    INFO(output.first);
    CHECK(relative_norm(actual.at(output.first), output.second.values) <= tolerance);
  }
}

// Runs twice against the reference.
std::map<std::string, Values> check(const Graph& graph, HostTensors& tensors,
                                    const std::string& kernel, double tolerance = kTolerance) {
  const Plan plan = gpu().build(graph);
  CHECK(plan.explain().find(kernel) != std::string::npos);
  auto actual = run_plan(gpu(), plan, tensors);
  CHECK(run_plan(gpu(), plan, tensors) == actual);
  check_close(actual, run_graph(graph, tensors, {.precision = Precision::Float64}), tolerance);
  return actual;
}

// Buffers of every tensor of a plan, and an execution over them.
class Bound {
 public:
  Bound(const Plan& plan, const HostTensors& tensors) {
    Bindings bindings;
    const auto add = [&](const TensorInfo& info) {
      bindings.emplace(info.name, buffers_.emplace(info.name, gpu().allocate(info)).first->second);
    };
    std::ranges::for_each(plan.inputs(), add);
    std::ranges::for_each(plan.outputs(), add);
    for (const auto& [name, tensor] : tensors) {
      upload(name, tensor);
    }
    run_.emplace(plan.bind(gpu().load_weights(plan, std::span<const NamedTensor>()), bindings));
  }

  void upload(const std::string& name, const HostTensor& tensor) {
    buffers_.at(name).upload(HostTensor(tensor).view());
  }
  Values download(const std::string& name) const { return values_of(buffers_.at(name).download()); }
  Execution& run() { return *run_; }

 private:
  std::map<std::string, Buffer> buffers_;
  std::optional<Execution> run_;
};

MakeOptions masked(MaskForm form, const Shape& shape, const Mask& like = {}, const Mask& fixed = {},
                   std::int64_t max_part_tiles = 0) {
  return [=](Graph& graph) {
    return AttentionOptions{
        .mask = fixed,
        .mask_input = graph.mask_input(
            "m", shape, {.form = form, .max_part_tiles = max_part_tiles, .like = like})};
  };
}

MakeOptions fixed_to(const Mask& mask) {
  return [=](Graph&) { return AttentionOptions{.mask = mask}; };
}

constexpr mask::Extent kSmall = {.batch = 2, .heads = 4, .q_len = 200, .kv_len = 200};
// A bound on part tiles, of which there are fewer: dense masks always have tiles where there is
// one.
constexpr std::int64_t kHasTiles = 1000;
// Of so many keys, few that are seen are gathered in half the time that blocks of tiles take.
constexpr mask::Extent kLong = {.batch = 2, .heads = 4, .q_len = 256, .kv_len = 1024};

}  // namespace

TEST_CASE("key lengths, with an empty batch element and a fixed mask") {
  HostTensors tensors = operands(kSmall);
  tensors.emplace("m", int32s({137, 0}));
  for (const Mask& fixed : {Mask(), causal(), strided(7)}) {
    check(attention(kSmall, masked(MaskForm::KeyLengths, {2}, {}, fixed)), tensors, kAttention);
  }
  const Mask few = random_tokens(0.005, 3);
  HostTensors long_tensors = operands(kLong);
  long_tensors.emplace("m", int32s({1024, 300}));
  check(attention(kLong, masked(MaskForm::KeyLengths, {2}, few, few)), long_tensors, kRowWise);
  tensors.emplace("kv_lengths", int32s({90, 200}));
  tensors.insert_or_assign("m", int32s({200, 31}));
  check(attention(kSmall,
                  [](Graph& graph) {
                    AttentionOptions options = masked(MaskForm::KeyLengths, {2})(graph);
                    options.kv_lengths = graph.input("kv_lengths", {2}, DType::Int32);
                    return options;
                  }),
        tensors, "layout of 'm'");
}

TEST_CASE("document offsets, behind which no token belongs to a document") {
  HostTensors tensors = operands(kSmall);
  for (const Values& offsets : {Values{0, 64, 64, 130, 190}, Values{0, 0, 0, 0, 1},
                                Values{0, 50, 100, 150, 200}, Values{0, 200, 200, 200, 200}}) {
    tensors.insert_or_assign("m", int32s(offsets));
    for (const Mask& fixed : {Mask(), causal(), sliding_window(30, 7), strided(3)}) {
      const bool is_of_runs = is_hopper() && fixed.digest() != strided(3).digest();
      check(attention(kSmall, masked(MaskForm::CuSeqlens, {5}, {}, fixed)), tensors,
            is_of_runs ? kRuns : kBlockWise);
    }
  }
  // As many as no piece of shared memory holds, also beside lengths.
  const mask::Extent many = {.batch = 2, .heads = 2, .q_len = 5000, .kv_len = 5000};
  HostTensors many_tensors = operands(many);
  Values ones;
  for (int i = 0; i <= 4500; ++i) {
    ones.push_back(i);
  }
  ones.push_back(4990);
  many_tensors.emplace("m", int32s(ones));
  many_tensors.emplace("kv_lengths", int32s({4800, 30}));
  check(attention(many,
                  [&](Graph& graph) {
                    AttentionOptions options =
                        masked(MaskForm::CuSeqlens, {std::ssize(ones)}, {}, causal())(graph);
                    options.kv_lengths = graph.input("kv_lengths", {2}, DType::Int32);
                    return options;
                  }),
        many_tensors, kAttention);
  const mask::Extent uneven = {.batch = 1, .heads = 2, .q_len = 70, .kv_len = 333};
  HostTensors uneven_tensors = operands(uneven);
  uneven_tensors.emplace("m", int32s({0, 30, 300}));
  check(attention(uneven, masked(MaskForm::CuSeqlens, {3})), uneven_tensors,
        is_hopper() ? kRuns : kBlockWise);
  // A sample of short documents: lists of keys.
  tensors.insert_or_assign("m", int32s({0, 3, 5, 9, 200}));
  check(attention(kSmall,
                  masked(MaskForm::CuSeqlens, {5},
                         sliding_window(0, 0) && strided(3) && Mask(query_position() % 2 == 0))),
        tensors, kAttention);
}

TEST_CASE("dense masks, shared and for each batch element and head") {
  const Mask hostile = random_tokens(0.3, 5) && Mask(query_position() % 5 != 2) &&
                       (query_position() + head_index() * 7 + batch_index() * 3) % 4 != 1;
  const Mask few = random_tokens(0.005, 7);
  for (const auto& [batch, heads] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{1, 1}, {2, 1}, {1, 4}, {2, 4}}) {
    HostTensors tensors = operands(kSmall);
    const Shape shape = {batch, heads, 200, 200};
    INFO(shape.text());
    tensors.emplace("m", dense_of(hostile, kSmall, batch, heads));
    for (const Mask& fixed : {Mask(), causal()}) {
      check(attention(kSmall, masked(MaskForm::Dense, shape, {}, fixed, kHasTiles)), tensors,
            kBlockWise);
    }
  }
  HostTensors long_tensors = operands(kLong);
  long_tensors.emplace("m", dense_of(few, kLong, 2, 1));
  check(attention(kLong, masked(MaskForm::Dense, {2, 1, 256, 1024}, few, {}, kHasTiles),
                  DType::Float16, kSeveral),
        long_tensors, kRowWise);
  HostTensors tensors = operands(kSmall, DType::BFloat16);
  tensors.emplace("m", dense_of(hostile, kSmall, 2, 1));
  check(attention(kSmall, masked(MaskForm::Dense, {2, 1, 200, 200}, {}, {}, kHasTiles),
                  DType::BFloat16),
        tensors, kBlockWise, 6e-3);
}

// Queries and keys, planes of the mask, what is fixed beside it, and what becomes of scores.
struct DenseCase {
  mask::Extent extent;
  std::int64_t head_dim = 64;
  std::int64_t mask_batch = 1, mask_heads = 1;
  Mask fixed = {};
  bool has_score = false;
  bool is_slice = false;  // of wider rows
  bool has_lengths = false;
};

TEST_CASE("small dense masks as part of scores, a byte for each") {
  const Mask hostile = random_tokens(0.3, 5) && Mask(query_position() % 5 != 2) &&
                       (query_position() + head_index() * 7 + batch_index() * 3) % 4 != 1;
  std::vector<DenseCase> cases;
  // Rows of whole chunks and of none, keys that end in a step, and wide heads, which have lists.
  const std::vector<std::int64_t> head_dims = {64, 128, 32, 256, 80};
  for (const std::int64_t length : {1, 7, 16, 64, 72, 130, 208, 256, 300, 512}) {
    const std::int64_t head_dim = head_dims[cases.size() / 2 % head_dims.size()];
    cases.push_back({{2, 4, length, length}, 64, 2, 4});
    cases.push_back({{3, 2, length, length}, head_dim, 1, 2, causal(), true});
  }
  for (const std::int64_t q_len : {1, 3, 4, 16, 100}) {
    for (const std::int64_t kv_len : {64, 96, 333, 1024}) {
      cases.push_back({{2, 4, q_len, kv_len}, 64, 2, 1});
      cases.push_back({{2, 8, q_len, kv_len}, 128, 2, 8, {}, true});
      cases.push_back({{3, 4, q_len, kv_len}, 64, 3, 1, causal(), false, false, true});
    }
  }
  cases.push_back({{1, 2, 3, 5000}, 64});
  cases.push_back({{2, 4, 192, 192}, 64, 1, 1, {}, false, true});
  cases.push_back({{2, 4, 192, 208}, 96, 1, 4, causal(), true, true, true});
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const DenseCase& one = cases[i];
    const DType dtype = i % 3 == 2 ? DType::BFloat16 : DType::Float16;
    const mask::Extent& extent = one.extent;
    INFO(extent.q_len << " queries, " << extent.kv_len << " keys, " << one.head_dim
                      << " dimensions, " << name(dtype));
    const auto& [batch, heads, q_len, kv_len] = extent;
    const std::int64_t kv_heads = heads / 2;
    const Shape rows = {one.mask_batch, one.mask_heads, q_len, kv_len + (one.is_slice ? 64 : 0)};
    Graph graph("attention");
    const Tensor q = graph.input("q", {batch, heads, q_len, one.head_dim}, dtype);
    const Tensor k = graph.input("k", {batch, kv_heads, kv_len, one.head_dim}, dtype);
    const Tensor v = graph.input("v", {batch, kv_heads, kv_len, one.head_dim}, dtype);
    const Tensor keep = graph.input("m", rows, DType::Bool);
    const Tensor seen = one.is_slice ? graph.slice(keep, 3, 32, kv_len) : keep;
    AttentionOptions options = {
        .mask = one.fixed, .mask_input = MaskInput{.form = MaskForm::Dense, .tensors = {seen}}};
    HostTensors tensors;
    tensors.emplace("q", random_tensor({batch, heads, q_len, one.head_dim}, 1, dtype));
    tensors.emplace("k", random_tensor({batch, kv_heads, kv_len, one.head_dim}, 2, dtype, -1, 1));
    tensors.emplace("v", random_tensor({batch, kv_heads, kv_len, one.head_dim}, 3, dtype));
    mask::Extent of_rows = extent;
    of_rows.kv_len = rows[3].value();
    tensors.emplace("m", dense_of(hostile, of_rows, one.mask_batch, one.mask_heads));
    use_other_bytes(tensors.at("m"));
    if (one.has_score) {
      options.score = 5.0 * tanh(score() / 5.0);
    }
    if (one.has_lengths) {
      options.kv_lengths = graph.input("lengths", {batch}, DType::Int32);
      const std::int64_t half = kv_len / 2;
      Values lengths(static_cast<std::size_t>(batch), static_cast<double>(half));
      lengths.front() = 0;
      tensors.emplace("lengths", int32s(lengths));
    }
    const AttentionResult result = graph.attention_with_lse(q, k, v, options);
    graph.output("o", result.output);
    graph.output("lse", result.lse);
    check(graph, tensors, kAttention, dtype == DType::Float16 ? kTolerance : 6e-3);
    CHECK(gpu().build(graph).explain().find("layout of") == std::string::npos);
  }
}

TEST_CASE("a mask of bytes and a bias of halves in one score") {
  const Mask hostile = random_tokens(0.4, 5) && Mask(query_position() % 5 != 2);
  for (const Mask& fixed : {Mask(), causal(), sliding_window(100, 30)}) {
    for (const auto& sizes :
         std::vector<std::array<std::int64_t, 3>>{{64, 64, 64},
                                                  {200, 208, 64},
                                                  {130, 272, 128},
                                                  {321, 328, 80},  // halves in chunks, bytes not
                                                  {900, 912, 64},
                                                  {300, 304, 256},
                                                  {3, 640, 64}}) {
      const std::int64_t q_len = sizes[0], kv_len = sizes[1], head_dim = sizes[2];
      INFO(fixed.text() << ": " << q_len << " queries, " << kv_len << " keys, " << head_dim
                        << " dimensions");
      constexpr std::int64_t kBatch = 2, kHeads = 4;
      Graph graph("attention");
      const Tensor q = graph.input("q", {kBatch, kHeads, q_len, head_dim}, DType::Float16);
      const Tensor k = graph.input("k", {kBatch, kHeads, kv_len, head_dim}, DType::Float16);
      const Tensor v = graph.input("v", {kBatch, kHeads, kv_len, head_dim}, DType::Float16);
      const Capture keep = graph.capture(graph.input("m", {1, 1, q_len, kv_len}, DType::Bool));
      const Capture bias =
          graph.capture(graph.input("bias", {kHeads, q_len, kv_len}, DType::Float16));
      const Expr is_seen = keep(0, 0, query_position(), key_position());
      const Score biased = score() + bias(head_index(), query_position(), key_position());
      graph.output(
          "o", graph.attention(q, k, v,
                               {.mask = fixed, .score = select(is_seen, biased, score() - 2.0)}));
      HostTensors tensors;
      tensors.emplace("q", random_tensor({kBatch, kHeads, q_len, head_dim}, 1, DType::Float16));
      tensors.emplace("k", random_tensor({kBatch, kHeads, kv_len, head_dim}, 2, DType::Float16));
      tensors.emplace("v", random_tensor({kBatch, kHeads, kv_len, head_dim}, 3, DType::Float16));
      tensors.emplace("bias", random_tensor({kHeads, q_len, kv_len}, 4, DType::Float16));
      tensors.emplace("m", dense_of(hostile, {1, 1, q_len, kv_len}));
      use_other_bytes(tensors.at("m"));
      check(graph, tensors, kAttention);
    }
  }
}

TEST_CASE("compressed rows, in any order and with room to spare") {
  const mask::Extent extent = {.batch = 2, .heads = 4, .q_len = 130, .kv_len = 333};
  const Mask few = random_tokens(0.01, 3) && Mask(query_position() % 3 != 1);
  HostTensors tensors = operands(extent);
  auto [row_ptr, col_idx] = csr_of(few, extent, 700);
  tensors.emplace("m.row_ptr", row_ptr);
  tensors.emplace("m.col_idx", col_idx);
  check(attention(extent, masked(MaskForm::Csr, {130, 700}, few), DType::Float16, kSeveral),
        tensors, kRowWise);
  check(attention(extent, masked(MaskForm::Csr, {130, 700})), tensors, kBlockWise);
  const Mask per_head = (key_position() + head_index()) % 2 == 0;
  check(
      attention(extent, masked(MaskForm::Csr, {130, 700}, few, per_head), DType::Float16, kSeveral),
      tensors, kRowWise);
  check(attention(extent, masked(MaskForm::Csr, {130, 700}, {}, per_head)), tensors, kBlockWise);
}

TEST_CASE("the bits of the fixed mask of the same content, by the same kernel") {
  // "predicted KERNEL, its settings: how long" is what a plan says of a launch.
  const auto setting = [](const Plan& plan) {
    const std::string text = plan.explain();
    const std::size_t begin = text.find("predicted attention");
    return text.substr(begin, text.find(':', begin) - begin);
  };
  const mask::Extent extent = {.batch = 2, .heads = 4, .q_len = 300, .kv_len = 300};
  // Fixed masks whose kernels read lists and bits as well: runs of keys have kernels that do not.
  const Mask families[] = {random_tokens(0.004, 2), random_tokens(0.3, 5), bigbird(16, 1, 1, 2, 11),
                           strided(7), dilated(70, 70, 3)};
  for (const Mask& mask : families) {
    INFO(mask.text());
    HostTensors tensors = operands(extent);
    const auto graph_of = [&](const MakeOptions& options) {
      return attention(extent, options, DType::Float16, 4 * kSeveral);
    };
    const Plan fixed = gpu().build(graph_of(fixed_to(mask)));
    const auto expected = run_plan(gpu(), fixed, tensors);
    tensors.emplace("m", dense_of(mask, extent));
    auto [row_ptr, col_idx] = csr_of(mask, extent, 90000);
    tensors.emplace("m.row_ptr", row_ptr);
    tensors.emplace("m.col_idx", col_idx);
    for (const Graph& graph :
         {graph_of(masked(MaskForm::Dense, {1, 1, 300, 300}, mask, {}, kHasTiles)),
          graph_of(masked(MaskForm::Csr, {300, 90000}, mask))}) {
      const Plan plan = gpu().build(graph);
      CHECK(setting(plan) == setting(fixed));
      CHECK(run_plan(gpu(), plan, tensors) == expected);
    }
  }
}

TEST_CASE("each launch sees the mask that there is, also where set gives another tensor") {
  const Graph graph = attention(kSmall, masked(MaskForm::CuSeqlens, {4}));
  const Plan plan = gpu().build(graph);
  HostTensors tensors = operands(kSmall);
  tensors.emplace("m", int32s({0, 20, 99, 200}));
  Bound bound(plan, tensors);
  const auto check_run = [&] {
    bound.run().launch();
    bound.run().synchronize();
    check_close({{"o", bound.download("o")}, {"lse", bound.download("lse")}},
                run_graph(graph, tensors, {.precision = Precision::Float64}), kTolerance);
  };
  check_run();
  tensors.insert_or_assign("m", int32s({0, 150, 151, 160}));
  bound.upload("m", tensors.at("m"));
  check_run();
  Buffer other = gpu().allocate(plan.input("m"));
  tensors.insert_or_assign("m", int32s({0, 1, 2, 3}));
  other.upload(tensors.at("m").view());
  bound.run().set("m", other);
  check_run();
  tensors.insert_or_assign("m", int32s({0, 64, 128, 192}));
  other.upload(tensors.at("m").view());
  check_run();
}

TEST_CASE("set gives other rows and columns to a csr") {
  const Mask masks[] = {random_tokens(0.01, 3), random_tokens(0.02, 4)};
  const Graph graph = attention(kSmall, masked(MaskForm::Csr, {200, 2000}, masks[0]));
  const Plan plan = gpu().build(graph);
  HostTensors tensors = operands(kSmall);
  std::vector<Buffer> others;
  for (std::size_t i = 0; i < 2; ++i) {
    auto [row_ptr, col_idx] = csr_of(masks[i], kSmall, 2000);
    tensors.insert_or_assign("m.row_ptr", row_ptr);
    tensors.insert_or_assign("m.col_idx", col_idx);
    for (const char* name : {"m.row_ptr", "m.col_idx"}) {
      others.push_back(gpu().allocate(plan.input(name)));
      others.back().upload(tensors.at(name).view());
    }
  }
  Bound bound(plan, tensors);
  for (std::size_t i = 0; i < 2; ++i) {
    auto [row_ptr, col_idx] = csr_of(masks[i], kSmall, 2000);
    tensors.insert_or_assign("m.row_ptr", row_ptr);
    tensors.insert_or_assign("m.col_idx", col_idx);
    bound.run().set("m.row_ptr", others[2 * i]);
    bound.run().set("m.col_idx", others[2 * i + 1]);
    bound.run().launch();
    bound.run().synchronize();
    check_close({{"o", bound.download("o")}, {"lse", bound.download("lse")}},
                run_graph(graph, tensors, {.precision = Precision::Float64}), kTolerance);
  }
}

TEST_CASE("more part tiles than there is room for are an error, and nothing is seen") {
  // Of 4 x 4 tiles the 4 on the diagonal are part tiles; the last ones hang over.
  const Graph graph = attention(kSmall, masked(MaskForm::Dense, {1, 1, 200, 200}, {}, {}, 3));
  HostTensors tensors = operands(kSmall);
  tensors.emplace("m", dense_of(causal(), kSmall));
  Bound bound(gpu().build(graph), tensors);
  const std::string message =
      "launch: mask 'm' has 4 tiles of 64 x 64 that are neither empty nor full, max_part_tiles is "
      "3";
  bound.run().launch();
  CHECK(test::error_of([&] { bound.run().synchronize(); }) == message);
  CHECK(std::ranges::all_of(bound.download("o"), [](double value) { return value == 0; }));
  bound.run().synchronize();  // it is told once
  bound.run().launch();
  bound.download("o");
  CHECK(test::error_of([&] { bound.run().launch(); }) == message);
  tensors.insert_or_assign("m", dense_of(block_causal(64), kSmall));
  bound.upload("m", tensors.at("m"));
  bound.run().launch();
  bound.run().synchronize();
  check_close({{"o", bound.download("o")}, {"lse", bound.download("lse")}},
              run_graph(graph, tensors, {.precision = Precision::Float64}), kTolerance);
}

TEST_CASE("values out of range are an error") {
  const auto fault_of = [](const MakeOptions& options, const HostTensors& data) {
    HostTensors tensors = operands(kSmall);
    tensors.insert(data.begin(), data.end());
    Bound bound(gpu().build(attention(kSmall, options)), tensors);
    bound.run().launch();
    return test::error_of([&] { bound.run().synchronize(); });
  };
  const std::string beginning = "launch: mask 'm' holds a value that is out of range: ";
  for (const Values& offsets : {Values{1, 2, 200}, Values{0, 9, 201}, Values{0, 120, 119}}) {
    for (const Mask& fixed : {causal(), strided(3)}) {  // runs of keys, and lists
      CHECK(fault_of(masked(MaskForm::CuSeqlens, {3}, {}, fixed), {{"m", int32s(offsets)}}) ==
            beginning + "offsets start with 0, do not fall and end at most at 200");
    }
  }
  auto [row_ptr, col_idx] = csr_of(strided(50), kSmall, 2000);
  col_idx.set(7, 200);
  CHECK(fault_of(masked(MaskForm::Csr, {200, 2000}),
                 {{"m.row_ptr", row_ptr}, {"m.col_idx", col_idx}}) ==
        beginning +
            "row_ptr starts with 0, does not fall and ends at most at 2000, and col_idx is "
            "from 0 to 199");
}

TEST_CASE("a stream that is being captured takes the build along") {
  const Graph graph = attention(kSmall, masked(MaskForm::Dense, {1, 1, 200, 200}));
  HostTensors tensors = operands(kSmall);
  tensors.emplace("m", dense_of(causal(), kSmall));
  Bound bound(gpu().build(graph), tensors);
  const cuda::Stream stream;
  cudaGraph_t captured = nullptr;
  cudaGraphExec_t program = nullptr;
  STOF_CUDA(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal));
  bound.run().launch(stream.get());
  STOF_CUDA(cudaStreamEndCapture(stream.get(), &captured));
  STOF_CUDA(cudaGraphInstantiate(&program, captured));
  for (const Mask& mask : {causal(), sliding_window(3, 3)}) {
    tensors.insert_or_assign("m", dense_of(mask, kSmall));
    bound.upload("m", tensors.at("m"));
    STOF_CUDA(cudaGraphLaunch(program, stream.get()));
    bound.run().synchronize(stream.get());
    check_close({{"o", bound.download("o")}, {"lse", bound.download("lse")}},
                run_graph(graph, tensors, {.precision = Precision::Float64}), kTolerance);
  }
  STOF_CUDA(cudaGraphExecDestroy(program));
  STOF_CUDA(cudaGraphDestroy(captured));
}

TEST_CASE("layers share the layout of one mask, in memory that others take before and after") {
  Graph graph("layers");
  Tensor x = graph.input("x", {2, 150, 128}, DType::Float16);
  const MaskInput offsets = graph.mask_input("m", {5}, {.form = MaskForm::CuSeqlens});
  const MaskInput dense = graph.mask_input("d", {2, 1, 150, 150}, {.form = MaskForm::Dense});
  for (int layer = 0; layer < 4; ++layer) {
    const Tensor w = graph.weight("w" + std::to_string(layer), {384, 128}, DType::Float16);
    const QkvHeads heads = graph.split_qkv(graph.linear(x, w), {.heads = 2});
    const AttentionOptions options = {.mask = causal(), .mask_input = layer == 2 ? dense : offsets};
    x = graph.layer_norm(
        graph.add(graph.merge_heads(graph.attention(heads.q, heads.k, heads.v, options)), x),
        graph.weight("g" + std::to_string(layer), {128}, DType::Float16), {});
  }
  graph.output("y", x);
  HostTensors tensors;
  tensors.emplace("x", random_tensor({2, 150, 128}, 1, DType::Float16));
  for (int layer = 0; layer < 4; ++layer) {
    tensors.emplace(
        "w" + std::to_string(layer),
        random_tensor({384, 128}, 5 + static_cast<unsigned>(layer), DType::Float16, -0.2, 0.2));
    tensors.emplace(
        "g" + std::to_string(layer),
        random_tensor({128}, 15 + static_cast<unsigned>(layer), DType::Float16, 0.5, 1));
  }
  tensors.emplace("m", int32s({0, 40, 41, 120, 150}));
  tensors.emplace("d", dense_of(random_tokens(0.3, 1), {2, 2, 150, 150}, 2));
  const Plan plan = gpu().build(graph);
  const std::string text = plan.explain();
  const auto first = text.find("layout of 'm'");
  CHECK(first != std::string::npos);
  CHECK(text.find("layout of 'm'", first + 1) == std::string::npos);
  const auto actual = run_plan(gpu(), plan, tensors);
  CHECK(run_plan(gpu(), plan, tensors) == actual);
  check_close(actual, run_graph(graph, tensors, {.precision = Precision::Float64}), 3e-3);
}

TEST_CASE("fixed masks with data that read tensors, and data that lies in strides") {
  const Mask blocks = Mask::dense(dense_of(random_tokens(0.2, 9), kSmall).view());
  HostTensors tensors = operands(kSmall);
  tensors.emplace("keep", random_integers(DType::Bool, {2, 200}, 2));
  check(attention(kSmall,
                  [&](Graph& graph) {
                    const Tensor keep = graph.input("keep", {2, 200}, DType::Bool);
                    return AttentionOptions{.mask = blocks && key_padding(graph.capture(keep))};
                  }),
        tensors, "layout of 'keep'");
  tensors.emplace("all", random_integers(DType::Bool, {1, 1, 200, 300}, 2));
  check(attention(kSmall,
                  [&](Graph& graph) {
                    const Tensor all = graph.input("all", {1, 1, 200, 300}, DType::Bool);
                    const Tensor keep = graph.input("keep", {2, 200}, DType::Bool);
                    return AttentionOptions{
                        .mask = key_padding(graph.capture(keep)),
                        .mask_input = MaskInput{.form = MaskForm::Dense,
                                                .tensors = {graph.slice(all, 3, 50, 200)}}};
                  }),
        tensors, kBlockWise);
}

TEST_CASE("symbolic lengths: a layout for each") {
  Graph graph("symbolic");
  const Dim seq = graph.dim("seq", 2, 300);
  const Tensor q = graph.input("q", {1, 2, seq, 32}, DType::Float16);
  const MaskInput offsets = graph.mask_input("m", {3}, {.form = MaskForm::CuSeqlens});
  const MaskInput dense = graph.mask_input("d", {1, 1, seq, seq}, {.form = MaskForm::Dense});
  graph.output("y", graph.add(graph.attention(q, q, q, {.mask_input = offsets}),
                              graph.attention(q, q, q, {.mask = causal(), .mask_input = dense})));
  const Plan plan = gpu().build(graph);
  for (const std::int64_t length : {300, 2, 64, 65, 177}) {
    HostTensors tensors;
    tensors.emplace("q", random_tensor({1, 2, length, 32}, 4, DType::Float16));
    const std::int64_t half = length / 2;
    tensors.emplace("m", int32s({0, static_cast<double>(half), static_cast<double>(length)}));
    tensors.emplace("d", dense_of(strided(3), {1, 2, length, length}));
    const DimValues dims = {{"seq", length}};
    const auto actual = run_plan(gpu(), plan, tensors, dims);
    check_close(actual, run_graph(graph, tensors, {.precision = Precision::Float64, .dims = dims}),
                kTolerance);
  }
}
