#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "mask/bits.hpp"
#include "mask/extent.hpp"
#include "reference/call.hpp"

namespace stof::reference {

// Which keys each query sees; null where every query sees every key.
using VisibleKeys = std::shared_ptr<const mask::BitTensor>;

// What the masks of one run let see, so that the layers that share a mask work it out once.
class VisibleKeysCache {
 public:
  VisibleKeys find_or_make(const std::string& key, const std::function<VisibleKeys()>& make);

 private:
  std::map<std::string, VisibleKeys> made_;
};

// What the attribute mask, kv_lengths at input `first` and the data of mask_form behind it let each
// query see.
VisibleKeys visible_keys(const Call& call, const mask::Extent& extent, std::size_t first);

// Scores of keys from `first_key` on become -inf where the row's bit of the key is 0.
void hide_keys(std::span<const std::uint64_t> row, std::int64_t first_key,
               std::span<double> scores);

}  // namespace stof::reference
