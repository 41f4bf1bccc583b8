// Masked attention on a GPU against float64, over the named list of cases below.
#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/files.hpp"
#include "base/parallel.hpp"
#include "global_tokens.hpp"
#include "gpu_testing.hpp"
#include "mask/evaluate.hpp"
#include "stof/stof.hpp"
#include "temporary_folder.hpp"

using namespace stof;  // NOLINT(google-build-using-namespace)
using stof::test::global_tokens_in_two_places;
using stof::testing::filled_with_nan;

namespace {

struct AttentionCase {
  std::string name;
  Mask mask;
  DType dtype = DType::Float16;
  std::int64_t batch = 1;
  std::int64_t heads = 1;
  std::int64_t kv_heads = 1;
  std::int64_t q_len = 64;
  std::int64_t kv_len = 64;
  std::int64_t head_dim = 64;
  std::int64_t value_dim = 64;
  std::vector<std::int32_t> kv_lengths = {};
  bool has_lse = true;
  bool has_heads_inside = false;    // tensors lie as [batch, length, heads, dim]
  std::string kernel_of_sm90 = {};  // where it has to be a certain one

  std::string text() const {
    return fmt::format("{}:{}:{}:{}x{}:{}:{}:{}{}{}{}", name, batch, heads, q_len, kv_len, head_dim,
                       value_dim, stof::name(dtype),
                       heads == kv_heads ? "" : fmt::format(":kv{}", kv_heads),
                       has_lse ? "" : ":no lse", has_heads_inside ? ":heads inside" : "");
  }
};

constexpr double kTolerance16 = 1e-3;
constexpr double kToleranceB16 = 6e-3;

HostTensor random_normal(DType dtype, const std::vector<std::int64_t>& shape, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> draw;
  HostTensor tensor(dtype, shape);
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) {
    tensor.set(i, draw(generator));
  }
  return tensor;
}

// With the two axes in the middle in the other order.
HostTensor swapped(const HostTensor& tensor) {
  const std::vector<std::int64_t>& shape = tensor.shape();
  HostTensor result(tensor.dtype(), {shape[0], shape[2], shape[1], shape[3]});
  std::int64_t at = 0;
  for (std::int64_t a = 0; a < shape[0]; ++a) {
    for (std::int64_t c = 0; c < shape[2]; ++c) {
      for (std::int64_t b = 0; b < shape[1]; ++b) {
        for (std::int64_t d = 0; d < shape[3]; ++d) {
          result.set(at++, tensor.at(((a * shape[1] + b) * shape[2] + c) * shape[3] + d));
        }
      }
    }
  }
  return result;
}

struct Tensors {
  HostTensor q, k, v, o, lse;
};

struct Row {
  std::int64_t batch, head, query;
};

// At most `count` query rows: the first and last, and others at random.
std::vector<Row> sampled_rows(const AttentionCase& of, std::int64_t count) {
  std::vector<Row> rows;
  std::mt19937 generator(7);
  for (std::int64_t b = 0; b < of.batch; ++b) {
    for (std::int64_t h = 0; h < of.heads; ++h) {
      for (std::int64_t i = 0; i < std::min(count, of.q_len); ++i) {
        const bool is_all = of.q_len <= count;
        const auto drawn = static_cast<std::int64_t>(generator() % static_cast<unsigned>(of.q_len));
        rows.push_back({b, h, is_all ? i : i == 0 ? 0 : i == 1 ? of.q_len - 1 : drawn});
      }
    }
  }
  return rows;
}

struct Error {
  double output = 0;  // ||O - O64|| / ||O64||
  double lse = 0;     // largest, relative to 1 + |lse|
  bool has_nan = false;
};

Error error_of(const AttentionCase& of, const Tensors& tensors) {
  mask::Evaluator mask(of.mask, {of.batch, of.heads, of.q_len, of.kv_len});
  std::vector<std::uint64_t> words(static_cast<std::size_t>((of.kv_len + 63) / 64));
  std::vector<double> scores(static_cast<std::size_t>(of.kv_len));
  Error error;
  double difference = 0;
  double expected_norm = 0;
  for (const Row& row : sampled_rows(of, 40)) {
    mask.row({row.batch, row.head, row.query}, 0, words);
    const std::int64_t kv_head = row.head / (of.heads / of.kv_heads);
    const std::int64_t q_row = (row.batch * of.heads + row.head) * of.q_len + row.query;
    const std::int64_t kv_row = (row.batch * of.kv_heads + kv_head) * of.kv_len;
    const std::int64_t keys =
        of.kv_lengths.empty() ? of.kv_len : of.kv_lengths[static_cast<std::size_t>(row.batch)];
    double largest = -std::numeric_limits<double>::infinity();
    for (std::int64_t key = 0; key < of.kv_len; ++key) {
      double& score = scores[static_cast<std::size_t>(key)];
      score = -std::numeric_limits<double>::infinity();
      if (key < keys && (words[static_cast<std::size_t>(key / 64)] >> (key % 64) & 1) != 0) {
        score = 0;
        for (std::int64_t i = 0; i < of.head_dim; ++i) {
          score += tensors.q.at(q_row * of.head_dim + i) *
                   tensors.k.at((kv_row + key) * of.head_dim + i);
        }
        score /= std::sqrt(static_cast<double>(of.head_dim));
        largest = std::max(largest, score);
      }
    }
    std::vector<double> output(static_cast<std::size_t>(of.value_dim), 0.0);
    double sum = 0;
    for (std::int64_t key = 0; key < of.kv_len && std::isfinite(largest); ++key) {
      const double weight = std::exp(scores[static_cast<std::size_t>(key)] - largest);
      sum += weight;
      for (std::int64_t i = 0; weight != 0 && i < of.value_dim; ++i) {
        output[static_cast<std::size_t>(i)] +=
            weight * tensors.v.at((kv_row + key) * of.value_dim + i);
      }
    }
    for (std::int64_t i = 0; i < of.value_dim; ++i) {
      const double expected = sum == 0 ? 0 : output[static_cast<std::size_t>(i)] / sum;
      const double actual = tensors.o.at(q_row * of.value_dim + i);
      error.has_nan = error.has_nan || std::isnan(actual);
      difference += (actual - expected) * (actual - expected);
      expected_norm += expected * expected;
    }
    if (!of.has_lse) {
      continue;
    }
    const double lse = tensors.lse.at(q_row);
    const double expected_lse = largest + std::log(sum);
    if (sum == 0) {
      error.has_nan = error.has_nan || !(std::isinf(lse) && lse < 0);
    } else {
      error.lse = std::max(error.lse, std::abs(lse - expected_lse) / (1 + std::abs(expected_lse)));
      error.has_nan = error.has_nan || std::isnan(lse);
    }
  }
  error.output = expected_norm == 0 ? std::sqrt(difference) : std::sqrt(difference / expected_norm);
  return error;
}

