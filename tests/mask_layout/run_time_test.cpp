// Layouts of data that is on the GPU, built without waiting.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include <doctest/doctest.h>

#include "cuda/device_array.hpp"
#include "cuda/pinned_value.hpp"
#include "cuda/stream.hpp"
#include "layouts.hpp"
#include "mask/random_mask.hpp"
#include "stof/error.hpp"

using namespace stof;
using mask::Extent;
using mask_layout::DeviceMask;
using mask_layout::InputForm;
using mask_layout::MaskInput;
using mask_layout::RunTimeLayout;

namespace {

template <typename T>
cuda::DeviceArray<T> on_device(const std::vector<T>& values) {
  return cuda::DeviceArray<T>(std::span<const T>(values));
}

// A layout in memory of its own, and a CUDA graph that builds it.
class Captured {
 public:
  Captured(const DeviceMask& mask, const mask_layout::LayoutRequest& request,
           std::int64_t max_part_tiles, std::int64_t max_keys)
      : layout_(mask.grid(), request, max_part_tiles, max_keys),
        workspace_(layout_.workspace_bytes()) {
    layout_.build(mask, workspace_.data(), report_.get(), launches_);
    for (const cuda::KernelLaunch& launch : launches_.all()) {
      launch.kernel.load();
    }
    graph_.emplace(launches_.all());
  }

  mask_layout::Layout run() {
    graph_->launch(stream_.get());
    stream_.synchronize();
    return layout_.place(workspace_.data());
  }
  const mask_layout::LayoutReport& report() const { return *report_.get(); }

 private:
  RunTimeLayout layout_;
  cuda::DeviceArray<std::byte> workspace_;
  cuda::PinnedValue<mask_layout::LayoutReport> report_;
  cuda::Stream stream_;
  cuda::Launches launches_;
  std::optional<cuda::KernelGraph> graph_;
};

std::int32_t status_of(const mask_layout::Layout& layout) {
  return test::fetch(layout.counts, 1).front().status;
}

void check_empty(const mask_layout::Layout& layout) {
  const std::int64_t rows = layout.grid.row_count();
  for (const mask_layout::TileRows& list : {layout.full, layout.part, layout.load}) {
    if (list.row_ptr != nullptr) {
      CHECK(test::fetch(list.row_ptr, rows + 1) == test::Indices(rows + 1));
    }
  }
  for (const mask_layout::AttentionTiles& tiles : layout.attention_tiles) {
    const std::int64_t count = layout.grid.planes() * tiles.q_tiles;
    CHECK(test::fetch(tiles.row_ptr, count + 1) == test::Indices(count + 1));
  }
}

constexpr std::int64_t kManyKeys = 1 << 22;
const mask_layout::LayoutRequest kQueryTiles = {.tile_q = test::all_tile_q(), .tile_lists = false};

// The input and the mask are seen together.
void check_input(const Mask& mask, const MaskInput& input, const Mask& equal,
                 const Extent& extent) {
  const mask::MaskLayout expected = mask::build_layout(equal, extent);
  const DeviceMask device(mask, extent, {}, {input});
  Captured captured(device, test::everything(), 0, kManyKeys);
  for (int run = 0; run < 2; ++run) {
    const mask_layout::Layout layout = captured.run();
    CHECK(status_of(layout) == 0);
    test::check_layout(layout, expected);
  }
  test::check_layout(mask_layout::build_layout(device, test::everything()).layout(), expected);
  Captured at_once(device, kQueryTiles, 0, 0);
  for (int run = 0; run < 2; ++run) {
    const mask_layout::Layout layout = at_once.run();
    CHECK(status_of(layout) == 0);
    test::check_query_tiles(layout, expected);
  }
}

}  // namespace

TEST_CASE("key lengths") {
  const Extent extent = {.batch = 4, .heads = 2, .q_len = 200, .kv_len = 500};
  const auto lengths = on_device<std::int32_t>({500, 0, 64, 77});
  const MaskInput input = {.form = InputForm::KeyLengths, .data = lengths.data()};
  const Mask padding = key_padding({{500, 0, 64, 77}});
  check_input(Mask(), input, padding, extent);
  check_input(causal(), input, padding && causal(), extent);
}

