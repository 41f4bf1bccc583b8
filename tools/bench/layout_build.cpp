// Times the build of layouts of the bench masks on the GPU: as one CUDA graph, and stage by stage.
// Usage: bench.layout_build [QUERIES...]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "cuda/device_array.hpp"
#include "cuda/stream.hpp"
#include "mask_layout/build.hpp"
#include "mask_layout/fill.hpp"
#include "mask_layout/stages.hpp"
#include "masks.hpp"

namespace {

namespace layouts = stof::mask_layout;
namespace cuda = stof::cuda;

constexpr int kRuns = 20;

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
  std::vector<cuda::Launches> stages(7);
  layouts::fill(layout.counts, 0, sizeof(*layout.counts), stages[0]);
  layouts::settle_tiles(mask.view(), layout, buffers.open, stages[0]);
  layouts::clear(buffers.pool, stages[1]);
  layouts::evaluate_tiles(mask.view(), layout, buffers.open, buffers.pool, stages[2]);
  layouts::list_tiles(layout, buffers.pool, stages[3]);
  layouts::derive_attention_tiles(layout, layout.attention_tiles[0], buffers.space, stages[4]);
  layouts::measure_rows(layout, capacity.keys, buffers.space, stages[5]);
  layouts::list_keys(layout, stages[6]);
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

void time_mask(std::string_view name, std::int64_t queries) {
  const layouts::DeviceMask mask(stof::bench::mask(name, queries),
                                 {.q_len = queries, .kv_len = queries});
  const layouts::BuiltLayout built = layouts::build_layout(mask, {.rows = true});
  const layouts::LayoutCounts& counts = built.counts();
  const layouts::Capacity capacity = {.full_tiles = mask.grid().tile_count(),
                                      .part_tiles = std::max(1, counts.part_tiles),
                                      .keys = counts.seen_pairs};
  fmt::print("{:14} {:6} {:7} {:7} {:7}", name, queries, counts.open_tiles, counts.part_tiles,
             counts.distinct_bitmaps);
  fmt::print(" {:8.1f}", graph_us(mask, {}, capacity.part_tiles, 0));
  fmt::print(" {:8.1f}", graph_us(mask, {.tile_q = {128}}, capacity.part_tiles, 0));
  fmt::print(" {:8.1f} |", graph_us(mask, {.key_rows = true}, capacity.part_tiles, capacity.keys));
  for (const float time : stage_us(mask, capacity)) {
    fmt::print(" {:8.1f}", time);
  }
  fmt::print("\n");
  std::fflush(stdout);
}

int run(int argc, char** argv) {
  std::vector<std::int64_t> lengths;
  for (int i = 1; i < argc; ++i) {
    lengths.push_back(std::strtoll(argv[i], nullptr, 10));
  }
  if (lengths.empty()) {
    lengths = {4096, 16384};
  }
  fmt::print(
      "{:14} {:>6} {:>7} {:>7} {:>7} {:>8} {:>8} {:>8} | {:>8} {:>8} {:>8} {:>8} {:>8} "
      "{:>8} {:>8}\n",
      "us", "n", "open", "part", "bitmaps", "layout", "+tiles", "+keys", "settle", "clear",
      "evaluate", "list", "tiles", "rows", "keys");
  for (const std::int64_t queries : lengths) {
    for (const std::string_view name : stof::bench::kMaskNames) {
      time_mask(name, queries);
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