// Runs twice, into outputs full of NaN, and says what is wrong, or nothing.
std::string fault_of(const Engine& engine, const AttentionCase& of, unsigned seed) {
  Graph graph("attention");
  const auto input = [&](const char* name, std::int64_t heads, std::int64_t length,
                         std::int64_t dim) {
    if (!of.has_heads_inside) {
      return graph.input(name, {of.batch, heads, length, dim}, of.dtype);
    }
    return graph.transpose(graph.input(name, {of.batch, length, heads, dim}, of.dtype),
                           {0, 2, 1, 3});
  };
  const auto as_it_lies = [&](const Tensor& tensor) {
    return of.has_heads_inside ? graph.transpose(tensor, {0, 2, 1, 3}) : tensor;
  };
  const auto q = input("q", of.heads, of.q_len, of.head_dim);
  const auto k = input("k", of.kv_heads, of.kv_len, of.head_dim);
  const auto v = input("v", of.kv_heads, of.kv_len, of.value_dim);
  AttentionOptions options{.mask = of.mask};
  if (!of.kv_lengths.empty()) {
    options.kv_lengths = graph.input("kv_lengths", {of.batch}, DType::Int32);
  }
  if (of.has_lse) {
    const AttentionResult result = graph.attention_with_lse(q, k, v, options);
    graph.output("o", as_it_lies(result.output));
    graph.output("lse", result.lse);
  } else {
    graph.output("o", as_it_lies(graph.attention(q, k, v, options)));
  }
  const Plan plan = engine.build(graph);
  const std::string explained = plan.explain();
  if (explained.find("sm_90a") != std::string::npos &&
      explained.find(of.kernel_of_sm90) == std::string::npos) {
    return of.text() + ": not with " + of.kernel_of_sm90;
  }

  Tensors tensors{
      random_normal(of.dtype, {of.batch, of.heads, of.q_len, of.head_dim}, seed),
      random_normal(of.dtype, {of.batch, of.kv_heads, of.kv_len, of.head_dim}, seed + 1),
      random_normal(of.dtype, {of.batch, of.kv_heads, of.kv_len, of.value_dim}, seed + 2),
      filled_with_nan(of.dtype, {of.batch, of.heads, of.q_len, of.value_dim}),
      filled_with_nan(DType::Float32, {of.batch, of.heads, of.q_len})};
  std::vector<std::pair<std::string, Buffer>> buffers;
  Bindings bindings;
  const auto add = [&](const std::string& name, const TensorInfo& info, HostTensor& tensor) {
    buffers.emplace_back(name, engine.allocate(info));
    const bool is_swapped = of.has_heads_inside && info.shape.sizes().size() == 4;
    buffers.back().second.upload(is_swapped ? swapped(tensor).view() : tensor.view());
    bindings.emplace(name, buffers.back().second);
  };
  add("q", plan.input("q"), tensors.q);
  add("k", plan.input("k"), tensors.k);
  add("v", plan.input("v"), tensors.v);
  add("o", plan.output("o"), tensors.o);
  if (of.has_lse) {
    add("lse", plan.output("lse"), tensors.lse);
  }
  if (!of.kv_lengths.empty()) {
    HostTensor lengths(DType::Int32, {of.batch});
    for (std::int64_t b = 0; b < of.batch; ++b) {
      lengths.set(b, of.kv_lengths[static_cast<std::size_t>(b)]);
    }
    add("kv_lengths", plan.input("kv_lengths"), lengths);
  }
  Execution run = plan.bind(engine.load_weights(plan, std::span<const NamedTensor>()), bindings);
  run.launch();
  const HostTensor first = buffers[3].second.download();
  tensors.o = of.has_heads_inside ? swapped(first) : first;
  if (of.has_lse) {
    tensors.lse = buffers[4].second.download();
  }
  run.launch();
  const HostTensor again = buffers[3].second.download();

  const double tolerance = of.dtype == DType::Float16 ? kTolerance16 : kToleranceB16;
  const Error error = error_of(of, tensors);
  if (error.has_nan || !(error.output <= tolerance) || !(error.lse <= 1e-4)) {
    return fmt::format("{}: error {:.2e}, lse {:.2e}{}", of.text(), error.output, error.lse,
                       error.has_nan ? ", NaN or a wrong empty row" : "");
  }
  if (!std::ranges::equal(again.bytes(), first.bytes())) {
    return of.text() + ": a second run gives other bits";
  }
  return {};
}

// All cases, several at a time, every third one without sums, which some kernels make in another
// way then; the faults, each on a line. Files of the folder stand in for those of the templates.
std::string faults_of(std::vector<AttentionCase> cases,
                      const std::vector<std::filesystem::path>& template_dirs = {}) {
  for (std::size_t i = 1; i < cases.size(); i += 3) {
    cases[i].has_lse = false;
  }
  const Engine engine({.backend = Backend::Gpu,
                       .template_dirs = template_dirs,
                       .trust = Trust::Compiled,
                       .cache_dir = ""});
  std::mutex mutex;
  std::string faults;
  int count = 0;
  base::parallel_for(static_cast<std::int64_t>(cases.size()), [&](std::int64_t i) {
    std::string fault;
    try {
      fault = fault_of(engine, cases[static_cast<std::size_t>(i)], static_cast<unsigned>(3 * i));
    } catch (const std::exception& error) {
      fault = cases[static_cast<std::size_t>(i)].text() + ": " + error.what();
    }
    const std::scoped_lock lock(mutex);
    if (!fault.empty() && ++count <= 40) {
      faults += fault + "\n";
    }
  });
  return count == 0 ? "" : fmt::format("{}{} of {} cases fail", faults, count, cases.size());
}

// Mask families for n queries and keys, as `families` lists them.
constexpr int kFamilies = 11;

std::pair<std::string, Mask> family(int i, std::int64_t n) {
  const std::int64_t window = std::max<std::int64_t>(1, std::llround(std::sqrt(n)));
  switch (i) {
    case 0:
      return {"full", Mask()};
    case 1:
      return {"causal", causal()};
    case 2:
      return {"sliding", sliding_window(window, window)};
    case 3:
      return {"causal_window", causal() && sliding_window(window, 0)};
    case 4:
      return {"dilated", dilated(8, 8, 3)};
    case 5:
      return {"longformer", longformer(window, 4)};
    case 6:
      return {"bigbird", bigbird(16, 1, 1, 2, 11)};
    case 7:
      return {"strided", strided(7)};
    case 8:
      return {"prefix", prefix(n / 3 + 1)};
    case 9:
      return {"random", random_tokens(0.01, 5) || Mask(query_position() == key_position())};
    default:
      return {"hole", Mask(query_position() % 5 != 3 && key_position() <= query_position())};
  }
}

// A folder with one header of the templates, in which a constant is another.
class ChangedHeader {
 public:
  ChangedHeader(const std::filesystem::path& header, const std::string& from,
                const std::string& to) {
    std::string text =
        base::read_file(std::filesystem::path(STOF_SOURCE_DIR) / "templates" / header, 1 << 20);
    REQUIRE(text.find(from) != std::string::npos);
    text.replace(text.find(from), from.size(), to);
    std::filesystem::create_directories((folder_ / header).parent_path());
    std::ofstream(folder_ / header, std::ios::binary) << text;
  }

  const std::filesystem::path& path() const { return folder_.path(); }

 private:
  test::TemporaryFolder folder_;
};

}  // namespace

TEST_CASE("ten mask families, both dtypes, head dims and lengths") {
  std::vector<AttentionCase> cases;
  for (int i = 0; i < kFamilies; ++i) {
    for (const DType dtype : {DType::Float16, DType::BFloat16}) {
      for (const std::int64_t head_dim : {32, 64, 72, 128, 256}) {
        for (const std::int64_t n : {1, 17, 63, 64, 65, 129, 1000, 4096}) {
          const auto [name, mask] = family(i, n);
          cases.push_back({.name = name,
                           .mask = mask,
                           .dtype = dtype,
                           .heads = n <= 1000 ? 2 : 1,
                           .kv_heads = 1,
                           .q_len = n,
                           .kv_len = n,
                           .head_dim = head_dim,
                           .value_dim = head_dim});
        }
      }
    }
  }
  CHECK(faults_of(cases) == "");
}

