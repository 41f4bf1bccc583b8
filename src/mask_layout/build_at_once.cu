// A layout without two-level lists in one kernel, of a small grid: a block settles, reads and
// evaluates neighbouring tiles of a tile row, each part tile has a bitmap of its own, and the block
// that is done last lists the query tiles.
#include <algorithm>

#include "mask_layout/launch_order.cuh"
#include "mask_layout/query_tiles.cuh"
#include "mask_layout/row_bits.cuh"
#include "mask_layout/settle.cuh"
#include "mask_layout/staged_inputs.cuh"

namespace stof::mask_layout {

namespace {

constexpr int kMostThreads = 512;
constexpr int kMostWarps = kMostThreads / kWarp;
constexpr int kHalves = 2;  // of a tile, each the rows of a warp of a pair
constexpr int kMostPairs = kMostWarps / kHalves;
constexpr int kMostTiles = 32;                                    // of a stretch
constexpr int kLaneWords = 128;                                   // of a bitmap
constexpr std::int64_t kMostListedTiles = std::int64_t{1} << 14;  // by one block
constexpr std::int64_t kMostListedQueryTiles = 256;               // of one size

struct Work {
  ListWork lists;
  std::int64_t bitmaps = 0;
  Arrivals* arrivals = nullptr;
  int stretch_tiles = 0;  // the most
};

// A block has stretch blockIdx.y of tile row blockIdx.x.
__device__ TileStretch stretch_of_block(const Work& work) {
  const auto cols = static_cast<int>(work.lists.grid.tile_cols);
  const auto row = static_cast<int>(blockIdx.x);
  const int col = static_cast<int>(blockIdx.y) * work.stretch_tiles;
  return {.place = TilePlace(work.lists.grid, row, col),
          .first_tile = row * cols + col,
          .count = std::min(work.stretch_tiles, cols - col)};
}

__device__ TilePlace place_in(const TileStretch& stretch, int tile) {
  TilePlace place = stretch.place;
  place.key += tile * mask::kTile;
  return place;
}

// What inputs that are staged say, for the tiles of the stretch: the bits of columns lie in shared
// memory, one input behind the other.
struct StagedInputs {
  const MaskView& mask;
  std::byte* memory;
  int row_words;

  // Runs a function for each of them, with its kind and the bits of its columns.
  template <typename Function>
  __device__ void for_each(Function function) const {
    std::byte* bits = memory;
#pragma unroll 1
    for (int i = 0; i < mask.input_count; ++i) {
      const Part& input = mask.inputs[i];
      if (is_staged(input.kind)) {
        function(input, ColumnBits{reinterpret_cast<std::uint64_t*>(bits), row_words});
      }
      bits += input.kind == PartKind::StagedColumns ? ColumnBits::bytes_of(row_words) : 0;
    }
  }

  // By the block, as `read`; it has to synchronise behind each.
  __device__ void clear() const {
    for_each([](const Part& input, const ColumnBits& bits) {
      if (input.kind == PartKind::StagedColumns) {
        bits.clear();
      }
    });
  }
  __device__ void read(const Work& work, const TileStretch& stretch) const {
    for_each([&](const Part& input, const ColumnBits& bits) {
      if (input.kind == PartKind::StagedColumns) {
        bits.read(input, work.lists.grid, stretch, &work.arrivals->status);
      }
    });
  }

