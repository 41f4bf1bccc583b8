#include "mask/global_local.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <span>
#include <utility>

#include "mask/bits.hpp"
#include "mask/group_bits.hpp"

namespace stof::mask {

namespace {

constexpr std::int32_t kNone = -1;        // no group
constexpr std::int64_t kColumnStep = 32;  // keys, in multiples of which a kernel takes them

using FourGroups = std::array<std::int32_t, kTileGroups>;

std::int64_t round_up(std::int64_t count, std::int64_t to) {
  return ceil_div(count, to) * to;
}

// Four of so many groups, from number `first` on.
FourGroups four_from(std::int64_t first, std::int64_t count) {
  FourGroups groups{};
  for (std::int64_t i = 0; i < kTileGroups; ++i) {
    const bool exists = first + i >= 0 && first + i < count;
    groups[i] = exists ? static_cast<std::int32_t>(first + i) : kNone;
  }
  return groups;
}

// Four that are listed, of so many that exist.
FourGroups four_of(const std::vector<std::int32_t>& list, std::int64_t first, std::int64_t count) {
  FourGroups groups{};
  for (std::int64_t i = 0; i < kTileGroups; ++i) {
    const std::int32_t group = list[first + i];
    groups[i] = group < count ? group : kNone;
  }
  return groups;
}

void leave_out(FourGroups& groups, const std::vector<std::int32_t>& list) {
  for (std::int32_t& group : groups) {
    group = std::ranges::binary_search(list, group) ? kNone : group;
  }
}

class Splitter {
 public:
  explicit Splitter(const MaskLayout& layout)
      : layout_(layout),
        lists_(derive_tiles(layout, kPackedGroup, kPackedGroup)),
        bits_(layout),
        is_long_(long_row_groups(lists_, 0)),
        is_global_key_(static_cast<std::size_t>(lists_.kv_tiles)) {}

  std::optional<GlobalLocal> split() {
    if (!find_global_keys() || !find_window()) {
      return std::nullopt;
    }
    list_global_queries();
    if (!have_boxes_for_global_queries()) {
      return std::nullopt;
    }
    describe_tiles();
    result_.bitmaps = std::move(bitmaps_).take();
    return std::move(result_);
  }

 private:
  std::span<const std::int32_t> keys_of(std::int64_t row_group) const {
    const std::int32_t first = lists_.row_ptr[row_group];
    return std::span(lists_.col_idx).subspan(first, lists_.row_ptr[row_group + 1] - first);
  }

  bool find_global_keys() {
    std::vector<std::int64_t> seen_by(static_cast<std::size_t>(lists_.kv_tiles));
    std::int64_t rows = 0;
    for (std::int64_t row = 0; row < lists_.q_tiles; ++row) {
      rows += is_long_[row] ? 0 : 1;
      for (const std::int32_t key : keys_of(row)) {
        seen_by[key] += is_long_[row] ? 0 : 1;
      }
    }
    for (std::int32_t key = 0; key < lists_.kv_tiles; ++key) {
      if (2 * seen_by[key] > rows) {
        is_global_key_[key] = true;
        result_.key_groups.push_back(key);
      }
    }
    result_.global_keys = std::ssize(result_.key_groups) * kPackedGroup;
    result_.key_groups.resize(GlobalLocal::kMostGlobalKeys / kPackedGroup,
                              static_cast<std::int32_t>(lists_.kv_tiles));
    return result_.global_keys <= GlobalLocal::kMostGlobalKeys;
  }

  // Of groups that each query tile sees, relative to its own first one.
  bool find_window() {
    std::int64_t first = std::numeric_limits<std::int64_t>::max();
    std::int64_t end = std::numeric_limits<std::int64_t>::min();
    for (std::int64_t row = 0; row < lists_.q_tiles; ++row) {
      for (const std::int32_t key : keys_of(row)) {
        if (!is_long_[row] && !is_global_key_[key]) {
          const std::int64_t place = key - row / kTileGroups * kTileGroups;
          first = std::min(first, place);
          end = std::max(end, place + 1);
        }
      }
    }
    if (first < end) {
      result_.first_key = first * kPackedGroup;
      result_.local_keys = (end - first) * kPackedGroup;
    }
    return result_.local_keys <= GlobalLocal::kMostLocalKeys;
  }

  void list_global_queries() {
    for (std::int32_t row = 0; row < lists_.q_tiles; ++row) {
      if (is_long_[row]) {
        result_.row_groups.push_back(row);
      }
    }
    result_.row_groups.resize(
        static_cast<std::size_t>(round_up(std::ssize(result_.row_groups), kTileGroups)),
        static_cast<std::int32_t>(lists_.q_tiles));
  }

  // Of all query tiles.
  std::int64_t boxes() const {
    return ceil_div(lists_.q_tiles, kTileGroups) + result_.boxes_of_tile() - 1;
  }

  bool have_boxes_for_global_queries() const {
    const bool reach_all =
        result_.first_key <= 0 && result_.first_key + boxes() * kTile >= layout_.extent.kv_len;
    return result_.global_tiles() == 0 ||
           (result_.global_tiles() <= GlobalLocal::kMostGlobalTiles && reach_all);
  }