TEST_CASE("grouped heads, ragged batches, other value widths, queries and keys of other lengths") {
  std::vector<AttentionCase> cases;
  for (int i = 0; i < kFamilies; ++i) {
    const auto [name, mask] = family(i, 200);
    for (const DType dtype : {DType::Float16, DType::BFloat16}) {
      cases.push_back({name, mask, dtype, 2, 8, 2, 200, 200, 64, 64});
      cases.push_back({name, mask, dtype, 3, 4, 4, 200, 200, 64, 64, {1, 137, 200}});
      cases.push_back({name, mask, dtype, 2, 2, 1, 200, 200, 128, 64});
      cases.push_back({name, mask, dtype, 1, 2, 2, 70, 333, 40, 104});
      cases.push_back({name, mask, dtype, 1, 2, 2, 333, 70, 96, 96});
    }
  }
  const Mask per_head = query_position() - key_position() < 8 * (head_index() + 1) && causal();
  const Mask per_batch = key_position() < 50 * (batch_index() + 1);
  cases.push_back({"per_head", per_head, DType::Float16, 2, 4, 4, 300, 300, 64, 64});
  cases.push_back({"per_batch", per_batch, DType::Float16, 3, 4, 2, 300, 300, 64, 64});
  cases.push_back({"per_both", per_head && per_batch, DType::BFloat16, 3, 4, 4, 300, 300, 64, 64});
  CHECK(faults_of(cases) == "");
}

TEST_CASE("as many queries as fill a GPU, in short rows and long ones") {
  std::vector<AttentionCase> cases;
  for (int i = 0; i < kFamilies; ++i) {
    for (const std::int64_t head_dim : {32, 64, 72, 128, 256}) {
      const DType dtype = (i + head_dim / 8) % 2 == 0 ? DType::Float16 : DType::BFloat16;
      const auto add = [&](std::int64_t batch, std::int64_t q_len, std::int64_t kv_len) {
        const auto [name, mask] = family(i, q_len);
        cases.push_back({name, mask, dtype, batch, 12, 4, q_len, kv_len, head_dim, head_dim});
      };
      add(1, 1000, 1000);
      add(8, 600, 333);
      add(6, 1000, 1000);
      cases.back().kv_lengths = {1000, 1, 64, 0, 999, 500};
    }
  }
  const Mask per_head = query_position() - key_position() < 8 * (head_index() + 1) && causal();
  const Mask per_batch = key_position() < 50 * (batch_index() + 1);
  cases.push_back({"per_head", per_head, DType::Float16, 3, 12, 12, 1000, 1000, 64, 64});
  cases.push_back({"per_batch", per_batch, DType::Float16, 9, 12, 6, 600, 600, 64, 128});
  cases.push_back(
      {"per_both", per_head && per_batch, DType::BFloat16, 9, 12, 12, 600, 600, 96, 64});
  CHECK(faults_of(cases) == "");
}

TEST_CASE("a few rows that see all keys, which are worked on in parts") {
  std::vector<AttentionCase> cases;
  for (const std::int64_t head_dim : {32, 64, 72, 128, 256}) {
    for (const DType dtype : {DType::Float16, DType::BFloat16}) {
      const auto add = [&](const char* name, const Mask& mask, std::int64_t n) {
        cases.push_back({name, mask, dtype, 1, 12, 4, n, n, head_dim, head_dim});
      };
      add("longformer", longformer(30, 40), 1000);
      add("bigbird", bigbird(64, 3, 2, 3, 3), 2048);
      add("middle", sliding_window(9, 9) || global_tokens(700, 1), 1400);
      add("last_key", key_position() == 0 || (query_position() == 3 && key_position() % 3 == 1),
          1500);
      add("causal", causal(), 1024);
      add("per_head", longformer(20, 8) && key_position() % 12 != head_index(), 1100);
      add("lengths", longformer(20, 70), 1200);
      cases.back().batch = 3;
      cases.back().kv_lengths = {1200, 0, 129};
    }
  }
  // More keys than the L2 holds, so that sums come between the tiles of some heads and others.
  const Mask two_rows = sliding_window(9, 9) || global_tokens(1900, 2);
  cases.push_back({"many heads", two_rows, DType::Float16, 1, 40, 40, 2048, 2048, 128, 128});
  CHECK(faults_of(cases) == "");
}

TEST_CASE("tiles so few that each is worked on in parts") {
  std::vector<AttentionCase> cases;
  for (const std::int64_t head_dim : {32, 64, 128, 256}) {
    for (const DType dtype : {DType::Float16, DType::BFloat16}) {
      const auto add = [&](const char* name, const Mask& mask, std::int64_t heads,
                           std::int64_t kv_heads, std::int64_t q_len, std::int64_t kv_len) {
        cases.push_back({name, mask, dtype, 1, heads, kv_heads, q_len, kv_len, head_dim, head_dim});
        cases.back().has_lse = q_len < 100;
      };
      add("full", Mask(), 2, 2, 130, 4000);
      add("shared", Mask(), 8, 2, 70, 2100);
      add("one tile", Mask(), 1, 1, 33, 5000);
      add("causal", causal(), 1, 1, 2500, 2500);
      add("late", causal_bottom_right(), 6, 3, 200, 3000);
      add("every other tile", (key_position() / 64 + query_position() / 64) % 2 == 0, 2, 2, 400,
          5000);
    }
  }
  // Twice the keys that half of an L2 of 50 MB holds, which are read all the same.
  cases.push_back(
      {"many keys", causal_bottom_right(), DType::Float16, 1, 16, 8, 128, 12288, 128, 128});
  CHECK(faults_of(cases) == "");
}

TEST_CASE("parts that no one waits for, put together by whoever leaves the last one") {
  const ChangedHeader folder("device/attention_parts.cuh", "kPatience = 256;", "kPatience = 0;");
  std::vector<AttentionCase> cases;
  for (const std::int64_t head_dim : {32, 64, 72, 128}) {
    const auto add = [&](const char* name, const Mask& mask, std::int64_t n) {
      cases.push_back({name, mask, DType::Float16, 1, 12, 4, n, n, head_dim, head_dim});
    };
    add("longformer", longformer(30, 40), 1000);
    add("bigbird", bigbird(64, 3, 2, 3, 3), 2048);
    add("per_head", longformer(20, 8) && key_position() % 12 != head_index(), 1100);
    add("lengths", longformer(20, 70), 1200);
    cases.back().batch = 3;
    cases.back().kv_lengths = {1200, 0, 129};
  }
  CHECK(faults_of(cases, {folder.path()}) == "");
}