TEST_CASE("document offsets") {
  const Extent extent = {.q_len = 1000, .kv_len = 900};
  const auto offsets = on_device<std::int32_t>({0, 64, 64, 300, 301, 850});
  const MaskInput input = {.form = InputForm::CuSeqlens, .data = offsets.data(), .count = 6};
  // Tokens behind the last offset belong to no document.
  const Mask packed = documents({0, 64, 64, 300, 301, 850, 1000}) &&
                      Mask(query_position() < 850 && key_position() < 850);
  check_input(Mask(), input, packed, extent);
  check_input(causal(), input, packed && causal(), extent);
}

TEST_CASE("runs of documents along a band, alone and beside lists") {
  const Extent extent = {.q_len = 5000, .kv_len = 4900};
  std::vector<std::int32_t> starts = {0, 64, 64, 300, 301, 850};
  const std::vector<std::int32_t> few = starts;
  while (std::ssize(starts) < 4300) {  // more than are looked at at once
    starts.push_back(starts.back() + static_cast<std::int32_t>(starts.size() % 2));
  }
  for (const std::vector<std::int32_t>& values : {few, starts}) {
    const auto offsets = on_device<std::int32_t>(values);
    const MaskInput input = {
        .form = InputForm::CuSeqlens, .data = offsets.data(), .count = std::ssize(values)};
    std::vector<std::int32_t> known = values;
    const std::int64_t last = known.back();
    known.push_back(static_cast<std::int32_t>(extent.q_len));
    const Mask packed = documents(known) && Mask(query_position() < last && key_position() < last);
    const Mask ahead = sliding_window(0, 8) && key_position() - query_position() >= 3;
    for (const Mask& fixed : {Mask(), causal(), sliding_window(70, 9), ahead}) {
      const auto rows = mask::interval_rows(mask::build_layout(packed && fixed, extent));
      REQUIRE(rows);
      const DeviceMask device(fixed, extent, {}, {input});
      const auto band = mask::band(mask::build_layout(fixed, extent));
      for (const std::vector<std::int64_t>& tile_q :
           {std::vector<std::int64_t>{}, std::vector<std::int64_t>{64}}) {
        Captured runs(device, {.tile_q = tile_q, .runs = band, .tile_lists = false}, 0, 0);
        const mask_layout::Layout layout = runs.run();
        CHECK(test::fetch(layout.rows.first, extent.q_len) == rows->first);
        CHECK(test::fetch(layout.rows.end, extent.q_len) == rows->end);
        CHECK(layout.attention_tiles.size() == tile_q.size());
      }
    }
  }
}

TEST_CASE("runs of offsets out of range are none") {
  const Extent extent = {.q_len = 300, .kv_len = 300};
  for (const std::vector<std::int32_t>& values :
       {std::vector<std::int32_t>{1, 300}, {0, 301}, {0, 200, 199, 300}, {0, -1}}) {
    const auto offsets = on_device<std::int32_t>(values);
    const DeviceMask device(
        Mask(), extent, {},
        {{.form = InputForm::CuSeqlens, .data = offsets.data(), .count = std::ssize(values)}});
    Captured runs(device, {.runs = mask::Band{-300, 300}, .tile_lists = false}, 0, 0);
    const mask_layout::Layout layout = runs.run();
    CHECK(test::fetch(layout.rows.first, 300) == test::Indices(300));
    CHECK(test::fetch(layout.rows.end, 300) == test::Indices(300));
    CHECK(runs.report().status == mask_layout::kInvalidData);
  }
}

TEST_CASE("dense bytes") {
  for (const Extent& extent : test::hostile_extents()) {
    test::RandomMask random(static_cast<unsigned>(extent.q_len + extent.kv_len), extent);
    for (int i = 0; i < 4; ++i) {
      test::Bytes keep = random.bytes(extent.q_len, extent.kv_len, 1 + i * 3, i % 2 == 0);
      keep.values[0] = 1;
      const auto bytes = on_device(keep.values);
      const MaskInput input = {
          .form = InputForm::Dense, .data = bytes.data(), .batch = keep.batch, .heads = keep.heads};
      check_input(Mask(), input, Mask::dense(keep.view()), extent);
    }
  }
}