  // The rows of half a tile, by a warp.
  __device__ void write_rows(const Grid& grid, const TileStretch& stretch, int tile, int half,
                             std::uint64_t (&rows)[kTile]) const {
    const int row = half * kWarp + lane_of_thread();
    rows[row] = ~std::uint64_t{0};
    __syncwarp();
    for_each([&](const Part& input, const ColumnBits& bits) {
      if (input.kind == PartKind::StagedBytes) {
        mask_by_bytes(input, grid, place_in(stretch, tile), half * kWarp, lane_of_thread(), rows);
      } else {
        rows[row] &= bits.at(row, tile);
        __syncwarp();
      }
    });
  }
};

// Leaves in half of `rows` what of them the rest of the mask lets see too, by a warp.
__device__ void evaluate_rows(const Program& program, const Grid& grid, const TilePlace& place,
                              int half, const Slots& slots, std::uint64_t (&rows)[kTile]) {
  const int row = half * kWarp + lane_of_thread();
  const Point point = point_of(place, row, 0);
  std::uint64_t bits = 0;
  if (point.query < grid.q_len && rows[row] != 0) {
    prepare_row(program, grid, point, slots);
    bits = row_bits(program, grid, point, slots);
  }
  rows[row] &= bits;
}

// The same from a bitmap.
__device__ void mask_rows(const std::uint64_t* bitmap, std::uint64_t (&rows)[kTile]) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(bitmap);
  for (int row = lane_of_thread(); row < kTile; row += kWarp) {
    std::uint64_t bits = 0;
    for (int i = 0; i < kTile / kLanes; ++i) {
      bits |= std::uint64_t{bytes[i * kTile + row]} << (i * kLanes);
    }
    rows[row] &= bits;
  }
  __syncwarp();
}

// The lowest two bits of each byte, side by side four bits apart.
__device__ std::uint32_t gathered_pairs(std::uint64_t word) {
  word &= 0x0303030303030303;
  word = (word | word >> 4) & 0x0033003300330033;
  word = (word | word >> 8) & 0x0000333300003333;
  return static_cast<std::uint32_t>(word | word >> 16);
}

// As mask::lane_ordered_bitmap, by a warp.
__device__ void write_bitmap(const std::uint64_t (&rows)[kTile], std::uint32_t* words) {
  const int lane = lane_of_thread();
#pragma unroll
  for (int warp = 0; warp < kLaneWords / kWarp; ++warp) {
    const std::uint64_t upper = rows[16 * warp + lane / 4] >> (lane % 4 * 2);
    const std::uint64_t lower = rows[16 * warp + lane / 4 + 8] >> (lane % 4 * 2);
    words[warp * kWarp + lane] = gathered_pairs(upper) | gathered_pairs(lower) << 2;
  }
}

// Which rows of a tile see a key, and which do not see one that exists: a bit each.
struct RowFindings {
  std::uint64_t seeing;
  std::uint64_t hiding;

  __device__ RowFindings(const Grid& grid, const TilePlace& place,
                         const std::uint64_t (&rows)[kTile]) {
    const auto ballot = [](bool low, bool high) {
      return __ballot_sync(kFullWarp, low) | std::uint64_t{__ballot_sync(kFullWarp, high)} << kWarp;
    };
    const int lane = lane_of_thread();
    const std::uint64_t keys = first_bits(grid.kv_len - place.key);
    seeing = ballot(rows[lane] != 0, rows[lane + kWarp] != 0);
    hiding = ballot((keys & ~rows[lane]) != 0, (keys & ~rows[lane + kWarp]) != 0) &
             first_bits(grid.q_len - place.query);
  }

  // See TileClasses.
  __device__ std::uint8_t strips() const {
    unsigned strips = 0;
    for (int strip = 0; strip < 4; ++strip) {
      strips |= unsigned{(seeing >> 16 * strip & 0xFFFF) != 0} << strip;
      strips |= unsigned{(hiding >> 16 * strip & 0xFFFF) != 0} << (strip + 4);
    }
    return static_cast<std::uint8_t>(strips);
  }
};

// A place for the bitmap of a part tile, by a warp. Where each tile has one it is that; else they
// are handed out, and there may be too few.
__device__ std::int32_t number_of_bitmap(const Work& work, std::int32_t tile) {
  if (work.bitmaps >= work.lists.grid.tile_count()) {
    return tile;
  }
  std::int32_t number = 0;
  if (lane_of_thread() == 0) {
    number = atomicAdd(&work.arrivals->part_tiles, 1);
  }
  return __shfl_sync(kFullWarp, number, 0);
}

// By a warp.
__device__ void keep_tile(const Work& work, const TilePlace& place, std::int32_t tile,
                          const std::uint64_t (&rows)[kTile]) {
  const RowFindings found(work.lists.grid, place, rows);
  std::int32_t code = found.seeing == 0 ? mask::kNoneSeen : mask::kAllSeen;
  if (found.seeing != 0 && found.hiding != 0) {
    code = number_of_bitmap(work, tile);
    if (code < work.bitmaps) {
      write_bitmap(rows, work.lists.lane_bitmaps + std::int64_t{code} * kLaneWords);
    }
    if (lane_of_thread() == 0) {
      work.lists.classes.strips[tile] = found.strips();
    }
  }
  if (lane_of_thread() == 0) {
    work.lists.classes.codes[tile] = code;
  }
}

// Classes of the tiles of the stretch that one of so many groups of threads has, one a lane: tile i
// belongs to group i % groups. Returns the lanes whose tiles are open.
__device__ unsigned settle_tiles_of(int group, int groups, const Program& program, const Work& work,
                                    const TileStretch& stretch, Range* ranges) {
  const int tile = group + groups * lane_of_thread();
  std::int32_t code = mask::kNoneSeen;
  if (tile < stretch.count) {
    code = settled_class(program, work.lists.grid, place_in(stretch, tile),
                         {ranges, tile, kMostTiles});
    if (code != kOpen) {
      work.lists.classes.codes[stretch.first_tile + tile] = code;
    }
  }
  return __ballot_sync(kFullWarp, code == kOpen);
}

// Whether the block is the last that comes here, and so sees all that others have written.
__device__ bool is_last_block(unsigned* arrived) {
  __shared__ bool is_last;
  const unsigned others = gridDim.x * gridDim.y - 1;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    is_last = atomicInc(arrived, others) == others;
    __threadfence();
  }
  __syncthreads();
  return is_last;
}