// As racecheck takes them.
TEST_CASE("small cases of kernels, in whose rings every lane says that a place is free") {
  const ChangedHeader folder("device/mbarrier.cuh", "kArrivalsOfWarp = 1;",
                             "kArrivalsOfWarp = 32;");
  const auto f16 = DType::Float16;
  std::vector<AttentionCase> cases;
  const auto add = [&](const char* kernel, const AttentionCase& of) {
    cases.push_back(of);
    cases.back().name = kernel;
    cases.back().kernel_of_sm90 = fmt::format("attention/{}", kernel);
  };
  add("block_wise_sm90", {"", bigbird(64, 3, 2, 3, 3), f16, 1, 2, 2, 1024, 1024, 128, 128});
  add("block_wise_sm90", {"", causal(), f16, 1, 1, 1, 500, 500, 256, 256});
  add("packed_sm90",
      {"", global_tokens_in_two_places(31, 500), f16, 1, 2, 1, 1000, 1000, 128, 128});
  add("window_sm90", {"", sliding_window(22, 22), f16, 64, 12, 12, 190, 190, 64, 64});
  add("window_sm90", {"", sliding_window(64, 64), f16, 64, 12, 12, 190, 190, 128, 128});
  add("global_local_sm90", {"", longformer(30, 40), f16, 11, 12, 12, 1024, 1024, 64, 64});
  add("global_local_sm90", {"", longformer(30, 40), f16, 4, 12, 12, 1024, 1024, 128, 128});
  add("resident_sm90", {"", longformer(20, 40), f16, 1, 1, 1, 600, 600, 64, 64});
  add("band_sm90", {"", causal(), f16, 1, 2, 2, 700, 700, 64, 64});
  add("interval_sm90", {"", documents({0, 100, 500}) && causal(), f16, 1, 2, 2, 500, 500, 64, 64});
  add("held_sm90", {"", causal(), f16, 8, 16, 16, 512, 512, 64, 64});
  add("short_heads_sm90", {"", Mask(), f16, 33, 12, 12, 160, 130, 72, 72});
  add("few_keys", {"", causal(), f16, 1, 1, 1, 100, 100, 64, 64});
  add("few_queries", {"", Mask(), f16, 1, 4, 1, 4, 2000, 64, 64});
  add("few_queries", {"", Mask(), f16, 1, 2, 2, 27, 900, 64, 64});
  add("few_queries", {"", causal_bottom_right(), f16, 3, 2, 2, 1, 700, 256, 256});
  cases.back().kv_lengths = {700, 0, 129};
  add("row_wise", {"", random_tokens(0.01, 5), f16, 1, 2, 2, 1024, 1024, 64, 64});
  CHECK(faults_of(cases, {folder.path()}) == "");
}

TEST_CASE("bands of few query tiles, each of which several warp groups share") {
  std::vector<AttentionCase> cases;
  for (const std::int64_t head_dim : {32, 64, 72, 128}) {
    for (const DType dtype : {DType::Float16, DType::BFloat16}) {
      const auto add = [&](const char* name, const Mask& mask, std::int64_t heads,
                           std::int64_t q_len, std::int64_t kv_len) {
        cases.push_back({name, mask, dtype, 1, heads, 2, q_len, kv_len, head_dim, head_dim});
        cases.back().has_lse = q_len == kv_len;
      };
      add("full", Mask(), 2, 65, 193);
      add("full", Mask(), 6, 300, 1000);
      add("causal", causal(), 2, 200, 200);
      add("causal", causal(), 12, 1024, 1024);
      add("causal", causal(), 12, 1500, 1500);
      add("late", causal_bottom_right(), 6, 100, 900);
      add("no_keys", causal_bottom_right(), 6, 900, 500);
      add("window", causal() && sliding_window(400, 0), 4, 1000, 1000);
      add("both_sides", sliding_window(100, 333), 4, 777, 999);
    }
  }
  cases.push_back({"causal", causal(), DType::Float16, 3, 4, 1, 700, 700, 64, 128});
  cases.push_back({"causal", causal(), DType::BFloat16, 2, 4, 4, 700, 700, 128, 40});
  CHECK(faults_of(cases) == "");
}

TEST_CASE("bands of few keys, which the warps of 16 queries share") {
  std::vector<AttentionCase> cases;
  const auto add = [&](const char* name, const Mask& mask, DType dtype, std::int64_t q_len,
                       std::int64_t kv_len, std::int64_t head_dim, std::int64_t value_dim) {
    cases.push_back({name, mask, dtype, 2, 4, 2, q_len, kv_len, head_dim, value_dim});
    cases.back().has_lse = q_len == kv_len;
    cases.back().kernel_of_sm90 = "attention/few_keys";
  };
  const Mask ahead = key_position() - query_position() >= 20 && sliding_window(0, 60);
  const Mask behind = query_position() - key_position() >= 20 && sliding_window(60, 0);
  for (const DType dtype : {DType::Float16, DType::BFloat16}) {
    for (const std::int64_t head_dim : {8, 32, 64, 72, 96, 128}) {
      add("one", Mask(), dtype, 1, 1, head_dim, head_dim);
      add("causal", causal(), dtype, 128, 128, head_dim, head_dim);
      add("causal", causal(), dtype, 61, 61, head_dim, 64);
      add("window", sliding_window(22, 22), dtype, 500, 500, head_dim, head_dim);
    }
    for (const std::int64_t keys : {15, 16, 17, 64, 65, 128, 129, 200, 256}) {
      add("full", Mask(), dtype, 33, keys, 64, 64);
      add("late", causal_bottom_right(), dtype, 20, keys, 64, 128);
      cases.back().kv_heads = 4;  // else query heads share a tile, in which they are no band
      add("no_keys", causal_bottom_right(), dtype, keys + 50, keys, 128, 40);
    }
    for (const std::int64_t others :
         {0, 1, 48, 49, 112, 113, 177, 240}) {  // keys that a query sees
      add("both_sides", sliding_window(others / 2, others - others / 2), dtype, 250, 250, 64, 64);
      add("causal", causal() && sliding_window(others, 0), dtype, 100, 250, 64, 64);
      add("short", sliding_window(others / 3, others / 2), dtype, 250, 100, 80, 40);
    }
    add("ahead", ahead, dtype, 200, 230, 64, 64);
    add("ahead", ahead, dtype, 230, 200, 64, 64);
    add("behind", behind, dtype, 230, 200, 64, 64);
  }
  CHECK(faults_of(cases) == "");
}

TEST_CASE("causal batch elements side by side, all of them or as many as L2 holds") {
  std::vector<AttentionCase> cases = {
      {"all", causal(), DType::Float16, 3, 4, 2, 700, 700},
      {"late", causal_bottom_right(), DType::BFloat16, 7, 6, 6, 300, 500},
      {"some", causal(), DType::Float16, 5, 12, 12, 2048, 2048},
  };
  for (AttentionCase& one : cases) {
    one.kernel_of_sm90 = "attention/band_sm90";
  }
  CHECK(faults_of(cases) == "");
}

TEST_CASE("causal blocks that are all on an SM at once, in pairs") {
  std::vector<AttentionCase> cases;
  const auto add = [&](const char* name, const Mask& mask, std::int64_t batch, std::int64_t heads,
                       std::int64_t q_len, std::int64_t kv_len, std::int64_t head_dim,
                       std::int64_t value_dim) {
    for (const DType dtype : {DType::Float16, DType::BFloat16}) {
      const std::int64_t kv_heads = heads % 3 == 0 ? heads / 3 : heads;
      cases.push_back(
          {name, mask, dtype, batch, heads, kv_heads, q_len, kv_len, head_dim, value_dim});
      cases.back().has_lse = batch == 1;
      cases.back().kernel_of_sm90 = "attention/band_sm90";
    }
  };
  for (const std::int64_t heads : {17, 24, 25, 33}) {  // of eight tiles; 132 SMs
    add("causal", causal(), 1, heads, 500, 500, 64, 64);
    add("wide", causal(), 1, heads, 512, 512, 128, 72);
    add("late", causal_bottom_right(), 1, heads, 510, 640, 64, 40);
    add("no_keys", causal_bottom_right(), 1, heads, 449, 300, 32, 64);
  }
  add("batches", causal(), 3, 5, 700, 700, 64, 64);
  add("batches", causal(), 2, 12, 511, 511, 64, 64);
  add("batches", causal(), 4, 7, 512, 512, 96, 128);
  add("long", causal(), 1, 6, 2040, 2040, 64, 64);
  CHECK(faults_of(cases) == "");
}

