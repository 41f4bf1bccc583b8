#pragma once

// Masked attention of one graph on a GPU against float64.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "attention_scores.hpp"
#include "base/files.hpp"
#include "base/parallel.hpp"
#include "gpu_testing.hpp"
#include "mask/evaluate.hpp"
#include "stof/stof.hpp"
#include "temporary_folder.hpp"

namespace stof::testing {

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
  ScoreModifier score = {};

  std::string text() const {
    return fmt::format("{}:{}:{}:{}x{}:{}:{}:{}{}{}{}{}{}{}", name, batch, heads, q_len, kv_len,
                       head_dim, value_dim, stof::name(dtype),
                       heads == kv_heads ? "" : fmt::format(":kv{}", kv_heads),
                       kv_lengths.empty() ? "" : fmt::format(":of {}", fmt::join(kv_lengths, ", ")),
                       has_lse ? "" : ":no lse", has_heads_inside ? ":heads inside" : "",
                       score.name.empty() ? "" : ":", score.name);
  }
};

constexpr double kTolerance16 = 1e-3;
constexpr double kToleranceB16 = 6e-3;

inline HostTensor random_normal(DType dtype, const std::vector<std::int64_t>& shape,
                                unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> draw;
  HostTensor tensor(dtype, shape);
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) {
    tensor.set(i, draw(generator));
  }
  return tensor;
}

// With the two axes in the middle in the other order.
inline HostTensor swapped(const HostTensor& tensor) {
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

// NaN in the rows of a batch element from `length` on: what lies there may be anything.
inline void fill_behind(HostTensor& tensor, std::int64_t batch, std::int64_t length) {
  const std::vector<std::int64_t>& shape = tensor.shape();  // [batch, heads, length, dim]
  for (std::int64_t h = 0; h < shape[1]; ++h) {
    const std::int64_t plane = (batch * shape[1] + h) * shape[2];
    for (std::int64_t i = (plane + length) * shape[3]; i < (plane + shape[2]) * shape[3]; ++i) {
      tensor.set(i, std::numeric_limits<double>::quiet_NaN());
    }
  }
}

struct AttentionTensors {
  HostTensor q, k, v, o, lse;
  std::optional<HostTensor> bias = {};  // of the score modifier
};

struct SampledRow {
  std::int64_t batch, head, query;
};

// At most `count` query rows: the first and last, and others at random.
inline std::vector<SampledRow> sampled_rows(const AttentionCase& of, std::int64_t count) {
  std::vector<SampledRow> rows;
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

struct AttentionError {
  double output = 0;  // ||O - O64|| / ||O64||
  double lse = 0;     // largest, relative to 1 + |lse|
  bool has_nan = false;
};

inline AttentionError error_of(const AttentionCase& of, const AttentionTensors& tensors) {
  mask::Evaluator mask(of.mask, {of.batch, of.heads, of.q_len, of.kv_len});
  std::vector<std::uint64_t> words(static_cast<std::size_t>((of.kv_len + 63) / 64));
  std::vector<double> scores(static_cast<std::size_t>(of.kv_len));
  AttentionError error;
  double difference = 0;
  double expected_norm = 0;
  for (const SampledRow& row : sampled_rows(of, 40)) {
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
        if (of.score.value) {
          score = of.score.value(score, tensors.bias ? &*tensors.bias : nullptr,
                                 {row.batch, row.head, row.query, key});
        }
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
inline std::string fault_of(const Engine& engine, const AttentionCase& of, unsigned seed) {
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
  if (of.score.expression) {
    options.score = of.score.expression([&] {
      return graph.capture(graph.input(
          "bias", Shape(std::vector<Dim>(of.score.bias_shape.begin(), of.score.bias_shape.end())),
          of.dtype));
    });
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

  AttentionTensors tensors{
      random_normal(of.dtype, {of.batch, of.heads, of.q_len, of.head_dim}, seed),
      random_normal(of.dtype, {of.batch, of.kv_heads, of.kv_len, of.head_dim}, seed + 1),
      random_normal(of.dtype, {of.batch, of.kv_heads, of.kv_len, of.value_dim}, seed + 2),
      filled_with_nan(of.dtype, {of.batch, of.heads, of.q_len, of.value_dim}),
      filled_with_nan(DType::Float32, {of.batch, of.heads, of.q_len})};
  for (std::size_t b = 0; b < of.kv_lengths.size(); ++b) {
    fill_behind(tensors.k, static_cast<std::int64_t>(b), of.kv_lengths[b]);
    fill_behind(tensors.v, static_cast<std::int64_t>(b), of.kv_lengths[b]);
  }
  std::vector<std::pair<std::string, Buffer>> buffers;
  Bindings bindings;
  const auto add = [&](const std::string& name, const TensorInfo& info, HostTensor& tensor) {
    buffers.emplace_back(name, engine.allocate(info));
    const bool is_swapped = of.has_heads_inside && name != "bias" && info.shape.sizes().size() == 4;
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
  if (!of.score.bias_shape.empty()) {
    tensors.bias = random_normal(of.dtype, of.score.bias_shape, seed + 3);
    add("bias", plan.input("bias"), *tensors.bias);
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
  const AttentionError error = error_of(of, tensors);
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
inline std::string faults_of(std::vector<AttentionCase> cases,
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

inline std::pair<std::string, Mask> family(int i, std::int64_t n) {
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

// A case of any family and shape, with up to 600 queries and keys.
inline AttentionCase random_case(std::mt19937& generator) {
  const auto draw = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(generator);
  };
  constexpr std::array<std::int64_t, 8> kDims = {8, 16, 32, 64, 80, 96, 128, 256};
  const std::int64_t group = draw(1, 3);
  const std::int64_t kv_heads = draw(1, 2);
  const std::int64_t q_len = draw(0, 3) == 0 ? draw(1, 16) : draw(1, 600);
  const auto [name, mask] = family(static_cast<int>(draw(0, kFamilies - 1)), q_len);
  const std::int64_t head_dim = kDims[static_cast<std::size_t>(draw(0, 7))];
  AttentionCase drawn = {.name = name,
                         .mask = mask,
                         .dtype = draw(0, 1) == 0 ? DType::Float16 : DType::BFloat16,
                         .batch = draw(1, 2),
                         .heads = kv_heads * group,
                         .kv_heads = kv_heads,
                         .q_len = q_len,
                         .kv_len = draw(0, 3) == 0 ? draw(1, 600) : q_len,
                         .head_dim = head_dim,
                         .value_dim = head_dim};
  const bool has_lengths = draw(0, 3) == 0;
  for (std::int64_t b = 0; has_lengths && b < drawn.batch; ++b) {
    drawn.kv_lengths.push_back(static_cast<std::int32_t>(draw(0, drawn.kv_len)));
  }
  return drawn;
}

inline std::vector<AttentionCase> random_cases(std::size_t count, std::mt19937& generator) {
  std::vector<AttentionCase> cases(count);
  for (AttentionCase& drawn : cases) {
    drawn = random_case(generator);
  }
  return cases;
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

}  // namespace stof::testing
