#include "reference/visible_keys.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/check.hpp"
#include "graph/op_info.hpp"
#include "mask/evaluate.hpp"
#include "stof/error.hpp"

namespace stof::reference {

namespace {

using mask::BitTensor;
using mask::Extent;

// Data of a mask that arrives at run time, and what errors call it.
class MaskData {
 public:
  MaskData(const Call& call, std::size_t input, std::string_view form)
      : array_(call.wide_input(input)),
        form_(form),
        name_(call.ir.values[static_cast<std::size_t>(call.op.inputs[input])]->name) {}

  const Array& array() const { return array_; }
  std::int64_t count() const { return array_.count(); }

  std::int64_t operator[](std::int64_t position) const {
    return static_cast<std::int64_t>(array_.values()[static_cast<std::size_t>(position)]);
  }

  // An entry that must be from `min` to `max`.
  std::int64_t checked(std::int64_t position, std::int64_t min, std::int64_t max) const {
    const std::int64_t value = (*this)[position];
    if (value < min || value > max) {
      throw GraphError(fmt::format("mask: {} \"{}\" holds {} at position {}, outside {} to {}",
                                   form_, name_, value, position, min, max));
    }
    return value;
  }

 private:
  Array array_;
  std::string_view form_;
  std::string name_;
};

constexpr std::int64_t kMaxWords = std::int64_t{1} << 27;  // 1 GiB

BitTensor no_bits(std::int64_t batch, std::int64_t heads, const Extent& extent) {
  const std::int64_t rows = batch * heads * extent.q_len;
  if (rows > kMaxWords / mask::ceil_div(extent.kv_len, mask::kWordBits)) {
    throw GraphError(fmt::format("mask: [{}, {}, {}, {}] is too large to be written out in full",
                                 batch, heads, extent.q_len, extent.kv_len));
  }
  BitTensor bits{
      .batch = batch, .heads = heads, .rows = extent.q_len, .columns = extent.kv_len, .words = {}};
  bits.words.resize(static_cast<std::size_t>(rows * bits.words_per_row()));
  return bits;
}

// A row of `bits`, counted over batch, heads and queries, to write.
std::span<std::uint64_t> row_words(BitTensor& bits, std::int64_t row) {
  const auto width = static_cast<std::size_t>(bits.words_per_row());
  return std::span(bits.words).subspan(static_cast<std::size_t>(row) * width, width);
}

BitTensor from_lengths(const MaskData& lengths, const Extent& extent) {
  BitTensor bits = no_bits(extent.batch, 1, extent);
  for (std::int64_t batch = 0; batch < extent.batch; ++batch) {
    const std::int64_t length = lengths.checked(batch, 0, extent.kv_len);
    for (std::int64_t query = 0; query < extent.q_len; ++query) {
      mask::set_bits(row_words(bits, batch * extent.q_len + query), 0, length);
    }
  }
  return bits;
}

// Tokens behind the last offset belong to no document.
BitTensor from_documents(const MaskData& offsets, const Extent& extent) {
  BitTensor bits = no_bits(1, 1, extent);
  std::int64_t begin = offsets.checked(0, 0, 0);
  for (std::int64_t i = 1; i < offsets.count(); ++i) {
    const std::int64_t end = offsets.checked(i, begin, std::max(extent.q_len, extent.kv_len));
    for (std::int64_t query = begin; query < std::min(end, extent.q_len); ++query) {
      mask::set_bits(row_words(bits, query), std::min(begin, extent.kv_len),
                     std::min(end, extent.kv_len));
    }
    begin = end;
  }
  return bits;
}

BitTensor from_dense(const MaskData& keep, const Extent& extent) {
  BitTensor bits = no_bits(keep.array().extent(0), keep.array().extent(1), extent);
  const std::int64_t rows = extent.kv_len == 0 ? 0 : keep.count() / extent.kv_len;
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto words = row_words(bits, row);
    for (std::int64_t key = 0; key < extent.kv_len; ++key) {
      if (keep[row * extent.kv_len + key] != 0) {
        mask::set_bits(words, key, key + 1);
      }
    }
  }
  return bits;
}

BitTensor from_csr(const MaskData& row_ptr, const MaskData& columns, const Extent& extent) {
  BitTensor bits = no_bits(1, 1, extent);
  std::int64_t begin = row_ptr.checked(0, 0, 0);
  for (std::int64_t row = 0; row < extent.q_len; ++row) {
    const std::int64_t end = row_ptr.checked(row + 1, begin, columns.count());
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t key = columns.checked(i, 0, extent.kv_len - 1);
      mask::set_bits(row_words(bits, row), key, key + 1);
    }
    begin = end;
  }
  return bits;
}