TEST_CASE("compressed rows, in any order within a row") {
  const Extent extent = {.q_len = 130, .kv_len = 333};
  std::vector<std::int32_t> row_ptr = {0};
  std::vector<std::int32_t> ascending;
  std::vector<std::int32_t> descending;
  for (std::int32_t q = 0; q < 130; ++q) {
    std::vector<std::int32_t> row;
    for (std::int32_t k = q % 3; k < 333; k += 1 + q) {
      row.push_back(k);
    }
    ascending.insert(ascending.end(), row.begin(), row.end());
    descending.insert(descending.end(), row.rbegin(), row.rend());
    row_ptr.push_back(static_cast<std::int32_t>(ascending.size()));
  }
  const auto rows = on_device(row_ptr);
  const auto columns = on_device(descending);
  const MaskInput input = {.form = InputForm::Csr,
                           .data = columns.data(),
                           .row_ptr = rows.data(),
                           .count = std::ssize(descending)};
  check_input(strided(2), input, Mask::csr(row_ptr, ascending, 333) && strided(2), extent);
}

TEST_CASE("compressed rows of so many keys that shared memory does not hold their bits") {
  const Extent extent = {.q_len = 5, .kv_len = 60000};
  std::vector<std::int32_t> row_ptr = {0};
  std::vector<std::int32_t> columns;
  for (std::int32_t q = 0; q < 5; ++q) {
    for (std::int32_t k = q; k < 60000; k += 1 + 7 * q) {
      columns.push_back(k);
    }
    row_ptr.push_back(static_cast<std::int32_t>(columns.size()));
  }
  const auto rows = on_device(row_ptr);
  const auto keys = on_device(columns);
  check_input(Mask(),
              {.form = InputForm::Csr,
               .data = keys.data(),
               .row_ptr = rows.data(),
               .count = std::ssize(columns)},
              Mask::csr(row_ptr, columns, 60000), extent);
}

TEST_CASE("compressed rows of every length, wherever they begin") {
  const Extent extent = {.q_len = 300, .kv_len = 700};
  std::vector<std::int32_t> row_ptr = {0};
  std::vector<std::int32_t> columns;
  for (std::int32_t q = 0; q < 300; ++q) {
    const std::int32_t length = q < 200 ? q : q * q % 700;
    for (std::int32_t i = 0; i < length; ++i) {
      columns.push_back((q + i) % 700);
    }
    std::sort(columns.end() - length, columns.end());
    row_ptr.push_back(static_cast<std::int32_t>(columns.size()));
  }
  const auto rows = on_device(row_ptr);
  for (std::size_t shift = 0; shift < 4; ++shift) {
    std::vector<std::int32_t> shifted(shift, -1);
    shifted.insert(shifted.end(), columns.begin(), columns.end());
    const auto keys = on_device(shifted);
    MaskInput input = {.form = InputForm::Csr,
                       .data = keys.data() + shift,
                       .row_ptr = rows.data(),
                       .count = std::ssize(columns)};
    check_input(Mask(), input, Mask::csr(row_ptr, columns, 700), extent);
    // A column out of range, wherever in its row it is.
    for (const std::size_t place : {row_ptr[150], row_ptr[150] + 77, row_ptr[151] - 1}) {
      shifted = std::vector<std::int32_t>(shift);
      shifted.insert(shifted.end(), columns.begin(), columns.end());
      shifted[shift + place] = 700;
      const auto wrong = on_device(shifted);
      input.data = wrong.data() + shift;
      const DeviceMask device(Mask(), extent, {}, {input});
      CHECK(status_of(Captured(device, kQueryTiles, 0, 0).run()) == mask_layout::kInvalidData);
    }
  }
}