TEST_CASE("rows that see a run of keys each") {
  std::vector<AttentionCase> cases;
  const Expr q = query_position();
  const Expr k = key_position();
  const auto add = [&](const char* name, const Mask& mask, std::int64_t batch, std::int64_t heads,
                       std::int64_t q_len, std::int64_t kv_len, std::int64_t head_dim,
                       std::int64_t value_dim) {
    for (const DType dtype : {DType::Float16, DType::BFloat16}) {
      const std::int64_t kv_heads = dtype == DType::Float16 ? heads : heads / 2;
      cases.push_back(
          {name, mask, dtype, batch, heads, kv_heads, q_len, kv_len, head_dim, value_dim});
      cases.back().has_lse = heads == 4;
      cases.back().has_heads_inside = q_len == 1001;
      cases.back().kernel_of_sm90 = "attention/interval_sm90";
    }
  };
  const Mask packed = documents({0, 1, 65, 200, 203, 511, 512, 900, 1001});
  const Mask by_batch = Mask(k <= q + batch_index() * 100) && sliding_window(300, 400);
  const Mask by_head = Mask(k >= head_index() * 60) && sliding_window(200, 90);
  const Mask no_keys = causal() && Mask(q % 97 > 30 && k >= 64) && documents({0, 500, 1001});
  for (const std::int64_t batch : {3, 14}) {  // tiles of 64 and of 128 queries
    const std::int64_t heads = batch == 3 ? 4 : 6;
    for (const std::int64_t head_dim : {72, 128}) {
      add("documents", packed, batch, heads, 1001, 1001, head_dim, head_dim);
      add("causal", packed && causal(), batch, heads, 1000, 1000, head_dim, head_dim);
      add("by_batch", by_batch, batch, heads, 700, 777, head_dim, head_dim);
      add("by_head", by_head, batch, heads, 777, 700, head_dim, 128);
    }
    add("no_keys", no_keys, batch, heads, 1001, 1001, 128, 72);
    add("early", packed, batch, heads, 777, 555, 96, 96);
  }
  for (const std::int64_t heads : {2, 4}) {
    add("documents", packed, 3, heads, 1001, 1001, 64, 64);
    add("causal", packed && causal(), 3, heads, 1000, 1000, 32, 64);
    add("by_batch", by_batch, 5, heads, 700, 777, 64, 48);
    add("by_head", by_head, 5, heads, 777, 700, 16, 64);
    add("no_keys", no_keys, 3, heads, 1001, 1001, 64, 64);
  }
  CHECK(faults_of(cases) == "");
}

TEST_CASE("bands of short heads, whose keys a block holds") {
  std::vector<AttentionCase> cases;
  const auto add = [&](const char* name, const Mask& mask, std::int64_t heads, std::int64_t q_len,
                       std::int64_t kv_len, std::int64_t head_dim, std::int64_t value_dim) {
    for (const DType dtype : {DType::Float16, DType::BFloat16}) {
      cases.push_back({name, mask, dtype, 11, heads, heads, q_len, kv_len, head_dim, value_dim});
      cases.back().has_lse = dtype == DType::BFloat16;
      cases.back().kernel_of_sm90 = "attention/held_sm90";
    }
  };
  for (const std::int64_t heads : {6, 12}) {  // in two pieces, as wholes
    for (const std::int64_t length : {449, 500, 512}) {
      add("causal", causal(), heads, length, length, 64, 64);
    }
    add("wide_values", causal(), heads, 512, 512, 24, 64);
    add("narrow_values", causal(), heads, 512, 512, 64, 40);
    add("early", causal(), heads, 512, 300, 64, 64);
    add("late", causal_bottom_right(), heads, 460, 512, 64, 64);
    add("no_keys", causal_bottom_right(), heads, 512, 460, 64, 64);
    add("to_the_end", key_position() - query_position() >= 130, heads, 512, 512, 64, 64);
  }
  for (const std::int64_t heads : {6, 12}) {
    add("full", Mask(), heads, 512, 512, 64, 64);
    add("full", Mask(), heads, 450, 77, 64, 64);
  }
  add("causal", causal(), 12, 200, 200, 64, 64);
  add("causal", causal(), 12, 576, 576, 64, 64);
  add("one_key", Mask(), 12, 256, 1, 64, 64);
  CHECK(faults_of(cases) == "");
}

TEST_CASE("bands of short wide heads, which a block has one after the other") {
  std::vector<AttentionCase> cases;
  const auto add = [&](const char* name, const Mask& mask, std::int64_t batch, std::int64_t q_len,
                       std::int64_t kv_len, std::int64_t head_dim, std::int64_t value_dim) {
    for (const DType dtype : {DType::Float16, DType::BFloat16}) {
      cases.push_back({name, mask, dtype, batch, 12, 12, q_len, kv_len, head_dim, value_dim});
      cases.back().has_lse = dtype == DType::BFloat16;
      cases.back().kernel_of_sm90 = "attention/short_heads_sm90";
    }
  };
  const auto open_ahead = [](int from) { return key_position() - query_position() >= from; };
  for (const std::int64_t batch : {22, 65}) {  // two heads for each SM, and six for most
    add("causal", causal(), batch, 192, 192, 128, 128);
    add("causal", causal(), batch, 129, 129, 72, 128);
    add("causal", causal(), batch, 177, 177, 120, 40);
    add("early", causal(), batch, 180, 65, 128, 128);
    add("late", causal_bottom_right(), batch, 160, 190, 96, 96);
    add("no_keys", causal_bottom_right(), batch, 190, 100, 128, 72);
    add("open_ahead", open_ahead(-70), batch, 180, 180, 128, 128);
    add("behind", open_ahead(-20), batch, 180, 192, 96, 128);
    add("far_behind", open_ahead(70), batch, 190, 192, 128, 80);
  }
  for (const std::int64_t batch : {11, 43}) {
    add("full", Mask(), batch, 192, 192, 128, 128);
    add("full", Mask(), batch, 153, 500, 88, 128);
    add("fewer_keys", Mask(), batch, 160, 70, 128, 128);
  }
  for (const std::int64_t batch : {22, 43}) {
    add("full", Mask(), batch, 256, 256, 128, 128);
    add("full", Mask(), batch, 193, 77, 80, 128);
    add("causal", causal(), batch, 256, 256, 128, 128);
    add("causal", causal(), batch, 241, 250, 128, 120);
  }
  const std::size_t inside = cases.size();
  add("inside", causal(), 22, 192, 192, 128, 128);
  add("inside", Mask(), 22, 250, 250, 128, 128);
  for (std::size_t i = inside; i < cases.size(); ++i) {
    cases[i].has_heads_inside = true;
  }
  CHECK(faults_of(cases) == "");
}