// By one thread, which leaves what blocks count in as it was.
__device__ void leave_counts(const Work& work, const LayoutCounts& counts) {
  work.arrivals->part_tiles = 0;
  work.arrivals->status = 0;
  *work.lists.counts = counts;
  if (work.lists.report != nullptr && counts.status != 0) {
    work.lists.report->part_tiles = counts.part_tiles;
    work.lists.report->status = counts.status;
  }
}

// The codes of all tiles into shared memory, four at a time: behind them there is room.
__device__ void read_codes(const Work& work, std::int32_t* codes) {
  const auto* from = reinterpret_cast<const int4*>(work.lists.classes.codes);
  const auto fours = static_cast<int>((work.lists.grid.tile_count() + 3) / 4);
#pragma unroll 4
  for (int i = static_cast<int>(threadIdx.x); i < fours; i += static_cast<int>(blockDim.x)) {
    reinterpret_cast<int4*>(codes)[i] = __ldcg(from + i);
  }
}

// Where the entries of a query tile begin, and its place in the order, see order_query_tile.
struct QueryTilePlace {
  int first_entry = 0;
  int in_order = 0;

  // By a warp.
  __device__ QueryTilePlace(const std::int32_t* lengths, int count, int r) {
    const std::int32_t own = lengths[r];
    for (int other = lane_of_thread(); other < count; other += kWarp) {
      const std::int32_t length = lengths[other];
      const bool is_before = other < r;
      first_entry += is_before ? length : 0;
      in_order += length > own || (length == own && is_before);
    }
    first_entry = sum_of_warp(first_entry);
    in_order = sum_of_warp(in_order);
  }
};

// By one block, a warp a query tile. Each finds its place from all lengths.
__device__ void list_query_tiles(const Work& work, const QueryTiles& tiles,
                                 const TileClasses& classes, bool is_empty) {
  __shared__ std::int32_t lengths[kMostListedQueryTiles];
  const AttentionTiles& lists = tiles.lists;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int warps = static_cast<int>(blockDim.x) / kWarp;
  const auto count = static_cast<int>(tiles.count);
  for (int r = warp; r < count; r += warps) {
    lengths[r] = is_empty ? 0 : length_of(classes, QueryTile(work.lists.grid, lists, r));
  }
  __syncthreads();
  for (int r = warp; r < count; r += warps) {
    const QueryTilePlace place(lengths, count, r);
    if (lane_of_thread() == 0) {
      lists.row_ptr[r] = place.first_entry;
      lists.order[place.in_order] = r;
      if (r == count - 1) {
        lists.row_ptr[count] = place.first_entry + lengths[r];
      }
    }
    if (lengths[r] != 0) {
      write_entries(work.lists, classes, lists, QueryTile(work.lists.grid, lists, r),
                    place.first_entry);
    }
  }
  __syncthreads();
}

// What is left to the block that comes last.
__device__ void finish(const Work& work, std::byte* memory) {
  LayoutCounts counts;
  counts.part_tiles = __ldcg(&work.arrivals->part_tiles);
  counts.status = __ldcg(&work.arrivals->status);
  auto* codes = reinterpret_cast<std::int32_t*>(memory);
  read_codes(work, codes);
  __syncthreads();
  counts.status |= counts.part_tiles > work.bitmaps ? kPartTilesOverflow : 0;
  if (threadIdx.x == 0) {
    leave_counts(work, counts);
  }
  const TileClasses classes = {.codes = codes, .strips = work.lists.classes.strips};
  for (int size = 0; size < work.lists.tile_sizes; ++size) {
    list_query_tiles(work, work.lists.query_tiles[size], classes, counts.status != 0);
  }
}

