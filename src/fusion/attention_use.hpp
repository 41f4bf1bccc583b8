#pragma once

#include <cstdint>

#include "contract/contract.hpp"
#include "fusion/attention.hpp"
#include "fusion/use.hpp"
#include "mask/bits.hpp"
#include "mask/rows.hpp"

namespace stof::fusion {

// Whether an attention template takes lists of keys, which masks that differ from run to run lack.
bool reads_key_rows(const contract::TemplateContract& contract);
// Whether those are lists of the columns of windows, which are made on the host.
bool reads_windows(const contract::TemplateContract& contract);
// Whether query tiles and their keys are packed of what is seen, on the host.
bool packs(const contract::TemplateContract& contract);
// Whether it takes masks that are bands, and no others.
bool takes_bands(const contract::TemplateContract& contract);
// Whether it takes masks whose rows see a run of keys each, and no others.
bool takes_intervals(const contract::TemplateContract& contract);
// Windows with global tokens alone.
bool takes_global_tokens(const contract::TemplateContract& contract);
// Whether it takes a bitmap of every tile, which are made on the host.
bool takes_all_bitmaps(const contract::TemplateContract& contract);

std::int64_t sm_count(const Use& use);
// Query tiles of so many rows, of all heads and batch elements.
std::int64_t query_tiles(const Use& use, std::int64_t rows = mask::kTile);
double tiles_per_sm(const Use& use);
// Whether the last of the waves in which blocks are worked on is so small that all take so much
// longer than if it were full.
bool leaves_places(std::int64_t blocks, std::int64_t at_once, double many = 1.1);
// Of how many query rows the waves have room in which so many tiles at once are worked on.
std::int64_t rows_of_waves(const Use& use, std::int64_t rows, std::int64_t at_once);
// The more of the dimensions of keys and of values.
std::int64_t columns(const Use& use);
// Whether keys or values have more than 64 dimensions.
bool has_wide_heads(const Use& use);
// Whether rows of keys and values are so many dimensions, times a whole number. TMA takes as
// long for parts of a line of 64 as for all of it, and longer where they are no multiple of 16.
bool has_rows_of(const Use& use, std::int64_t dims);
// Whether larger query tiles would be half empty.
bool has_one_tile(const Use& use);
// Whether heads have one tile of 128 queries each, which is more than one of 64, and are more than
// two for each SM.
bool has_many_heads_of_128(const Use& use);
// The band along which one of the kernels for bands works.
mask::Band band_of(const Use& use);
// How many keys so many queries, one behind the other, see along it at most.
std::int64_t keys_of_queries(const Use& use, std::int64_t queries);
// Whether a band ends, to one side at least, with the keys and not with what its queries see.
bool has_open_side(const Use& use, const mask::Band& band);
bool sees_all(const Use& use, const mask::Band& band);
// Whether most rows of the band see as many keys as there are, or as a long window has, and not
// fewer where it is cut.
bool has_even_rows(const Use& use, double per_row);
// From so many active tiles of 64 query rows on, rows are long.
inline constexpr double kLongRow = 12;
// Rows of more active tiles are walked along by lists.
inline constexpr double kVeryLongRow = 96;
// Whether SMs are left over that are of use to lists alone, which share out long rows. Where rows
// are uneven the longest tiles are twice as long as the mean, so that fewer SMs will do.
bool leaves_sms_idle(const Use& use, double per_row, bool is_uneven = false);
// Active tiles of 64 keys of 64 query rows, in the mean.
double tiles_per_row(const Use& use, const AttentionMask& mask);

}  // namespace stof::fusion