  void describe_tiles() {
    for (std::int64_t tile = 0; tile < ceil_div(lists_.q_tiles, kTileGroups); ++tile) {
      describe_tile(tile);
    }
    for (std::int64_t tile = 0; tile < result_.global_tiles(); ++tile) {
      const FourGroups rows = four_of(result_.row_groups, tile * kTileGroups, lists_.q_tiles);
      for (std::int64_t box = 0; box < boxes(); ++box) {
        const std::int64_t first = result_.first_key / kPackedGroup + box * kTileGroups;
        result_.global_status.push_back(status(rows, four_from(first, lists_.kv_tiles), kTile));
      }
    }
  }

  void describe_tile(std::int64_t tile) {
    FourGroups rows = four_from(tile * kTileGroups, lists_.q_tiles);
    leave_out(rows, result_.row_groups);
    std::array<std::int32_t, GlobalLocal::kTileNumbers> numbers{};
    for (std::int64_t i = 0; i < kTileGroups; ++i) {
      numbers[GlobalLocal::kWritten] |= rows[i] != kNone ? 1 << i : 0;
    }
    const std::int64_t first = result_.first_key / kPackedGroup + tile * kTileGroups;
    for (std::int64_t i = 0; i < GlobalLocal::kFirstPiece; ++i) {
      FourGroups keys = four_from(first + i * kTileGroups, lists_.kv_tiles);
      leave_out(keys, result_.key_groups);
      const std::int64_t local = round_up(std::max(result_.local_keys, kTile), kColumnStep);
      numbers[i] = status(rows, keys, local - i * kTile);
    }
    for (std::int64_t i = 0; i < GlobalLocal::kMostGlobalKeys / kTile; ++i) {
      const FourGroups keys = four_of(result_.key_groups, i * kTileGroups, lists_.kv_tiles);
      const std::int64_t global = round_up(std::max(result_.global_keys, kColumnStep), kColumnStep);
      numbers[GlobalLocal::kFirstPiece + i] = status(rows, keys, global - i * kTile);
    }
    result_.local_status.insert(result_.local_status.end(), numbers.begin(), numbers.end());
  }

  // Of the first `columns` of them; a kernel takes no others.
  std::int32_t status(const FourGroups& rows, const FourGroups& keys, std::int64_t columns) {
    const TileSight sight = bits_.sight(0, rows, keys, std::clamp<std::int64_t>(columns, 0, kTile));
    return sight.status == 0 ? bitmaps_.number(sight.bits) : sight.status;
  }

  const MaskLayout& layout_;
  TileLists lists_;
  GroupBits bits_;
  std::vector<bool> is_long_;
  std::vector<bool> is_global_key_;
  NumberedBitmaps bitmaps_;
  GlobalLocal result_;
};

}  // namespace

std::int64_t GlobalLocal::boxes_of_tile() const {
  return std::max<std::int64_t>(ceil_div(local_keys, kTile), 1);
}

std::array<std::int64_t, 2> packed_groups(const std::vector<std::int32_t>& groups) {
  constexpr std::int32_t kNoGroup = 0xffff;
  std::array<std::uint64_t, 2> packed = {~0ULL, ~0ULL};
  for (std::size_t i = 0; i < std::min<std::size_t>(groups.size(), 2 * kTileGroups); ++i) {
    const std::uint64_t shift = i % kTileGroups * 16;
    const auto group = static_cast<std::uint64_t>(std::min(groups[i], kNoGroup));
    packed[i / kTileGroups] ^= (group ^ kNoGroup) << shift;
  }
  return {static_cast<std::int64_t>(packed[0]), static_cast<std::int64_t>(packed[1])};
}

GlobalLocalBits global_local_bits(const MaskLayout& layout, const GlobalLocal& split) {
  const std::int64_t row_groups = ceil_div(layout.extent.q_len, kPackedGroup);
  const std::int64_t key_groups = ceil_div(layout.extent.kv_len, kPackedGroup);
  const GroupBits bits(layout);
  const auto bitmap = [&](const FourGroups& rows, const FourGroups& keys) {
    return lane_ordered_bitmap(bitmap_of_rows(bits.sight(0, rows, keys).bits));
  };
  GlobalLocalBits result;
  for (std::int64_t tile = 0; tile < ceil_div(row_groups, kTileGroups); ++tile) {
    FourGroups rows = four_from(tile * kTileGroups, row_groups);
    leave_out(rows, split.row_groups);
    const std::int64_t first = split.first_key / kPackedGroup + tile * kTileGroups;
    for (std::int64_t i = 0; i < split.boxes_of_tile(); ++i) {
      FourGroups keys = four_from(first + i * kTileGroups, key_groups);
      leave_out(keys, split.key_groups);
      result.local.push_back(bitmap(rows, keys));
    }
    for (std::int64_t i = 0; i < ceil_div(split.global_keys, kTile); ++i) {
      result.local.push_back(bitmap(rows, four_of(split.key_groups, i * kTileGroups, key_groups)));
    }
  }
  for (std::int64_t tile = 0; tile < split.global_tiles(); ++tile) {
    const FourGroups rows = four_of(split.row_groups, tile * kTileGroups, row_groups);
    for (std::int64_t i = 0; i < ceil_div(key_groups, kTileGroups); ++i) {
      result.global.push_back(bitmap(rows, four_from(i * kTileGroups, key_groups)));
    }
  }
  return result;
}

std::optional<GlobalLocal> global_local(const MaskLayout& layout) {
  if (layout.mask_batch * layout.mask_heads != 1) {
    return std::nullopt;
  }
  return Splitter(layout).split();
}

}  // namespace stof::mask