// Both warps of a pair have come here.
__device__ void synchronise_pair(int pair) {
  asm volatile("bar.sync %0, %1;" ::"r"(pair + 1), "n"(kHalves * kWarp) : "memory");
}

// Lengths and offsets are checked where a causal mask leaves nothing open.
__device__ void check_inputs_once(const MaskView& mask, const Work& work) {
  if (blockIdx.x == 0 && blockIdx.y == gridDim.y - 1) {
    check_inputs(mask, work.lists.grid, &work.arrivals->status);
  }
}

__global__ void __launch_bounds__(kMostThreads, 1)
    build_by_rows(const __grid_constant__ MaskView mask, const __grid_constant__ Work work) {
  extern __shared__ Range memory[];
  __shared__ ProgramStore store;
  __shared__ std::uint64_t rows[2][kMostPairs][kTile];
  const Program program = stored(mask, store);
  const Grid& grid = work.lists.grid;
  const TileStretch stretch = stretch_of_block(work);
  auto* slot_memory =
      reinterpret_cast<std::int64_t*>(memory) + region_slot_words(mask, kHalves * kMostTiles);
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int warps = static_cast<int>(blockDim.x) / kWarp;
  const StagedInputs inputs = {
      mask, reinterpret_cast<std::byte*>(slot_memory + warps * slot_words(mask, kWarp)),
      ColumnBits::row_words_of(work.stretch_tiles)};
  inputs.clear();
  await_previous();
  __syncthreads();
  check_inputs_once(mask, work);
  inputs.read(work, stretch);
  __syncthreads();
  const Slots slots = {slot_memory + warp * slot_words(mask, kWarp), lane_of_thread(), kWarp};
  const int pair = warp / kHalves;
  const int half = warp % kHalves;
  const int pairs = warps / kHalves;
  Range* ranges = memory + half * region_slot_count(mask, kMostTiles);
  unsigned open = settle_tiles_of(pair, pairs, program, work, stretch, ranges);
  // Both warps know what is open; they take turns to keep a tile, and two buffers.
  for (int turn = 0; open != 0; open &= open - 1, turn ^= 1) {
    const int tile = pair + pairs * (__ffs(static_cast<int>(open)) - 1);
    const TilePlace place = place_in(stretch, tile);
    std::uint64_t(&own)[kTile] = rows[turn][pair];
    inputs.write_rows(grid, stretch, tile, half, own);
    evaluate_rows(program, grid, place, half, slots, own);
    synchronise_pair(pair);
    if (half == turn) {
      keep_tile(work, place, stretch.first_tile + tile, own);
    }
  }
  if (is_last_block(&work.arrivals->blocks)) {
    finish(work, reinterpret_cast<std::byte*>(memory));
  }
}

// For masks that do not go by rows: the block evaluates one tile after the other.
__global__ void __launch_bounds__(kMostThreads, 1)
    build_by_pairs(const __grid_constant__ MaskView mask, const __grid_constant__ Work work) {
  extern __shared__ Range memory[];
  __shared__ ProgramStore store;
  __shared__ std::uint64_t rows[kTile];
  __shared__ std::uint64_t bitmap[mask::kTileWords];
  __shared__ unsigned open_of_warp[kMostWarps];
  const Program program = stored(mask, store);
  const Grid& grid = work.lists.grid;
  const TileStretch stretch = stretch_of_block(work);
  auto* slot_memory = reinterpret_cast<std::int64_t*>(memory) + region_slot_words(mask, kMostTiles);
  const auto threads = static_cast<int>(blockDim.x);
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int warps = threads / kWarp;
  const StagedInputs inputs = {
      mask, reinterpret_cast<std::byte*>(slot_memory + slot_words(mask, threads)),
      ColumnBits::row_words_of(work.stretch_tiles)};
  inputs.clear();
  await_previous();
  __syncthreads();
  check_inputs_once(mask, work);
  inputs.read(work, stretch);
  __syncthreads();
  const Slots slots = {slot_memory, static_cast<int>(threadIdx.x), threads};
  const unsigned open = settle_tiles_of(warp, warps, program, work, stretch, memory);
  if (lane_of_thread() == 0) {
    open_of_warp[warp] = open;
  }
  __syncthreads();
  for (int tile = 0; tile < stretch.count; ++tile) {
    if ((open_of_warp[tile % warps] >> tile / warps & 1) == 0) {
      continue;
    }
    const TilePlace place = place_in(stretch, tile);
    evaluate_tile(program, grid, place, bitmap, slots);
    if (warp == 0) {
      for (int half = 0; half < kHalves; ++half) {
        inputs.write_rows(grid, stretch, tile, half, rows);
      }
      mask_rows(bitmap, rows);
      keep_tile(work, place, stretch.first_tile + tile, rows);
    }
    __syncthreads();
  }
  if (is_last_block(&work.arrivals->blocks)) {
    finish(work, reinterpret_cast<std::byte*>(memory));
  }
}

