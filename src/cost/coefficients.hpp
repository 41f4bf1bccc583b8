#pragma once

#include <map>
#include <string>

namespace stof::cost {

// What a DeviceProfile does not say of a GPU and its kernels. Shares are of a rate of the profile;
// nanoseconds are those of an SM at 1980 MHz and go with the clock. The values were fitted to times
// on an H200: those of products with 23 and 7 settings to 120 shapes when the kernels were written,
// all others to tools/bench/results/nvidia-h200 (tests/cost/recorded_test.cpp says how well).

// gemm_sm90: a step is 64 of k.
struct WgmmaProduct {
  double tensor_share = 0.93;  // of tensor_tflops
  double l2_share = 1.08;      // of l2_gbps
  double copy_ns = 1080;       // from asking for a step until it is there
  double block_ns = 1230;      // start and end of a block
  double element_ns = 0.0862;  // one more element of its tile
  double exchange_ns = 925;    // the parts of a split k meet in shared memory
  double exchange_element_ns = 0.054;
};

// gemm_tma, gated_sm90, gemm_norm, gemm_sum_norm: a step is 64 of k.
struct RingProduct {
  double tensor_share = 0.96;      // of tensor_tflops
  double l2_share = 1.3;           // of l2_gbps
  double copy_ns = 1000;           // from asking for a step until it is there
  double block_ns = 2730;          // start and end of a block
  double tile_ns = 175;            // start and end of a tile
  double element_ns = 0.0369;      // an element of y
  double exchange_ns = 258;        // the blocks of a cluster tell each other statistics of rows
  double norm_element_ns = 0.049;  // an element that is normalised
};

// gemm_sm80, gated_sm80: a step is 64 of k.
struct MmaProduct {
  double tensor_share = 0.745;  // of mma_sync_tflops
  double shared_row_ns =
      0.62;              // a step of one row of a tile, to shared memory or from it to a warp
  double copy_ns = 604;  // from asking for 64 of k until they are there
  double step_ns = 77;   // the least that a step takes
  double block_ns = 1920;
  double element_ns = 0.0688;
  double exchange_ns = 3920;  // the parts of a split k meet in memory
};

// vector_rows, vector_columns: few rows of x, every weight read once.
struct VectorProduct {
  double dram_share = 1.0;
  double rows_block_ns = 1200;
  double columns_block_ns = 2500;
  double exchange_ns = 2000;  // the parts of a split k meet in memory
};

// gemm_simple, on the ordinary cores: a step is 32 of k.
struct SimpleProduct {
  double fma_share = 0.35;
  double step_ns = 600;
  double block_ns = 2000;
};

// An attention template that visits the active 64-key tiles of a query tile.
struct TiledAttention {
  bool uses_wgmma = false;
  double tensor_share = 0.449;  // of mma_sync_tflops, or of tensor_tflops; the softmax is in it
  double tall_tensor_share = 0.533;  // the same with 32 query rows a warp
  double softmax_ns = 0;             // the least that a pair of query and key takes
  double interval_ns = 0.0107;       // a pair of a part tile besides, by class of the mask
  double predicate_ns = 0.0355;
  double bitmap_ns = 0;
  double score_ns = 0.02;      // a pair, where there is a score modifier; not measured
  double block_ns = 1455;      // what start and end of 64 query rows take of an SM
  double alone_factor = 2.07;  // how much longer a tile takes a block that has an SM for itself
  double alone_ns = 3457;      // start and end of a query tile, seen from it
  double exchange_ns = 1043;   // several key groups tell each other their results
};

// An attention template that gathers the keys of each row.
struct GatheredAttention {
  double l2_share = 1.0;   // of l2_gbps, for rows of K and V
  double row_ns = 92.3;    // what a row takes of an SM
  double batch_ns = 31.3;  // and 32 keys of it
  double alone_ns = 5500;  // start and end of a row, seen from it; not measured, rather too much
  double alone_batch_ns = 900;  // 32 keys, for a warp that waits for them; not measured
};

// All else: a kernel that reads and writes each tensor once.
struct Stream {
  double start_us = 1.52;  // first data
  double dram_share = 1.03;
  double fma_share = 0.25;
};

struct Coefficients {
  double clock_mhz = 1980;            // to which the nanoseconds belong
  double start_us = 0.756;            // first data of a product or an attention
  double dram_share = 0.88;           // of dram_gbps, for those
  double hook_dram_share = 0.749;     // tensors that an epilogue reads: nothing hides them
  double transcendental_ns = 0.0369;  // of one element in an epilogue: gelu, silu, exp, …
  WgmmaProduct wgmma_product;
  RingProduct ring_product;
  MmaProduct mma_product;
  VectorProduct vector_product;
  SimpleProduct simple_product;
  // By name of the template; "" for those that have no line of their own. That of Hopper's is from
  // a probe: 440 TFLOP/s with 64 dimensions a head, 680 with 128.
  std::map<std::string, TiledAttention, std::less<>> tiled_attention = {
      {"", {}},
      {"attention_block_wise_sm90",
       {.uses_wgmma = true,
        .tensor_share = 0.81,
        .tall_tensor_share = 0.81,
        .softmax_ns = 0.0768,
        .interval_ns = 0.01,
        .predicate_ns = 0.02,
        .bitmap_ns = 0.005}},
      {"attention_band_sm90",  // from windows and causal masks of 512 to 4096 tokens
       {.uses_wgmma = true,
        .tensor_share = 0.81,
        .tall_tensor_share = 0.81,
        .softmax_ns = 0.071,
        .interval_ns = 0.004,
        .block_ns = 450,
        .alone_factor = 2.5,
        .alone_ns = 2000}}};
  GatheredAttention gathered_attention;
  Stream stream;
};

}  // namespace stof::cost