TEST_CASE("as many inputs of columns as there may be, with an expression of many slots") {
  const Extent extent = {.q_len = 70, .kv_len = 4000};
  std::vector<std::int32_t> row_ptr = {0};
  std::vector<std::int32_t> columns;
  for (std::int32_t q = 0; q < 70; ++q) {
    for (std::int32_t k = q; k < 4000; k += 3) {
      columns.push_back(k);
    }
    row_ptr.push_back(static_cast<std::int32_t>(columns.size()));
  }
  const auto rows = on_device(row_ptr);
  const auto keys = on_device(columns);
  const std::vector<MaskInput> inputs(4, {.form = InputForm::Csr,
                                          .data = keys.data(),
                                          .row_ptr = rows.data(),
                                          .count = std::ssize(columns)});
  // Operands that wait for one another, deeper and deeper.
  const Expr k = key_position();
  Expr sum = k * k;
  for (int i = 0; i < 5; ++i) {
    sum = (k * (i + 2) + query_position()) * sum - (sum + i) * k;
  }
  HostTensor zero(DType::Int32, {1});
  const Mask seen(sum % 7 != Capture("zero", DType::Int32, 1)(0));
  const DeviceMask device(seen, extent, {{"zero", zero.view()}}, inputs);
  Captured captured(device, kQueryTiles, 0, 0);
  test::check_query_tiles(
      captured.run(),
      mask::build_layout(Mask(sum % 7 != 0) && Mask::csr(row_ptr, columns, 4000), extent));
}

TEST_CASE("two inputs are seen together") {
  const Extent extent = {.batch = 2, .heads = 1, .q_len = 100, .kv_len = 100};
  const auto lengths = on_device<std::int32_t>({100, 30});
  const auto offsets = on_device<std::int32_t>({0, 50, 100});
  const DeviceMask device(causal(), extent, {},
                          {{.form = InputForm::KeyLengths, .data = lengths.data()},
                           {.form = InputForm::CuSeqlens, .data = offsets.data(), .count = 3}});
  Captured captured(device, test::everything(), 0, kManyKeys);
  test::check_layout(
      captured.run(),
      mask::build_layout(causal() && key_padding({{100, 30}}) && documents({0, 50, 100}), extent));
}

TEST_CASE("each run sees what the data is then") {
  const Extent extent = {.batch = 2, .heads = 1, .q_len = 100, .kv_len = 300};
  const auto lengths = on_device<std::int32_t>({100, 300});
  const DeviceMask device(causal(), extent, {},
                          {{.form = InputForm::KeyLengths, .data = lengths.data()}});
  Captured captured(device, test::everything(), 6, kManyKeys);
  Captured at_once(device, kQueryTiles, 6, 0);
  for (const std::int64_t length : {7, 300, 64, 99}) {
    const std::int32_t values[] = {static_cast<std::int32_t>(length), 300};
    STOF_CUDA(cudaMemcpy(lengths.data(), values, sizeof(values), cudaMemcpyHostToDevice));
    STOF_CUDA(cudaDeviceSynchronize());  // the copy; the stream does not wait for it
    const mask::MaskLayout expected =
        mask::build_layout(causal() && key_padding({{length, 300}}), extent);
    test::check_layout(captured.run(), expected);
    test::check_query_tiles(at_once.run(), expected);
  }
}

TEST_CASE("too many part tiles are said, not left out") {
  const Extent extent = {.q_len = 640, .kv_len = 640};
  const DeviceMask device(causal(), extent);
  for (const mask_layout::LayoutRequest& request : {test::everything(), kQueryTiles}) {
    Captured enough(device, request, 10, kManyKeys);
    CHECK(status_of(enough.run()) == 0);
    CHECK(enough.report().status == 0);
    Captured too_few(device, request, 9, kManyKeys);
    for (int run = 0; run < 2; ++run) {
      const mask_layout::Layout layout = too_few.run();
      CHECK(status_of(layout) == mask_layout::kPartTilesOverflow);
      CHECK(too_few.report().status == mask_layout::kPartTilesOverflow);
      CHECK(too_few.report().part_tiles == 10);
      check_empty(layout);
    }
  }
}

TEST_CASE("too many keys are said, not left out") {
  const Extent extent = {.q_len = 100, .kv_len = 100};
  const DeviceMask device(causal(), extent);
  Captured enough(device, test::everything(), 0, 5050);
  CHECK(status_of(enough.run()) == 0);
  Captured too_few(device, test::everything(), 0, 5049);
  const mask_layout::Layout layout = too_few.run();
  CHECK(status_of(layout) == mask_layout::kKeysOverflow);
  CHECK(test::fetch(layout.rows.key_row_ptr, 101) == test::Indices(101));
}

