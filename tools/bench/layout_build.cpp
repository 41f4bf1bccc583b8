// Times the build of layouts of the bench masks on the GPU: as one CUDA graph, and stage by stage.
// Usage: bench.layout_build [QUERIES...] [MASKS...]
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "cuda/device_array.hpp"
#include "cuda/stream.hpp"
#include "mask_layout/build.hpp"
#include "mask_layout/stages.hpp"
#include "masks.hpp"

namespace {

namespace layouts = stof::mask_layout;
namespace cuda = stof::cuda;

constexpr int kRuns = 20;
constexpr std::int64_t kMostKeys = std::int64_t{1} << 28;  // that are listed
constexpr std::int64_t kMostInputQueries = 8192;           // of masks whose data is on the GPU

float median(std::vector<float> values) {
  std::ranges::nth_element(values, values.begin() + std::ssize(values) / 2);
  return values[values.size() / 2];
}

// One launch of a graph that holds the whole build.
float graph_us(const layouts::DeviceMask& mask, const layouts::LayoutRequest& request,
               std::int64_t max_part_tiles, std::int64_t max_keys) {
  const layouts::RunTimeLayout layout(mask.grid(), request, max_part_tiles, max_keys);
  const cuda::DeviceArray<std::byte> workspace(layout.workspace_bytes());
  const cuda::Stream stream;
  cuda::Launches launches;
  layout.build(mask, workspace.data(), nullptr, launches);
  for (const cuda::KernelLaunch& launch : launches.all()) {
    launch.kernel.load();
  }
  const cuda::KernelGraph graph(launches.all());
  std::vector<float> times;
  const cuda::Event start;
  const cuda::Event stop;
  for (int i = 0; i < kRuns; ++i) {
    start.record(stream.get());
    graph.launch(stream.get());
    stop.record(stream.get());
    stop.synchronize();
    times.push_back(stop.microseconds_since(start));
  }
  return median(times);
}

// Medians of the stages, each with its launches.
std::vector<float> stage_us(const layouts::DeviceMask& mask, layouts::Capacity capacity) {
  layouts::Buffers buffers;
  buffers.layout.grid = mask.grid();
  const auto carve = [&](layouts::Carver carver) {
    layouts::carve_codes(carver, buffers);
    layouts::carve_lists(carver, buffers, {.tile_q = {128}, .rows = true, .key_rows = true},
                         capacity);
    layouts::carve_keys(carver, buffers, capacity);
    return carver.size_bytes();
  };
  const cuda::DeviceArray<std::byte> memory(carve(layouts::Carver()));
  carve(layouts::Carver(memory.data()));
  const cuda::Stream stream;
  const layouts::Layout& layout = buffers.layout;
  std::vector<cuda::Launches> stages(5);
  layouts::settle_tiles(mask.view(), layout, buffers.classes.codes, buffers.pool, stages[0]);
  mask.write_bits(&layout.counts->status, stages[0]);
  layouts::evaluate_tiles(mask.view(), layout, buffers.classes, buffers.pool, stages[1]);
  layouts::list_tiles(layout, buffers.classes, buffers.pool, buffers.space, nullptr, stages[2]);
  layouts::measure_rows(layout, capacity.keys, buffers.space, stages[3]);
  layouts::list_keys(layout, stages[4]);
  std::vector<std::vector<float>> times(stages.size());
  std::vector<cuda::Event> events(stages.size() + 1);
  for (int run = 0; run < kRuns; ++run) {
    events[0].record(stream.get());
    for (std::size_t i = 0; i < stages.size(); ++i) {
      stages[i].launch(stream.get());
      events[i + 1].record(stream.get());
    }
    stream.synchronize();
    for (std::size_t i = 0; i < stages.size(); ++i) {
      times[i].push_back(events[i + 1].microseconds_since(events[i]));
    }
  }
  std::vector<float> medians(times.size());
  std::ranges::transform(times, medians.begin(), median);
  return medians;
}

void time_layout(std::string_view name, std::int64_t queries, const layouts::DeviceMask& mask) {
  const layouts::BuiltLayout built = layouts::build_layout(mask, {.rows = true});
  const layouts::LayoutCounts& counts = built.counts();
  const layouts::Capacity capacity = {.full_tiles = mask.grid().tile_count(),
                                      .part_tiles = std::max(1, counts.part_tiles),
                                      .keys = std::min(counts.seen_pairs, kMostKeys)};
  fmt::print("{:14} {:6} {:7} {:7} {:7}", name, queries, counts.open_tiles, counts.part_tiles,
             counts.distinct_bitmaps);
  fmt::print(" {:8.1f}", graph_us(mask, {}, capacity.part_tiles, 0));
  fmt::print(" {:8.1f}", graph_us(mask, {.tile_q = {128}}, capacity.part_tiles, 0));
  fmt::print(" {:8.1f}", graph_us(mask, {.tile_q = {128}, .tile_lists = false}, 0, 0));
  fmt::print(" {:8.1f} |", graph_us(mask, {.key_rows = true}, capacity.part_tiles, capacity.keys));
  for (const float time : stage_us(mask, capacity)) {
    fmt::print(" {:8.1f}", time);
  }
  fmt::print("\n");
  std::fflush(stdout);
}

// Masks whose data is on the GPU: causal ones of a length, of documents, of bytes and of columns.
void time_inputs(std::int64_t queries) {
  const auto time_input = [&](std::string_view name, const stof::Mask& mask,
                              const layouts::MaskInput& input) {
    time_layout(name, queries,
                layouts::DeviceMask(mask, {.q_len = queries, .kv_len = queries}, {}, {input}));
  };
  const auto n = static_cast<std::int32_t>(queries);
  const cuda::DeviceArray<std::int32_t> length(std::vector<std::int32_t>{n - n / 5});
  time_input("key_lengths", stof::causal(),
             {.form = layouts::InputForm::KeyLengths, .data = length.data()});
  const cuda::DeviceArray<std::int32_t> offsets(stof::bench::document_offsets(queries));
  time_input("cu_seqlens", stof::causal(),
             {.form = layouts::InputForm::CuSeqlens,
              .data = offsets.data(),
              .count = static_cast<std::int64_t>(offsets.size())});
  constexpr std::int32_t kWindow = 128;
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(queries * queries));
  std::vector<std::int32_t> row_ptr = {0};
  std::vector<std::int32_t> columns;
  for (std::int32_t q = 0; q < n; ++q) {
    for (std::int32_t k = std::max(0, q - kWindow); k <= q; ++k) {
      bytes[static_cast<std::size_t>(q * queries + k)] = 1;
      columns.push_back(k);
    }
    row_ptr.push_back(static_cast<std::int32_t>(columns.size()));
  }
  const cuda::DeviceArray<std::uint8_t> dense(bytes);
  time_input("dense", stof::Mask(), {.form = layouts::InputForm::Dense, .data = dense.data()});
  const cuda::DeviceArray<std::int32_t> rows(row_ptr);
  const cuda::DeviceArray<std::int32_t> keys(columns);
  time_input("csr", stof::Mask(),
             {.form = layouts::InputForm::Csr,
              .data = keys.data(),
              .row_ptr = rows.data(),
              .count = std::ssize(columns)});
}

int run(int argc, char** argv) {
  std::vector<std::int64_t> lengths;
  std::vector<std::string_view> names;
  for (int i = 1; i < argc; ++i) {
    const std::int64_t length = std::strtoll(argv[i], nullptr, 10);
    if (length > 0) {
      lengths.push_back(length);
    } else {
      names.emplace_back(argv[i]);
    }
  }
  if (lengths.empty()) {
    lengths = {4096, 16384};
  }
  const bool has_inputs = names.empty();
  if (has_inputs) {
    names = stof::bench::mask_names();
  }
  fmt::print(
      "{:14} {:>6} {:>7} {:>7} {:>7} {:>8} {:>8} {:>8} {:>8} | {:>8} {:>8} {:>8} {:>8} {:>8}\n",
      "us", "n", "open", "part", "bitmaps", "layout", "+tiles", "at once", "+keys", "settle",
      "evaluate", "list", "rows", "keys");
  for (const std::int64_t queries : lengths) {
    for (const std::string_view name : names) {
      time_layout(name, queries,
                  layouts::DeviceMask(stof::bench::mask(name, queries),
                                      {.q_len = queries, .kv_len = queries}));
    }
    if (has_inputs && queries <= kMostInputQueries) {
      time_inputs(queries);
    }
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
