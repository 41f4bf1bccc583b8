#pragma once

#include <array>
#include <string_view>

namespace stof::contract {

// What the expressions of a header may say of the device: fields of base::DeviceProfile.
inline constexpr std::array<std::string_view, 6> kDeviceScalars = {
    "device.sm",                      // 10 * compute capability: 80, 90, 120
    "device.sm_count",                // multiprocessors
    "device.shared_bytes_per_block",  // the most that a block may opt in to
    "device.shared_bytes_per_sm",
    "device.registers_per_sm",
    "device.l2_bytes",
};

// The planes of the mask of an attention, 1 where batch elements or heads share one; and how many
// of the query tiles that come first in its order are worked on in how many parts each; and how
// many replicas of a plane, (batch, head) pairs, a section of its order has, and the last one. A
// template that reads one of the next two takes bands alone, whose query i sees keys i + band_first
// … i + band_end - 1; one that reads one of the others takes windows with global tokens alone, as
// mask::GlobalLocal has them: the first local key of query tile 0, how many keys are local and
// global, and how many tiles of global queries there are; and where the groups of 16 global keys
// and queries are, as kWideMaskScalars. The last one is how many tensors the score reads by tiles,
// which take shared memory.
inline constexpr std::array<std::string_view, 17> kMaskScalars = {
    "mask.batch",
    "mask.heads",
    "mask.long_tiles",
    "mask.parts",
    "mask.section",
    "mask.last_section",
    "mask.band_first",
    "mask.band_end",
    "mask.local_first",
    "mask.local_keys",
    "mask.global_keys",
    "mask.global_tiles",
    "mask.global_keys_at_0",
    "mask.global_keys_at_1",
    "mask.global_queries_at_0",
    "mask.global_queries_at_1",
    "mask.score_tiles",
};

// Those of which an argument is a long long: the numbers of four groups, of 16 bits each from the
// lowest on; 65535 where there is none.
inline constexpr std::array<std::string_view, 4> kWideMaskScalars = {
    "mask.global_keys_at_0",
    "mask.global_keys_at_1",
    "mask.global_queries_at_0",
    "mask.global_queries_at_1",
};

// Arrays of the layout of its mask that an attention template may take, as "mask.order".
// ../../templates/README.md describes them.
inline constexpr std::array<std::string_view, 26> kMaskArrays = {
    "order",         "row_ptr",           "tile_col",
    "tile_bitmap",   "bitmaps",           "row_first",
    "row_end",       "key_row_ptr",       "key_col",
    "row_order",     "window_ptr",        "window_col",
    "packed_order",  "packed_rows",       "packed_ptr",
    "packed_keys",   "packed_status",     "packed_bitmaps",
    "local_status",  "global_key_groups", "global_row_groups",
    "global_status", "global_bitmaps",    "local_bits",
    "global_bits",   "all_bitmaps",
};

}  // namespace stof::contract