TEST_CASE("windows whose keys of a query tile lie in shared memory at once") {
  std::vector<AttentionCase> cases;
  const auto add = [&](const Mask& mask, DType dtype, std::int64_t q_len, std::int64_t kv_len,
                       std::int64_t head_dim, std::int64_t value_dim) {
    cases.push_back({"window", mask, dtype, 6, 4, 2, q_len, kv_len, head_dim, value_dim});
    cases.back().has_lse = q_len == kv_len;
    cases.back().kernel_of_sm90 = "attention/band_sm90";
  };
  for (std::int64_t keys = 64; keys <= 192; keys += 16) {  // of 64 queries
    const std::int64_t others = keys - 64;                 // that a query sees
    for (const DType dtype : {DType::Float16, DType::BFloat16}) {
      add(sliding_window(others / 2, others - others / 2), dtype, 500, 500, 64, 64);
      add(causal() && sliding_window(others, 0), dtype, 333, 500, 64, 64);
      add(sliding_window(others / 3, others / 2), dtype, 500, 333, 32, 40);
    }
    add(sliding_window(others / 2, others / 2), DType::Float16, 500, 500, 128, 72);
  }
  CHECK(faults_of(cases) == "");
}

TEST_CASE("tiles of short heads side by side, and of long windows of wide heads") {
  const auto window = [](const char* name, const Mask& mask, std::int64_t kv_heads,
                         std::int64_t head_dim, std::int64_t value_dim = 128) {
    AttentionCase one = {name,     mask, DType::Float16, 16,       12,
                         kv_heads, 1500, 1500,           head_dim, value_dim};
    one.kernel_of_sm90 = "attention/band_sm90";
    return one;
  };
  std::vector<AttentionCase> cases = {
      window("both_sides", sliding_window(500, 500), 12, 128),
      window("groups", sliding_window(400, 650), 3, 96),
      window("short_wide", sliding_window(150, 130), 12, 112),
      window("short", sliding_window(150, 130), 12, 64, 64),
  };
  for (const std::int64_t head_dim : {32, 64, 96, 128}) {
    const auto add = [&](const char* name, const Mask& mask, std::int64_t q_len,
                         std::int64_t kv_len) {
      const DType dtype = q_len < kv_len ? DType::BFloat16 : DType::Float16;
      cases.push_back({name, mask, dtype, 60, 8, 8, q_len, kv_len, head_dim, head_dim});
      cases.back().kernel_of_sm90 = "attention/band_sm90";
      cases.back().has_lse = head_dim == 64;
      cases.back().has_heads_inside = q_len == 299;
    };
    add("causal", causal(), 300, 300);
    add("late", causal_bottom_right(), 299, 400);
    add("no_keys", causal_bottom_right(), 400, 299);
    if (head_dim < 128) {  // wider heads are another kernel's
      add("full", Mask(), 299, 310);
    }
    add("window", sliding_window(100, 100), 400, 400);
  }
  CHECK(faults_of(cases) == "");
}

TEST_CASE("few uneven tiles of 128 queries, whose products overlap with probabilities") {
  std::vector<AttentionCase> cases;
  const auto add = [&](const Mask& mask, DType dtype, std::int64_t kv_heads, std::int64_t head_dim,
                       std::int64_t value_dim) {
    cases.push_back({"causal", mask, dtype, 1, 12, kv_heads, 2100, 2100, head_dim, value_dim});
    cases.back().has_lse = kv_heads < 12;
    cases.back().kernel_of_sm90 = "attention/band_sm90";
  };
  for (const std::int64_t dims : {80, 96, 112}) {
    add(causal(), DType::Float16, 12, dims, dims);
    add(causal_bottom_right(), DType::BFloat16, 4, dims, dims);
  }
  add(causal(), DType::Float16, 12, 16, 112);
  add(causal(), DType::Float16, 4, 112, 32);
  CHECK(faults_of(cases) == "");
}

TEST_CASE("many keys of few dimensions, for 128 queries, and windows in two stages") {
  std::vector<AttentionCase> cases;
  const auto add = [&](const char* name, const Mask& mask, DType dtype, std::int64_t q_len,
                       std::int64_t head_dim, std::int64_t batch = 20) {
    cases.push_back({name, mask, dtype, batch, 8, 4, q_len, 610, head_dim, head_dim});
    cases.back().has_lse = head_dim == 40;
    cases.back().kernel_of_sm90 = "attention/band_sm90";
  };
  for (const std::int64_t head_dim : {32, 40, 48}) {
    add("causal", causal(), DType::Float16, 610, head_dim);
    add("late", causal_bottom_right(), DType::BFloat16, 577, head_dim);
    add("full", Mask(), DType::Float16, 577, head_dim, 26);  // of fewer, lists leave fewer places
  }
  for (const std::int64_t to_each_side : {65, 90, 96}) {
    add("window", sliding_window(to_each_side, to_each_side), DType::Float16, 600, 64);
    add("ahead", sliding_window(0, 2 * to_each_side), DType::BFloat16, 610, 64);
  }
  CHECK(faults_of(cases) == "");
}

TEST_CASE("bands of as many query tiles as fill SMs several times") {
  std::vector<AttentionCase> cases;
  for (const std::int64_t head_dim : {40, 64, 128}) {
    const auto add = [&](const char* name, const Mask& mask, std::int64_t batch, std::int64_t heads,
                         std::int64_t q_len, std::int64_t kv_len) {
      const DType dtype = batch % 2 == 0 ? DType::Float16 : DType::BFloat16;
      cases.push_back(
          {name, mask, dtype, batch, heads, heads / 2, q_len, kv_len, head_dim, head_dim});
      cases.back().kernel_of_sm90 = "attention/band_sm90";
      cases.back().has_lse = heads == 6;
      cases.back().has_heads_inside = batch == 3;
    };
    add("causal", causal(), 12, 4, 513, 513);   // 3.3 tiles for each SM
    add("causal", causal(), 37, 6, 200, 200);   // 7
    add("causal", causal(), 120, 6, 193, 193);  // 22
    add("causal", causal(), 3, 8, 1030, 1030);  // 3, of more keys
    add("late", causal_bottom_right(), 36, 6, 200, 260);
    add("no_keys", causal_bottom_right(), 37, 4, 260, 200);
    add("full", Mask(), 36, 6, 200, 200);
    add("full", Mask(), 13, 6, 260, 260);
  }
  CHECK(faults_of(cases) == "");
}