TEST_CASE("inputs and captures may lie elsewhere on the next run") {
  const Extent extent = {.batch = 2, .heads = 1, .q_len = 100, .kv_len = 300};
  const auto keep_of = [](std::int64_t stride) {
    std::vector<std::uint8_t> keep(600);
    for (std::size_t i = 0; i < keep.size(); i += static_cast<std::size_t>(stride)) {
      keep[i] = 1;
    }
    return keep;
  };
  const std::vector<std::vector<std::uint8_t>> keeps = {keep_of(2), keep_of(7)};
  const cuda::DeviceArray<std::uint8_t> on_gpu[] = {on_device(keeps[0]), on_device(keeps[1])};
  const auto first = on_device<std::int32_t>({100, 300});
  const auto second = on_device<std::int32_t>({299, 1});
  const Mask padding = key_padding(Capture("keep", DType::Bool, 2));
  DeviceMask device(padding, extent,
                    {{"keep", TensorView{.data = on_gpu[0].data(),
                                         .dtype = DType::Bool,
                                         .shape = {2, 300},
                                         .location = Location::Device}}},
                    {{.form = InputForm::KeyLengths, .data = first.data()}});
  const auto expected = [&](const std::vector<std::uint8_t>& keep,
                            const std::int64_t(&lengths)[2]) {
    HostTensor host(DType::Bool, {2, 300});
    for (std::int64_t i = 0; i < 600; ++i) {
      host.set(i, keep[static_cast<std::size_t>(i)]);
    }
    return mask::build_layout(padding && key_padding({{lengths[0], lengths[1]}}), extent,
                              {{"keep", host.view()}});
  };
  test::check_layout(Captured(device, test::everything(), 0, kManyKeys).run(),
                     expected(keeps[0], {100, 300}));
  device.set_capture("keep", on_gpu[1].data());
  device.set_input(0, second.data());
  test::check_layout(Captured(device, test::everything(), 0, kManyKeys).run(),
                     expected(keeps[1], {299, 1}));
}

TEST_CASE("rows of many lengths are sorted, those of one length in their order") {
  // Two passes of eight bits over several blocks, and three.
  for (const auto& [q_len, kv_len] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{5000, 3000}, {2049, 70000}}) {
    const Extent extent = {.q_len = q_len, .kv_len = kv_len};
    const Mask mask = key_position() % (1 + query_position() % 97) == 0 &&
                      key_position() < query_position() * query_position() % kv_len;
    const DeviceMask device(mask, extent);
    const auto built = mask_layout::build_layout(device, {.rows = true});
    test::check_rows(built.layout(), mask::build_layout(mask, extent));
  }
}

TEST_CASE("data out of range is said") {
  const Extent extent = {.batch = 2, .heads = 1, .q_len = 100, .kv_len = 200};
  test::Indices one_entry(101, 1);
  one_entry[0] = 0;
  const auto one_row = on_device(one_entry);
  const auto check = [&](const test::Indices& values, MaskInput input) {
    const auto data = on_device(values);
    input.data = data.data();
    input.count = std::ssize(values);
    const DeviceMask device(Mask(), extent, {}, {input});
    for (const mask_layout::LayoutRequest& request : {test::everything(), kQueryTiles}) {
      Captured captured(device, request, 0, kManyKeys);
      const mask_layout::Layout layout = captured.run();
      CHECK(status_of(layout) == mask_layout::kInvalidData);
      CHECK(captured.report().status == mask_layout::kInvalidData);
      check_empty(layout);
    }
    CHECK_THROWS_WITH_AS(mask_layout::build_layout(device),
                         "mask: lengths, offsets or columns on the device are out of range",
                         GraphError);
  };
  check({200, -1}, {.form = InputForm::KeyLengths});
  check({201, 0}, {.form = InputForm::KeyLengths});
  check({1, 100}, {.form = InputForm::CuSeqlens});
  check({0, 50, 40}, {.form = InputForm::CuSeqlens});
  check({0, 201}, {.form = InputForm::CuSeqlens});
  check({200}, {.form = InputForm::Csr, .row_ptr = one_row.data()});
  check({-1}, {.form = InputForm::Csr, .row_ptr = one_row.data()});
  test::Indices falling = one_entry;
  falling[50] = 0;
  const auto falling_rows = on_device(falling);
  check({5}, {.form = InputForm::Csr, .row_ptr = falling_rows.data()});
}