// Threads of a block, as many as have room, and the shared memory that they take.
struct BlockShape {
  unsigned threads = kMostThreads;
  std::size_t shared_bytes = 0;
};

BlockShape block_shape(const MaskView& mask, const Work& work, std::size_t most_bytes) {
  const auto is_columns = [](const Part& input) { return input.kind == PartKind::StagedColumns; };
  const auto columns = std::count_if(mask.inputs, mask.inputs + mask.input_count, is_columns);
  const auto bytes_of = [&](unsigned threads) {
    const auto count = static_cast<int>(threads);
    const std::int64_t words = mask.goes_by_rows
                                   ? region_slot_words(mask, kHalves * kMostTiles) +
                                         count / kWarp * slot_words(mask, kWarp)
                                   : region_slot_words(mask, kMostTiles) + slot_words(mask, count);
    return sizeof(Word) * static_cast<std::size_t>(words) +
           static_cast<std::size_t>(columns) *
               ColumnBits::bytes_of(ColumnBits::row_words_of(work.stretch_tiles));
  };
  BlockShape shape;
  while (shape.threads > kHalves * kWarp && bytes_of(shape.threads) > most_bytes) {
    shape.threads /= 2;
  }
  shape.shared_bytes = bytes_of(shape.threads);
  const auto tiles = static_cast<std::size_t>(work.lists.grid.tile_count());
  shape.shared_bytes = std::max(shape.shared_bytes, sizeof(int4) * ((tiles + 3) / 4));
  return shape;
}

int device_attribute(cudaDeviceAttr attribute) {
  int device = 0;
  int value = 0;
  STOF_CUDA(cudaGetDevice(&device));
  STOF_CUDA(cudaDeviceGetAttribute(&value, attribute, device));
  return value;
}

}  // namespace

bool is_built_at_once(const Grid& grid, const LayoutRequest& request) {
  const bool is_short = std::ranges::all_of(request.tile_q, [&](std::int64_t tile_q) {
    return grid.planes() * ((grid.q_len + tile_q - 1) / tile_q) <= kMostListedQueryTiles;
  });
  return !request.tile_lists && is_short && grid.tile_count() <= kMostListedTiles;
}

void build_at_once(const MaskView& mask, const Layout& layout, const TileClasses& classes,
                   std::int64_t bitmaps, const SortSpace& space, Arrivals* arrivals,
                   LayoutReport* report, cuda::Launches& launches) {
  constexpr std::size_t kStaticBytes = 16 << 10;  // more than the kernels have
  Work work;
  work.lists = list_work(layout, classes, {}, space, report);
  work.bitmaps = bitmaps;
  work.arrivals = arrivals;
  const Grid& grid = layout.grid;
  // Short ones, down to a tile a pair, where that gives no multiprocessor two blocks.
  const auto stretches = [&](int tiles) { return (grid.tile_cols + tiles - 1) / tiles; };
  const int multiprocessors = device_attribute(cudaDevAttrMultiProcessorCount);
  work.stretch_tiles = kMostTiles;
  while (work.stretch_tiles > kMostPairs &&
         grid.row_count() * stretches(work.stretch_tiles / 2) <= multiprocessors) {
    work.stretch_tiles /= 2;
  }
  const auto most_bytes =
      static_cast<std::size_t>(device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin));
  const BlockShape shape = block_shape(mask, work, most_bytes - kStaticBytes);
  auto* const kernel = mask.goes_by_rows ? build_by_rows : build_by_pairs;
  cuda::allow_all_shared_memory(reinterpret_cast<const void*>(kernel));
  launches.add(kernel,
               {.grid = dim3(static_cast<unsigned>(grid.row_count()),
                             static_cast<unsigned>(stretches(work.stretch_tiles))),
                .block = shape.threads,
                .dynamic_shared_bytes = shape.shared_bytes},
               mask, work);
}

}  // namespace stof::mask_layout