BitTensor from_form(const Call& call, const Extent& extent, std::size_t input) {
  const auto& name = graph::attribute<std::string>(call.op, "mask_form");
  const auto form = graph::mask_form_from_name(name);
  STOF_CHECK(form.has_value()) << name;
  const MaskData data(call, input, name);
  switch (*form) {
    case MaskForm::KeyLengths:
      return from_lengths(data, extent);
    case MaskForm::CuSeqlens:
      return from_documents(data, extent);
    case MaskForm::Dense:
      return from_dense(data, extent);
    case MaskForm::Csr:
      break;
  }
  return from_csr(data, MaskData(call, input + 1, name), extent);
}

BitTensor from_mask(const Mask& mask, const Call& call, const Extent& extent) {
  std::map<std::string, HostTensor> tensors;
  mask::CaptureValues captures;
  for (const auto& [name, array] : call.captures) {
    const Array wide = widened(array, call.options);
    const Output value{.dtype = array.dtype,
                       .shape = array.shape,
                       .values = {wide.values().begin(), wide.values().end()}};
    captures[name] = tensors.emplace(name, value.tensor()).first->second.view();
  }
  return mask::evaluate_all(mask, extent, captures);
}

BitTensor intersect(const BitTensor& a, const BitTensor& b, const Extent& extent) {
  BitTensor both = no_bits(std::max(a.batch, b.batch), std::max(a.heads, b.heads), extent);
  for (std::int64_t row = 0; row < both.batch * both.heads * both.rows; ++row) {
    const std::int64_t plane = row / both.rows;
    const std::int64_t batch = plane / both.heads;
    const std::int64_t head = plane % both.heads;
    std::ranges::transform(a.row(batch, head, row % both.rows), b.row(batch, head, row % both.rows),
                           row_words(both, row).begin(), std::bit_and());
  }
  return both;
}

VisibleKeys make(const Call& call, const Extent& extent, std::size_t first) {
  std::vector<BitTensor> parts;
  if (const auto* mask = graph::find_attribute<Mask>(call.op, "mask")) {
    parts.push_back(from_mask(*mask, call, extent));
  }
  if (call.has_input(first)) {
    parts.push_back(from_lengths(MaskData(call, first, "kv_lengths"), extent));
  }
  if (call.has_input(first + 1)) {
    parts.push_back(from_form(call, extent, first + 1));
  }
  if (parts.empty()) {
    return nullptr;
  }
  BitTensor all = std::move(parts.front());
  for (std::size_t i = 1; i < parts.size(); ++i) {
    all = intersect(all, parts[i], extent);
  }
  return std::make_shared<const BitTensor>(std::move(all));
}

// Calls that have it in common see the same keys.
std::string key_of(const Call& call, const Extent& extent, std::size_t first) {
  const auto* mask = graph::find_attribute<Mask>(call.op, "mask");
  const auto inputs = std::span(call.op.inputs).subspan(std::min(first, call.op.inputs.size()));
  const auto* form = graph::find_attribute<std::string>(call.op, "mask_form");
  std::string key = fmt::format("{} {} {} {} {} {} [{}]", extent.batch, extent.heads, extent.q_len,
                                extent.kv_len, mask == nullptr ? "-" : mask->digest(),
                                form == nullptr ? "-" : *form, fmt::join(inputs, ","));
  for (const auto& [name, id] : call.op.captures) {
    key += fmt::format(" {}={}", name, id);
  }
  return key;
}

}  // namespace

VisibleKeys VisibleKeysCache::find_or_make(const std::string& key,
                                           const std::function<VisibleKeys()>& make) {
  const auto found = made_.find(key);
  return found != made_.end() ? found->second : made_.emplace(key, make()).first->second;
}

VisibleKeys visible_keys(const Call& call, const mask::Extent& extent, std::size_t first) {
  const bool has_pairs =
      extent.batch > 0 && extent.heads > 0 && extent.q_len > 0 && extent.kv_len > 0;
  if (!has_pairs) {
    return nullptr;
  }
  return call.visible_keys.find_or_make(key_of(call, extent, first),
                                        [&] { return make(call, extent, first); });
}

void hide_keys(std::span<const std::uint64_t> row, std::int64_t first_key,
               std::span<double> scores) {
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const std::size_t key = static_cast<std::size_t>(first_key) + i;
    if ((row[key / mask::kWordBits] >> (key % mask::kWordBits) & 1) == 0) {
      scores[i] = -std::numeric_limits<double>::infinity();
    }
  }
}

}  // namespace stof::reference
