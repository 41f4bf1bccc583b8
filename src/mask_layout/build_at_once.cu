// A layout without two-level lists, of a small grid: a block settles, reads and evaluates
// neighbouring tiles of a tile row, each part tile has a bitmap of its own, and list_at_once lists
// query tiles.
#include <algorithm>

#include "base/check.hpp"
#include "mask_layout/at_once.cuh"
#include "mask_layout/lane_order.cuh"
#include "mask_layout/launch_order.cuh"
#include "mask_layout/row_bits.cuh"
#include "mask_layout/settle.cuh"
#include "mask_layout/staged_inputs.cuh"

namespace stof::mask_layout {

namespace {

constexpr std::int64_t kMostTilesAtOnce = std::int64_t{1} << 14;  // where lists take longer

// What of a mask is worked out on each run: nothing but inputs, or expressions too, by rows or by
// pairs.
enum class Evaluation { Inputs, Rows, Pairs };

// Of a block. Of those that look at inputs alone a multiprocessor has as many as give each of their
// warps a tile at 4096 queries.
constexpr int most_threads(Evaluation evaluation) {
  return evaluation == Evaluation::Inputs ? 256 : 512;
}
constexpr int blocks_of_multiprocessor(Evaluation evaluation) {
  return evaluation == Evaluation::Inputs ? 4 : 1;
}

// Words of shared memory of a block: slots of regions, then those of threads.
constexpr std::int64_t evaluation_words(Evaluation evaluation, const MaskView& mask, int threads) {
  const std::int64_t words = evaluation == Evaluation::Rows
                                 ? threads / kWarp * slot_words(mask, kWarp)
                                 : slot_words(mask, threads);
  return region_slot_words(mask, kMostTiles) + words;
}

// Tiles of one tile row, neighbours, that a block works on.
struct TileStretch {
  TilePlace place;  // of the first
  int first_tile;
  int count;
};

// A block has stretch blockIdx.y of tile row blockIdx.x.
__device__ TileStretch stretch_of_block(const AtOnceWork& work) {
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

// Leaves in the rows what of them a bitmap by inner tiles lets see too, by a warp.
__device__ void mask_rows(const std::uint64_t* bitmap, std::uint64_t (&rows)[kTile]) {
#pragma unroll
  for (int row = lane_of_thread(); row < kTile; row += kWarp) {
    rows[row] &= row_of_bitmap(bitmap, row);
  }
  __syncwarp();
}

// What inputs say, for the tiles of the stretch; spans lie in shared memory.
struct StagedInputs {
  const MaskView& mask;
  Spans& spans;

  // Runs a function for each input.
  template <typename Function>
  __device__ void for_each(Function function) const {
#pragma unroll 1
    for (int i = 0; i < mask.input_count; ++i) {
      function(mask.inputs[i]);
    }
  }

  // What is said of the tile of each lane before bits are looked at, by a warp.
  __device__ unsigned truth(const Grid& grid, const TilePlace& place, bool exists) const {
    const bool has_tiles =
        mask.input_count > 0 && mask.inputs[mask.input_count - 1].kind == PartKind::Tiles;
    const std::int32_t ahead =
        has_tiles && exists ? code_ahead(mask.inputs[mask.input_count - 1], place) : mask::kAllSeen;
    const SpanLimits limits = read_spans(mask, grid, place, spans);  // while that is on its way
    unsigned truth =
        both(limits.truth(region_of(grid, place).key), ahead == mask::kAllSeen    ? kAlways
                                                       : ahead == mask::kNoneSeen ? kNever
                                                                                  : kUnknown);
    for_each([&](const Part& input) {
      if (input.kind == PartKind::Bytes || input.kind == PartKind::Bits) {
        truth = both(truth, kUnknown);
      }
    });
    return truth * 5;  // whatever is drawn
  }

  // The rows of a tile, by a warp.
  __device__ void write_rows(const Grid& grid, const TileStretch& stretch, int tile,
                             std::uint64_t (&rows)[kTile]) const {
    const int lane = lane_of_thread();
    const TilePlace place = place_in(stretch, tile);
    rows[lane] = spans.at(lane, place.key);
    rows[lane + kWarp] = spans.at(lane + kWarp, place.key);
    __syncwarp();
    for_each([&](const Part& input) {
      if (input.kind == PartKind::Bytes) {
        mask_by_bytes(input, grid, place, rows);
      } else if (input.kind == PartKind::Tiles) {
        const std::int32_t code = code_ahead(input, place);
        if (code >= 0) {
          mask_rows(bitmap_ahead(input, code), rows);
        }
      } else if (input.kind == PartKind::Bits) {
        mask_by_bits(input, grid, place, rows);
      }
    });
  }
};

// Leaves in the rows of a tile what of them expressions let see too, by a warp.
__device__ void evaluate_rows(const Program& program, const Grid& grid, const TilePlace& place,
                              const Slots& slots, std::uint64_t (&rows)[kTile]) {
#pragma unroll 1
  for (int row = lane_of_thread(); row < kTile; row += kWarp) {
    const Point point = point_of(place, row, 0);
    std::uint64_t bits = 0;
    if (rows[row] != 0) {
      prepare_row(program, grid, point, slots);
      bits = row_bits(program, grid, point, slots);
    }
    rows[row] &= bits;
  }
  __syncwarp();
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
__device__ std::int32_t number_of_bitmap(const AtOnceWork& work, std::int32_t tile) {
  if (work.bitmaps >= work.lists.grid.tile_count()) {
    return tile;
  }
  std::int32_t number = 0;
  if (lane_of_thread() == 0) {
    number = atomicAdd(&work.arrivals->part_tiles, 1);
  }
  return __shfl_sync(kFullWarp, number, 0);
}

// By a warp. Returns what its strips see, see TileClasses.
__device__ std::uint8_t keep_tile(const AtOnceWork& work, const TilePlace& place, std::int32_t tile,
                                  const std::uint64_t (&rows)[kTile]) {
  const RowFindings found(work.lists.grid, place, rows);
  std::int32_t code = found.seeing == 0 ? mask::kNoneSeen : mask::kAllSeen;
  if (found.seeing != 0 && found.hiding != 0) {
    code = number_of_bitmap(work, tile);
    if (code < work.bitmaps) {
      write_lane_order(rows, work.lists.lane_bitmaps + std::int64_t{code} * kLaneWords);
    }
  }
  const std::uint8_t strips = found.strips();
  if (lane_of_thread() == 0) {
    work.lists.classes.codes[tile] = code;
    work.lists.classes.strips[tile] = strips;
  }
  return strips;
}

// Classes of the tiles of the stretch, by a warp, one a lane. Returns those that are open, a bit
// each; of the others it says which strips see something.
template <Evaluation kEvaluation>
__device__ unsigned settle_stretch(const Program& program, const AtOnceWork& work,
                                   const TileStretch& stretch, const StagedInputs& inputs,
                                   Range* ranges, std::uint8_t (&strips)[kMostTiles]) {
  const Grid& grid = work.lists.grid;
  const int tile = lane_of_thread();
  const TilePlace place = place_in(stretch, tile);
  unsigned truth = inputs.truth(grid, place, tile < stretch.count);
  std::int32_t code = mask::kNoneSeen;
  if (tile < stretch.count) {
    if constexpr (kEvaluation != Evaluation::Inputs) {
      truth = both(truth,
                   region_truth(program, grid, region_of(grid, place), {ranges, tile, kMostTiles}));
    }
    code = class_of(truth);
    if (code != kOpen) {
      work.lists.classes.codes[stretch.first_tile + tile] = code;
      strips[tile] = code == mask::kAllSeen ? kAllStrips : 0;
    }
  }
  return __ballot_sync(kFullWarp, code == kOpen);
}

// By a warp.
__device__ void write_seeing(const AtOnceWork& work, const std::uint8_t (&strips)[kMostTiles],
                             int count) {
  const int lane = lane_of_thread();
  const unsigned own = lane < count ? strips[lane] : 0;
  const auto tiles_of = [&](int strip) {
    return __ballot_sync(kFullWarp, (own >> strip & 1) != 0);
  };
  const uint4 seeing = {tiles_of(0), tiles_of(1), tiles_of(2), tiles_of(3)};
  if (lane == 0) {
    work.seeing[blockIdx.x * gridDim.y + blockIdx.y] = seeing;
  }
}

// The block evaluates one open tile after the other.
__device__ void evaluate_by_block(const Program& program, const AtOnceWork& work,
                                  const TileStretch& stretch, const StagedInputs& inputs,
                                  const Slots& slots, unsigned open, std::uint64_t (&rows)[kTile],
                                  std::uint8_t (&strips)[kMostTiles]) {
  __shared__ std::uint64_t bitmap[mask::kTileWords];
  for (; open != 0; open &= open - 1) {
    const int tile = __ffs(static_cast<int>(open)) - 1;
    const TilePlace place = place_in(stretch, tile);
    evaluate_tile(program, work.lists.grid, place, bitmap, slots);
    if (threadIdx.x < kWarp) {
      inputs.write_rows(work.lists.grid, stretch, tile, rows);
      mask_rows(bitmap, rows);
      strips[tile] = keep_tile(work, place, stretch.first_tile + tile, rows);
    }
    __syncthreads();
  }
}

template <Evaluation kEvaluation>
__device__ Program program_of(const MaskView& mask, ProgramStore& store) {
  if constexpr (kEvaluation == Evaluation::Inputs) {
    return {.mask = mask, .parts = nullptr, .steps = nullptr};
  } else {
    return stored(mask, store);
  }
}

// Blocks behind the last tile row check lengths and offsets, which no other may look at where
// nothing is open.
template <Evaluation kEvaluation>
__global__ void __launch_bounds__(most_threads(kEvaluation), blocks_of_multiprocessor(kEvaluation))
    build_tiles(const __grid_constant__ MaskView mask, const __grid_constant__ AtOnceWork work) {
  extern __shared__ Range memory[];
  __shared__ ProgramStore store;
  __shared__ std::uint64_t rows[most_threads(kEvaluation) / kWarp][kTile];
  __shared__ std::uint8_t strips[kMostTiles];
  __shared__ Spans spans;
  __shared__ unsigned open_tiles;
  const Grid& grid = work.lists.grid;
  wait_for_previous();
  if (blockIdx.x == grid.row_count()) {
    if (blockIdx.y == 0) {
      check_inputs(mask, grid, &work.arrivals->status);
    }
    return;
  }
  const Program program = program_of<kEvaluation>(mask, store);
  const TileStretch stretch = stretch_of_block(work);
  const auto threads = static_cast<int>(blockDim.x);
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int warps = threads / kWarp;
  auto* words = reinterpret_cast<Word*>(memory);
  const StagedInputs inputs = {mask, spans};
  __syncthreads();  // the program is there
  if (warp == 0) {
    const unsigned open =
        settle_stretch<kEvaluation>(program, work, stretch, inputs, memory, strips);
    open_tiles = open;
  }
  __syncthreads();
  const unsigned open = open_tiles;
  Word* slot_memory = words + region_slot_words(mask, kMostTiles);
  if constexpr (kEvaluation == Evaluation::Pairs) {
    evaluate_by_block(program, work, stretch, inputs,
                      {slot_memory, static_cast<int>(threadIdx.x), threads}, open, rows[0], strips);
  } else {
    const Slots slots = {slot_memory + warp * slot_words(mask, kWarp), lane_of_thread(), kWarp};
    for (int tile = warp; tile < stretch.count; tile += warps) {
      if ((open >> tile & 1) != 0) {
        const TilePlace place = place_in(stretch, tile);
        inputs.write_rows(grid, stretch, tile, rows[warp]);
        if constexpr (kEvaluation == Evaluation::Rows) {
          evaluate_rows(program, grid, place, slots, rows[warp]);
        }
        strips[tile] = keep_tile(work, place, stretch.first_tile + tile, rows[warp]);
        __syncwarp();
      }
    }
  }
  let_next_start();  // no sooner: its blocks would take the place of some of these
  __syncthreads();
  if (warp == 0) {
    write_seeing(work, strips, stretch.count);
  }
}

// Threads of a block, and the shared memory that they take.
struct BlockShape {
  int threads = 0;
  std::size_t shared_bytes = 0;
};

// As many threads as have room.
BlockShape block_shape(Evaluation evaluation, const MaskView& mask, std::size_t most_bytes) {
  const auto bytes_of = [&](int threads) {
    return sizeof(Word) * static_cast<std::size_t>(evaluation_words(evaluation, mask, threads));
  };
  BlockShape shape = {.threads = most_threads(evaluation)};
  while (shape.threads > kWarp && bytes_of(shape.threads) > most_bytes) {
    shape.threads /= 2;
  }
  shape.shared_bytes = bytes_of(shape.threads);
  return shape;
}

int device_attribute(cudaDeviceAttr attribute) {
  int device = 0;
  int value = 0;
  STOF_CUDA(cudaGetDevice(&device));
  STOF_CUDA(cudaDeviceGetAttribute(&value, attribute, device));
  return value;
}

template <Evaluation kEvaluation>
void add_build(const MaskView& mask, AtOnceWork& work, cuda::Launches& launches) {
  constexpr std::size_t kStaticBytes = 16 << 10;  // more than the kernels have
  const Grid& grid = work.lists.grid;
  // Short stretches where that gives no multiprocessor more blocks than it takes.
  const auto stretches = [&](int tiles) {
    return (static_cast<int>(grid.tile_cols) + tiles - 1) / tiles;
  };
  const std::int64_t most_blocks = std::int64_t{blocks_of_multiprocessor(kEvaluation)} *
                                   device_attribute(cudaDevAttrMultiProcessorCount);
  work.stretch_tiles = kMostTiles;
  while (work.stretch_tiles > kLeastStretch &&
         grid.row_count() * stretches(work.stretch_tiles / 2) <= most_blocks) {
    work.stretch_tiles /= 2;
  }
  work.stretches = stretches(work.stretch_tiles);
  const auto most_bytes =
      static_cast<std::size_t>(device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin)) -
      kStaticBytes;
  const BlockShape shape = block_shape(kEvaluation, mask, most_bytes);
  STOF_CHECK(shape.shared_bytes <= most_bytes)
      << "a block of " << shape.shared_bytes << " bytes, and " << most_bytes << " are the most";
  cuda::allow_all_shared_memory(reinterpret_cast<const void*>(build_tiles<kEvaluation>));
  const cuda::LaunchConfig config = {.grid = dim3(static_cast<unsigned>(grid.row_count() + 1),
                                                  static_cast<unsigned>(work.stretches)),
                                     .block = static_cast<unsigned>(shape.threads),
                                     .dynamic_shared_bytes = shape.shared_bytes};
  const bool is_behind_bits =
      std::any_of(mask.inputs, mask.inputs + mask.input_count,
                  [](const Part& input) { return input.kind == PartKind::Bits; });
  launches.add(build_tiles<kEvaluation>, is_behind_bits ? behind(config) : config, mask, work);
}

}  // namespace

bool is_built_at_once(const Grid& grid, const LayoutRequest& request) {
  const bool is_short = std::ranges::all_of(request.tile_q, [&](std::int64_t tile_q) {
    return grid.planes() * ((grid.q_len + tile_q - 1) / tile_q) <= kMostQueryTilesAtOnce;
  });
  return !request.tile_lists && is_short && grid.tile_count() <= kMostTilesAtOnce;
}

void build_at_once(const MaskView& mask, const Layout& layout, const TileClasses& classes,
                   const AtOnceSpace& space, std::int64_t bitmaps, Arrivals* arrivals,
                   LayoutReport* report, cuda::Launches& launches) {
  AtOnceWork work;
  work.lists = list_work(layout, classes, {}, {}, report);
  work.bitmaps = bitmaps;
  work.arrivals = arrivals;
  work.seeing = space.seeing;
  if (mask.part_count == 0) {
    add_build<Evaluation::Inputs>(mask, work, launches);
  } else if (mask.goes_by_rows) {
    add_build<Evaluation::Rows>(mask, work, launches);
  } else {
    add_build<Evaluation::Pairs>(mask, work, launches);
  }
  list_at_once(work, launches);
}

}  // namespace stof::mask_layout