TEST_CASE("windows of as many query tiles as make a walk along them worth while") {
  const auto f16 = DType::Float16;
  const auto bf16 = DType::BFloat16;
  const Mask behind = query_position() - key_position() <= -100 && sliding_window(0, 150);
  std::vector<AttentionCase> cases = {
      {"of_128", sliding_window(22, 22), f16, 64, 12, 12, 350, 350, 64, 64},
      {"of_192", sliding_window(64, 64), bf16, 40, 12, 12, 350, 350, 64, 64},
      {"groups", sliding_window(45, 45), f16, 40, 12, 4, 350, 350, 64, 64},
      {"groups", sliding_window(64, 60), f16, 40, 12, 1, 350, 350, 64, 64},
      {"one_key", sliding_window(0, 0), f16, 64, 12, 12, 350, 350, 64, 64},
      {"causal", causal() && sliding_window(127, 0), bf16, 40, 12, 12, 350, 350, 40, 64},
      {"no_keys", sliding_window(64, 64), f16, 40, 12, 12, 350, 270, 64, 64},
      {"behind", behind, f16, 40, 12, 12, 350, 390, 64, 32},
      {"narrow", sliding_window(30, 64), bf16, 40, 12, 6, 350, 350, 32, 40},
      {"dilated", dilated(30, 30, 2), f16, 64, 12, 12, 384, 384, 64, 64},
      {"dilated", dilated(50, 50, 3), bf16, 64, 12, 12, 384, 384, 64, 64},
      {"inside", sliding_window(64, 64), f16, 40, 12, 4, 350, 350, 64, 64},
      {"inside", sliding_window(22, 22), bf16, 75, 7, 7, 350, 350, 64, 64},
      {"inside", sliding_window(30, 30), f16, 120, 3, 3, 512, 512, 64, 64},
      {"of_128", sliding_window(22, 22), f16, 40, 12, 12, 350, 350, 128, 128},
      {"of_192", sliding_window(64, 64), bf16, 40, 12, 12, 350, 350, 96, 96},
      {"groups", sliding_window(64, 60), bf16, 40, 12, 1, 350, 350, 128, 128},
      {"causal", causal() && sliding_window(127, 0), f16, 40, 12, 12, 350, 350, 72, 128},
      {"no_keys", sliding_window(64, 64), bf16, 40, 12, 12, 350, 270, 128, 40},
      {"behind", behind, bf16, 40, 12, 12, 350, 390, 64, 80},
      {"dilated", dilated(50, 50, 3), f16, 20, 12, 12, 768, 768, 128, 128},
      {"inside", sliding_window(60, 30), f16, 120, 3, 3, 512, 512, 128, 128},
  };
  for (AttentionCase& one : cases) {
    one.has_heads_inside = one.name == "inside";
    one.has_lse = one.head_dim == 40 || one.kv_heads == 1 || one.head_dim == 72;
    one.kernel_of_sm90 = "attention/window_sm90";
  }
  // Those of many heads, and no more than a tile each, may go elsewhere.
  cases.push_back({"one_tile", sliding_window(9, 9), f16, 2200, 2, 2, 50, 50, 64, 64});
  cases.push_back({"one_tile", sliding_window(60, 60), bf16, 2200, 2, 1, 64, 64, 64, 64});
  cases.push_back({"two_tiles", sliding_window(64, 9), f16, 200, 12, 12, 65, 65, 64, 64});
  CHECK(faults_of(cases) == "");
}

TEST_CASE("windows with global tokens, of as many query tiles as make a walk worth while") {
  const auto f16 = DType::Float16;
  const auto bf16 = DType::BFloat16;
  const auto tokens = global_tokens_in_two_places;
  const Expr q = query_position();
  const Expr k = key_position();
  const Mask holes = longformer(50, 40) && k % 7 != 3;
  const Mask no_keys = longformer(20, 30) && (q % 5 != 2 || k > 900);
  const Mask far_key = sliding_window(40, 40) || Mask(k < 57 || k == 800 || q == 77);
  const Mask one_query = (sliding_window(60, 60) && k % 3 != 1) || Mask(q == 77);
  std::vector<AttentionCase> cases = {
      {"of_1024", tokens(32, 512), f16, 11, 12, 12, 1024, 1024, 64, 64},
      {"of_2048", tokens(45, 1024), bf16, 6, 12, 12, 2048, 2048, 64, 64},
      {"of_2048", tokens(45, 1024), f16, 6, 12, 4, 2048, 2048, 40, 64},
      {"of_4096", tokens(64, 2048), f16, 3, 12, 12, 4096, 4096, 64, 64},
      {"ragged", tokens(60, 500), bf16, 6, 12, 12, 2001, 2001, 64, 64},
      {"holes", holes, f16, 11, 12, 2, 1000, 1000, 64, 40},
      {"no_keys", no_keys, bf16, 11, 12, 4, 1100, 1100, 64, 64},
      {"one_query", one_query, f16, 33, 5, 1, 1003, 1003, 64, 64},
      {"far_key", far_key, f16, 22, 6, 6, 1010, 1013, 32, 64},
      {"fewer_keys", longformer(64, 120), bf16, 11, 12, 12, 1024, 950, 64, 64},
      {"one_head_a_block", tokens(32, 512), f16, 132, 1, 1, 1024, 1024, 64, 64},
      {"of_1024", tokens(32, 512), f16, 11, 12, 12, 1024, 1024, 128, 128},
      {"of_2048", tokens(45, 1024), bf16, 6, 12, 12, 2048, 2048, 128, 96},
      {"of_2048", tokens(45, 1024), f16, 6, 12, 4, 2048, 2048, 64, 80},
      {"holes", holes, bf16, 11, 12, 2, 1000, 1000, 96, 40},
      {"no_keys", no_keys, f16, 11, 12, 4, 1100, 1100, 128, 128},
      {"one_query", one_query, f16, 33, 5, 1, 1003, 1003, 128, 72},
      {"far_key", far_key, bf16, 22, 6, 6, 1010, 1013, 80, 128},
      {"fewer_keys", longformer(64, 30), f16, 11, 12, 12, 1024, 950, 128, 128},
      {"one_head_a_block", tokens(32, 512), bf16, 132, 1, 1, 1024, 1024, 128, 128},
  };
  for (AttentionCase& one : cases) {
    one.has_lse = one.dtype == bf16 && one.kv_heads != 4;
    one.kernel_of_sm90 = "attention/global_local_sm90";
  }
  // Rows of heads that lie side by side are another kernel's.
  cases.push_back({"inside", tokens(32, 512), f16, 11, 12, 4, 1024, 1024, 64, 64});
  cases.back().has_heads_inside = true;
  cases.back().has_lse = false;
  CHECK(faults_of(cases) == "");
}

TEST_CASE("windows with global tokens, of so few query tiles that each block has an SM") {
  const auto f16 = DType::Float16;
  const auto bf16 = DType::BFloat16;
  const Expr q = query_position();
  const Expr k = key_position();
  const Mask holes = bigbird(32, 1, 1, 0, 3) && k % 7 != 3;
  const Mask no_keys = longformer(20, 30) && (q % 5 != 2 || k > 900);
  const Mask far_key = sliding_window(20, 20) || Mask(k < 17 || k == 800 || q == 77);
  const Mask one_query = (sliding_window(30, 30) && k % 3 != 1) || Mask(q == 77);
  const Mask no_queries = (sliding_window(60, 60) && k % 3 != 1) || Mask(k < 57 || k == 400);
  std::vector<AttentionCase> cases = {
      {"of_1024", global_tokens_in_two_places(32, 512), f16, 1, 12, 12, 1024, 1024, 64, 64},
      {"of_1024", global_tokens_in_two_places(32, 512), bf16, 1, 12, 4, 1024, 1024, 64, 64},
      {"of_768", global_tokens_in_two_places(45, 384), f16, 2, 6, 6, 768, 768, 64, 64},
      {"of_2048", global_tokens_in_two_places(45, 1024), bf16, 1, 4, 1, 2048, 2048, 40, 64},
      {"of_4096", global_tokens_in_two_places(64, 2048), f16, 1, 2, 2, 4096, 4096, 64, 64},
      {"runs", longformer(20, 40), bf16, 1, 1, 1, 7000, 7000, 64, 64},
      {"ragged", global_tokens_in_two_places(40, 500), bf16, 1, 8, 8, 1001, 1001, 64, 64},
      {"holes", holes, f16, 1, 8, 2, 1000, 1000, 64, 40},
      {"no_keys", no_keys, bf16, 2, 4, 4, 1100, 1100, 64, 24},
      {"one_query", one_query, f16, 1, 5, 1, 1003, 1003, 64, 64},
      {"far_key", far_key, f16, 2, 4, 4, 1010, 1013, 32, 64},
      {"fewer_keys", longformer(64, 120), bf16, 1, 6, 6, 1024, 950, 64, 64},
      {"no_queries", no_queries, f16, 1, 12, 12, 700, 700, 64, 64},
      {"inside", global_tokens_in_two_places(32, 512), f16, 1, 12, 4, 1024, 1024, 64, 64},
  };
  cases.back().has_heads_inside = true;
  for (AttentionCase& one : cases) {
    one.has_lse = one.dtype == bf16;
    one.kernel_of_sm90 = "attention/resident_sm90";
  }
  CHECK(faults_of(cases) == "");
}

