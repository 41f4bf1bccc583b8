#pragma once

#include <map>
#include <string>

namespace stof::cost {

// What a DeviceProfile does not say of a GPU and its kernels. Shares are of a rate of the profile;
// nanoseconds are those of an SM at 1980 MHz and go with the clock. The values were fitted to times
// on an H200: those of products with 23 and 7 settings to 120 shapes when the kernels were written,
// those of attention to tools/bench/results/nvidia-h200/selection.json (bench.selection fits them
// again and prints them), all others to what else is there (tests/cost/recorded_test.cpp).

// gemm_sm90: a step is 64 of k.
struct WgmmaProduct {
  double tensor_share = 0.93;  // of tensor_tflops
  double l2_share = 1.08;      // of l2_gbps
  double copy_ns = 1080;       // from asking for a step until it is there
  double column_ns = 3.28;     // a step of a column of w that no other block reads
  double block_ns = 1230;      // start and end of a block
  double element_ns = 0.0862;  // one more element of its tile
  double exchange_ns = 850;    // the parts of a split k meet in shared memory
  double exchange_element_ns = 0.054;
};

// gemm_tma, gemm_moments, gemm_rotary, gated_sm90, gemm_norm, gemm_sum_norm: a step is 64 of k.
struct RingProduct {
  double tensor_share = 0.96;      // of tensor_tflops
  double l2_share = 1.3;           // of l2_gbps
  double copy_ns = 1000;           // from asking for a step until it is there
  double block_ns = 2730;          // start and end of a block
  double tile_ns = 175;            // start and end of a tile
  double element_ns = 0.0369;      // an element of y
  double exchange_ns = 258;        // the blocks of a cluster tell each other statistics of rows
  double norm_element_ns = 0.049;  // an element that is normalised
  double moments_ns = 0.3;         // a step of one row of a tile, to the moments of x
  double column_ns = 2.7;          // a step of a column of w that no other block reads
  double void_row_ns = 3;          // a step of one row that x does not have
  double turn_ns = 0.03;  // an element of a row some of whose heads are turned; not measured
};

// gemm_few_rows, few_rows_rotary: a step is 64 of k.
struct FewRowsProduct {
  double tensor_share = 0.93;  // of tensor_tflops
  double l2_share = 1.08;      // of l2_gbps
  double copy_ns = 1000;       // from asking for a step until it is there
  double column_ns = 3.28;     // a step of a column of w, which an SM gets no faster from memory
  double block_ns = 1400;      // start and end of a block
  double element_ns = 0.12;    // an element of its tile
  double exchange_ns = 500;    // the parts of a split k meet in shared memory
  double turn_ns = 0.1;        // an element of a row some of whose heads are turned; not measured
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

// chain_sm80, chain_sm90, gated_chain_sm80, gated_chain_sm90: a unit is 64 of k of 1024 elements of
// a tile, by one warp. Measured for up to 64 rows.
struct ChainedProducts {
  double l2_share = 0.527;       // of l2_gbps
  double exposed_share = 0.466;  // of what the copies take, where blocks wait for each other
  double block_ns = 1430;        // of as many blocks as run at once
  double round_ns = 2530;        // the same, seen from one that waits
  double unit_ns = 305;
  double exchange_ns = 130;  // one more block shares the sums of a tile
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

// An attention template that visits the active 64-key tiles of a query tile. What a block waits for
// goes on beside the other blocks of its SM, work does not.
struct TiledAttention {
  bool uses_wgmma = false;
  double start_us = 0.00725;  // until the first data arrive
  double cold_us =
      3.02;  // the first reads of memory, with 64 dimensions a head: nothing hides them
  double dram_share = 0.88;
  double l2_share = 1.0;  // of l2_gbps, for keys and values of wgmma
  // Waits, of a block.
  double tile_wait_ns = 1000;      // start and end of a query tile
  double query_wait_ns = 400;      // its queries are asked for when the tile before is done
  double exchange_wait_ns = 1110;  // several key groups tell each other their results
  double step_wait_ns = 131;       // a step of tile_k keys
  double keys_wait_ns = 421;       // 64 keys; several key groups share it, as the next three
  double tall_wait_ns = 112;       // 64 keys more, where a warp has 32 query rows
  double interval_wait_ns = 309;   // 64 x 64 with a mask, by its class
  double bitmap_wait_ns = 36.5;
  // Work, of an SM.
  double tile_ns = 28.8;       // 64 query rows, start and end
  double tile_dims_ns = 450;   // of these, for each 64 dimensions a head
  double softmax_ns = 0.0892;  // 64 x 64
  double tensor_part = 1.5;    // what 64 x 64 take of the time that the tensor cores need at least
  double plain_ns = 0.01;      // 64 x 64 more, where nothing overlaps the products
  double interval_ns = 36.9;   // 64 x 64 with a mask, by its class
  double predicate_ns = 145;
  double bitmap_ns = 0.0929;
  double score_ns = 120;  // 64 x 64, where there is a score modifier: 100 with ALiBi, 250 with tanh
  // A wait: 64 keys, where the modifier reads a tensor.
  double capture_wait_ns = 630;
  // Query tiles that are worked on in parts, see LongTiles.
  double unit_ns = 503;  // one part
  double part_ns = 513;  // each further part of a tile, to be put together
};

// An attention template that gathers the keys of each row. Widths are those of a head in units of
// 64 dimensions.
struct GatheredAttention {
  double start_us = 0.84;  // until the first data arrive
  double cold_us = 0.697;  // as above
  double dram_share = 0.165;
  double l2_share = 1.16;      // of l2_gbps, for rows of K and V
  double row_ns = 55.4;        // what each warp of a row takes of an SM
  double row_width_ns = 33.2;  // and for its width
  double batch_ns = 39;        // 32 keys
  double row_wait_ns = 385;    // start and end of a row, seen from it
  double key_wait_ns = 13.6;   // a key, for a warp that waits for its batch
  double key_width_wait_ns = 46;
  double few_loads = 0.617;  // how much longer that is with half as many loads under way
};

// An attention template that gathers the keys of windows of 16 rows from shared memory, eight at a
// time.
struct StagedAttention {
  double start_us = 1.26;  // until lists and queries are there
  double dram_share = 0.922;
  double l2_share = 0.943;       // of l2_gbps, for stages
  double warp_ns = 187;          // start and end of a block, for each of its warps
  double octet_ns = 4.26;        // what eight columns of a window take of an SM
  double octet_width_ns = 14.1;  // and for their width
  double octet_wait_ns = 142;    // the same, seen from a warp
  double octet_width_wait_ns = 90.6;
  double octet_score_ns = 28;    // work: eight columns, where there is a score modifier
  double octet_capture_ns = 90;  // more, where that reads a tensor
};

// attention_few_queries. Widths are those of a head in units of 64 dimensions, rounds of sums those
// of which each thread has one. Fitted to 896 times of 106 shapes, with 32 to 256 dimensions, on an
// H100.
struct FewQueriesAttention {
  double start_us = 1.48;
  double dram_share = 0.939;   // of dram_gbps
  double idle_share = 0.19;    // what it takes longer, for the share of SMs with a block less
  double dram_wait_ns = 507;   // until the first of it is there
  double round_ns = 2830;      // one more round of blocks, which begins with nothing under way
  double l2_share = 1.2;       // of l2_gbps
  double least_width = 0.32;   // what a piece takes besides its width
  double piece_ns = 18.6;      // 16 keys, for their width
  double rows_piece = 2.3;     // that share more for another 16 rows
  double piece_wait_ns = 247;  // the same, seen from the warp that waits for them
  double rows_piece_wait = 0.18;
  double least_piece_wait_ns = 570;  // half of the way from memory: two are under way
  double masked_wait_ns = 300;       // more, where a mask is looked at; of three causal shapes
  double sums_ns = 423;              // a round of sums of its warps
  double cluster_ns = 1490;          // a cluster puts its sums together
  double exchange_ns = 1190;         // and several do in memory
  double exchange_sums_ns = 516;     // a round of sums of 16 of them
  double exchange_part_ns = 40;      // one more of them
};

// attention_few_keys and attention_few_keys_bits. Piece by 12 shapes of 1 to 3 blocks an SM with 64
// to 256 keys, start by those of selection.json that have a block for each SM.
struct FewKeysAttention {
  double start_us = 1.0;  // until the keys are there, and from the last sums to the end
  double piece_ns = 100;  // 16 keys, for their width in units of 64 dimensions
};

// attention_few_keys_sm90. Of 204 shapes with 48 to 192 keys on an H200, within 8 % (root mean
// square).
struct FewKeysSm90Attention {
  double start_us = 2.0;
  double panel_ns = 250;    // 64 queries and 64 keys or values, of up to 64 dimensions
  double dram_share = 1.2;  // of dram_gbps: outputs stay in L2
};

// attention_held_sm90. Fitted to seven grids of a block an SM, of 10 to 64 tiles of keys a block.
struct HeldAttention {
  double start_us = 7.0;  // until the first keys are there, and from the last sums to the end
  double keys_ns = 270;   // 64 keys of a query tile
};

// attention_short_heads_sm90. Fitted to 16 shapes of 2 to 8 heads an SM, of 128 dimensions.
struct ShortHeadsAttention {
  double start_us = 4.5;  // until the first data are there, and from the last tile to the end
  double box_ns = 2400;   // 64 keys of a head, for their width in units of 128 dimensions
};

// attention_global_local_sm90. Fitted to four masks of 2048 and 4096 tokens, 64 dimensions a head.
struct GlobalLocalAttention {
  double start_us = 3.5;     // until the first data arrive, and from the last tile to the end
  double dram_share = 0.88;  // of dram_gbps
  double tile_ns = 1000;     // start and end of a query tile, of an SM
  double keys_ns = 70;       // 64 keys of it
  double global_ns = 480;    // 64 global queries, with 64 keys
};

// attention_resident_sm90. After two masks of 1024 tokens, 64 dimensions a head.
struct ResidentAttention {
  double start_us = 2.6;      // until the keys are there, and from the last sums to the end
  double dram_share = 0.8;    // of dram_gbps
  double box_ns = 750;        // 64 keys of a warp group
  double group_ns = 400;      // the sums of one more warp group are added
  double exchange_ns = 1500;  // those of the blocks of a cluster are
};

// layer_norm, rms_norm: until the data of a row are there, and through it. Measured with 64 to 256
// rows of 768 and 1024.
struct Norm {
  double start_us = 1.04;
  double element_ns = 20;  // an element of a thread
  double warp_ns = 70;     // one more warp of a row tells its sums to the others
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
  FewRowsProduct few_rows_product;
  MmaProduct mma_product;
  ChainedProducts chained_products;
  VectorProduct vector_product;
  SimpleProduct simple_product;
  // By name of the template; "" for those that have no line of their own.
  std::map<std::string, TiledAttention, std::less<>> tiled_attention = {
      {"", {}},
      {"attention_block_wise_sm90",
       {.uses_wgmma = true,
        .start_us = 1.17,
        .cold_us = 1.69,
        .dram_share = 0.90,
        .l2_share = 1.01,
        .tile_wait_ns = 281,
        .query_wait_ns = 374,
        .exchange_wait_ns = 1130,
        .step_wait_ns = 153,
        .keys_wait_ns = 231,
        .tall_wait_ns = 98.9,
        .interval_wait_ns = 105,
        .bitmap_wait_ns = 37.6,
        .tile_ns = 36.5,
        .tile_dims_ns = 411,
        .softmax_ns = 83.8,
        .tensor_part = 0.493,
        .plain_ns = 10.6,
        .interval_ns = 24.1,
        .predicate_ns = 80,
        .bitmap_ns = 5.11,
        .capture_wait_ns = 150,
        .unit_ns = 2070,
        .part_ns = 89}},
      {"attention_band_sm90",  // as far as it is measured; no lists to wait for
       {.uses_wgmma = true,
        .start_us = 0.0142,
        .cold_us = 1.09,
        .dram_share = 0.761,
        .l2_share = 0.955,
        .tile_wait_ns = 679,
        .exchange_wait_ns = 509,
        .step_wait_ns = 9.35,
        .keys_wait_ns = 213,
        .tall_wait_ns = 98.9,
        .interval_wait_ns = 1.93,
        .bitmap_wait_ns = 18.7,
        .tile_ns = 18.7,
        .tile_dims_ns = 98.4,
        .softmax_ns = 137,
        .tensor_part = 0.636,
        .interval_ns = 1.38,
        .predicate_ns = 80,
        .bitmap_ns = 25.5}},
      {"attention_window_sm90",  // as that of band, but for what is measured
       {.uses_wgmma = true,
        .start_us = 3.2,
        .cold_us = 1.19,
        .dram_share = 0.886,
        .l2_share = 3,  // a key is read once for the tiles that see it
        .tile_wait_ns = 100,
        .step_wait_ns = 0,
        .keys_wait_ns = 0,
        .tall_wait_ns = 0,
        .interval_wait_ns = 0,
        .bitmap_wait_ns = 0,
        .tile_ns = 17.9,
        .tile_dims_ns = 91.3,
        .softmax_ns = 131,
        .tensor_part = 0.79,
        .interval_ns = 2.46,
        .predicate_ns = 80,
        .bitmap_ns = 25.5}},
      {"attention_packed_sm90",  // as that of block_wise
       {.uses_wgmma = true,
        .start_us = 0.949,
        .cold_us = 1.47,
        .dram_share = 0.90,
        .l2_share = 0.919,
        .tile_wait_ns = 321,
        .query_wait_ns = 433,
        .exchange_wait_ns = 1130,
        .step_wait_ns = 191,
        .keys_wait_ns = 233,
        .tall_wait_ns = 98.9,
        .interval_wait_ns = 57.3,
        .bitmap_wait_ns = 59.9,
        .tile_ns = 14.4,
        .tile_dims_ns = 478,
        .softmax_ns = 51.6,
        .tensor_part = 0.597,
        .plain_ns = 13.8,
        .interval_ns = 6.24,
        .predicate_ns = 80,
        .bitmap_ns = 3.36,
        .capture_wait_ns = 150,
        .unit_ns = 1840,
        .part_ns = 120}}};
  std::map<std::string, GatheredAttention, std::less<>> gathered_attention = {{"", {}}};
  std::map<std::string, StagedAttention, std::less<>> staged_attention = {{"", {}}};
  FewKeysAttention few_keys_attention;
  FewKeysSm90Attention few_keys_sm90_attention;
  HeldAttention held_attention;
  ShortHeadsAttention short_heads_attention;
  FewQueriesAttention few_queries_attention;
  GlobalLocalAttention global_local_attention;
  ResidentAttention resident_attention;
  Norm norm;
  Stream stream;
};

}  // namespace stof::cost