TEST_CASE("keys at multiples of a distance, as bands without gaps") {
  std::vector<AttentionCase> cases;
  for (const std::int64_t step : {2, 3, 5}) {
    for (const std::int64_t head_dim : {40, 64, 128}) {
      const DType dtype = head_dim == 64 ? DType::Float16 : DType::BFloat16;
      const std::int64_t n = 64 * 3 * step;
      const auto add = [&](const char* name, const Mask& mask, std::int64_t batch,
                           std::int64_t q_len, std::int64_t kv_len) {
        cases.push_back({name, mask, dtype, batch, 6, 6, q_len, kv_len, head_dim, head_dim});
        cases.back().has_lse = false;
      };
      add("dilated", dilated(40, 100, step), 2, n, n);
      add("dilated_causal", dilated(70, 0, step) && causal_bottom_right(), 1, n, 2 * n);
      add("strided", strided(step), 8, n, n);
      add("dilated_odd", dilated(40, 100, step), 2, n + 1, n + 1);
    }
  }
  CHECK(faults_of(cases) == "");
}

TEST_CASE("keys scattered over many rows, gathered from stages") {
  std::vector<AttentionCase> cases;
  for (const std::int64_t head_dim : {32, 64, 72, 128, 256}) {
    for (const DType dtype : {DType::Float16, DType::BFloat16}) {
      const auto add = [&](const char* name, const Mask& mask, std::int64_t kv_heads,
                           std::int64_t q_len, std::int64_t kv_len) {
        cases.push_back({name, mask, dtype, 1, 12, kv_heads, q_len, kv_len, head_dim, head_dim});
      };
      const Mask some = random_tokens(0.01, 5);
      add("some", some, 12, 2048, 2048);
      add("groups", some, 3, 2000, 1500);
      add("causal", random_tokens(0.03, 5) && causal(), 12, 1999, 1999);
      add("per_head", some && key_position() % 12 != head_index(), 12, 1500, 1500);
      add("one_bank", random_tokens(0.1, 5) && Mask(key_position() % 8 == 5), 4, 1500, 1500);
      add("few_rows", some && Mask(query_position() % 37 == 5), 12, 2048, 2048);
      add("lengths", some, 4, 1200, 1200);
      cases.back().batch = 3;
      cases.back().kv_lengths = {1200, 0, 129};
    }
  }
  CHECK(faults_of(cases) == "");
}

TEST_CASE("few queries of heads that share a key head") {
  std::vector<AttentionCase> cases;
  for (const std::int64_t q_len : {1, 2, 7, 16, 32}) {
    for (const std::int64_t group : {1, 4, 8}) {
      const Expr position = query_position() + key_length() - query_length();
      const auto add = [&](const char* name, const Mask& mask, std::int64_t kv_len,
                           std::int64_t head_dim, DType dtype) {
        cases.push_back({name, mask, dtype, 3, 2 * group, 2, q_len, kv_len, head_dim, head_dim});
        cases.back().has_lse = false;
      };
      for (const DType dtype : {DType::Float16, DType::BFloat16}) {
        add("all", Mask(), 2800, 128, dtype);
        add("all", Mask(), 1, 64, dtype);
        add("causal", key_position() <= position, 333, 64, dtype);
        add("window", key_position() <= position && position - key_position() < 100, 1025, 96,
            dtype);
        add("causal", key_position() <= position, 3000, 128, dtype);
        add("window", key_position() <= position && position - key_position() < 2900, 3000, 64,
            dtype);
        add("scattered", (key_position() * 37 + query_position() * 5) % 41 == 0, 4096, 80, dtype);
        add("none", query_position() == 0 && key_position() == 70, 300, 128, dtype);
        add("wide", Mask(), 1001, 256, dtype);
        add("wide", key_position() <= position, 700, 192, dtype);
        add("narrow", Mask(), 1111, 40, dtype);
      }
    }
  }
  // So many parts that some meet in clusters, and those in memory.
  for (const std::int64_t head_dim : {64, 128, 256}) {
    for (const std::int64_t q_len : {1, 16}) {
      cases.push_back({"parts", Mask(), DType::Float16, 1, 1, 1, q_len, 8191, head_dim, head_dim});
      cases.push_back({"parts", Mask(), DType::BFloat16, 3, 1, 1, q_len, 5000, head_dim, head_dim});
      cases.back().kv_lengths = {5000, 0, 4001};
    }
  }
  // So many keys that queries and outputs are copied.
  cases.push_back({"inside", causal_bottom_right(), DType::Float16, 4, 32, 8, 16, 4096, 128, 128});
  cases.back().has_heads_inside = true;
  cases.back().has_lse = false;
  CHECK(faults_of(cases) == "");
}

TEST_CASE("few queries with numbers of keys, logarithms of sums and planes of masks") {
  std::vector<AttentionCase> cases;
  const Mask heads_differ =
      (key_position() + head_index() * 3) % 5 != 0 && key_position() < 900 - batch_index() * 200;
  for (const std::int64_t q_len : {1, 5, 16, 27}) {
    for (const std::int64_t batch : {1, 3}) {
      for (const bool has_lse : {false, true}) {
        const auto add = [&](const char* name, const Mask& mask, std::int64_t heads,
                             std::vector<std::int32_t> kv_lengths) {
          cases.push_back({name, mask, DType::Float16, batch, heads, 2, q_len, 1000, 64, 128});
          cases.back().kv_lengths = std::move(kv_lengths);
          cases.back().kv_lengths.resize(cases.back().kv_lengths.empty() ? 0 : batch, 0);
          cases.back().has_lse = has_lse;
        };
        add("all", Mask(), 2, {});
        add("all", Mask(), 6, {999, 1000, 17});
        add("all", Mask(), 6, {1, 0, 64});
        add("causal", causal(), 4, {700, 3, 1000});
        add("planes", heads_differ, 4, {});
        add("planes", heads_differ, 2, {800, 100, 30});
      }
    }
  }
  CHECK(faults_of(cases) == "");
}

TEST_CASE("random draws of mask, shape and head dim") {
  std::mt19937 generator(20);
  const auto draw = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(generator);
  };
  constexpr int kDraws = 10000;
  constexpr std::array<std::int64_t, 8> kDims = {8, 16, 32, 64, 80, 96, 128, 256};
  std::vector<AttentionCase> cases;
  for (int i = 0; i < kDraws; ++i) {
    const std::int64_t group = draw(1, 3);
    const std::int64_t kv_heads = draw(1, 2);
    const std::int64_t q_len = draw(0, 3) == 0 ? draw(1, 16) : draw(1, 600);
    const auto [name, mask] = family(static_cast<int>(draw(0, kFamilies - 1)), q_len);
    const std::int64_t head_dim = kDims[static_cast<std::size_t>(draw(0, 7))];
    cases.push_back({.name = name,
                     .mask = mask,
                     .dtype = draw(0, 1) == 0 ? DType::Float16 : DType::BFloat16,
                     .batch = draw(1, 2),
                     .heads = kv_heads * group,
                     .kv_heads = kv_heads,
                     .q_len = q_len,
                     .kv_len = draw(0, 3) == 0 ? draw(1, 600) : q_len,
                     .head_dim = head_dim,
                     .value_dim = head_dim});
  }
  CHECK(faults_of(cases) == "");
}
