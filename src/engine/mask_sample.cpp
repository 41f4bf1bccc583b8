#include "engine/mask_sample.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "graph/op_info.hpp"
#include "mask/evaluate.hpp"
#include "mask/rows.hpp"

namespace stof::engine {

namespace {

constexpr std::size_t kMaskData = 4;  // input of attention

mask::Extent extent_of(const graph::Ir& ir, const graph::Operator& attention) {
  const Shape& q = graph::value_at(ir, attention.inputs[0]).shape;
  const Shape& k = graph::value_at(ir, attention.inputs[1]).shape;
  return {
      .batch = q[0].value(), .heads = q[1].value(), .q_len = q[2].value(), .kv_len = k[2].value()};
}

// Calls visit(query, key) for what a plane sees, at most `most` keys of a query.
template <typename Visit>
void for_each_key(mask::Evaluator& evaluator, const mask::Extent& extent, std::int64_t batch,
                  std::int64_t head, std::int64_t most, const Visit& visit) {
  std::vector<std::uint64_t> words(
      static_cast<std::size_t>(mask::ceil_div(extent.kv_len, mask::kWordBits)));
  for (std::int64_t query = 0; query < extent.q_len; ++query) {
    evaluator.row({.batch = batch, .head = head, .query = query}, 0, words);
    std::int64_t count = 0;
    for (std::size_t i = 0; i < words.size(); ++i) {
      for (std::uint64_t word = words[i]; word != 0 && count < most; word &= word - 1) {
        visit(query, static_cast<std::int64_t>(i) * mask::kWordBits + std::countr_zero(word));
        ++count;
      }
    }
  }
}

HostTensor bytes_of(const Mask& sample, const mask::Extent& extent, HostTensor tensor) {
  mask::Evaluator evaluator(sample, extent);
  const std::vector<std::int64_t> shape = tensor.shape();
  for (std::int64_t b = 0; b < shape[0]; ++b) {
    for (std::int64_t h = 0; h < shape[1]; ++h) {
      const std::int64_t first = (b * shape[1] + h) * extent.q_len;
      for_each_key(evaluator, extent, b, h, extent.kv_len,
                   [&](std::int64_t query, std::int64_t key) {
                     tensor.set((first + query) * extent.kv_len + key, 1);
                   });
    }
  }
  return tensor;
}

HostTensor offsets_of(const Mask& sample, const mask::Extent& extent, HostTensor tensor) {
  const mask::RowSpans rows = mask::row_spans(mask::build_layout(sample, extent));
  const std::int64_t last = tensor.element_count() - 1;
  std::int64_t documents = 0;
  for (std::int64_t query = 1; query < extent.q_len; ++query) {
    const auto row = static_cast<std::size_t>(query);
    if (rows.count[row] > 0 && rows.first[row] == query && documents + 1 < last) {
      tensor.set(++documents, static_cast<double>(query));
    }
  }
  const std::int64_t end = std::max(extent.q_len, extent.kv_len);
  for (std::int64_t i = documents + 1; i <= last; ++i) {
    tensor.set(i, static_cast<double>(end));
  }
  return tensor;
}

// The columns, or where those of each row begin.
HostTensor columns_of(const Mask& sample, const mask::Extent& extent, std::int64_t room,
                      bool is_row_ptr, HostTensor tensor) {
  mask::Evaluator evaluator(sample, extent);
  std::int64_t seen = 0;
  for_each_key(evaluator, extent, 0, 0, extent.kv_len, [&](std::int64_t, std::int64_t) { ++seen; });
  const std::int64_t most = seen > room ? room / extent.q_len : extent.kv_len;
  std::vector<std::int64_t> counts(static_cast<std::size_t>(extent.q_len));
  std::int64_t at = 0;
  for_each_key(evaluator, extent, 0, 0, most, [&](std::int64_t query, std::int64_t key) {
    ++counts[static_cast<std::size_t>(query)];
    if (!is_row_ptr) {
      tensor.set(at, static_cast<double>(key));
    }
    ++at;
  });
  std::int64_t sum = 0;
  for (std::int64_t query = 0; is_row_ptr && query < extent.q_len; ++query) {
    sum += counts[static_cast<std::size_t>(query)];
    tensor.set(query + 1, static_cast<double>(sum));
  }
  return tensor;
}

}  // namespace

HostTensor mask_sample(const graph::Ir& ir, const graph::Operator& attention, std::size_t input) {
  const auto* like = graph::find_attribute<Mask>(attention, "like");
  const Mask sample = like == nullptr ? Mask() : *like;
  const mask::Extent extent = extent_of(ir, attention);
  const graph::Value& value = graph::value_at(ir, attention.inputs[input]);
  HostTensor tensor(value.dtype, value.shape.sizes({}));
  switch (*graph::mask_form_from_name(graph::attribute<std::string>(attention, "mask_form"))) {
    case MaskForm::Dense:
      return bytes_of(sample, extent, std::move(tensor));
    case MaskForm::CuSeqlens:
      return offsets_of(sample, extent, std::move(tensor));
    case MaskForm::Csr: {
      const graph::Value& columns = graph::value_at(ir, attention.inputs[kMaskData + 1]);
      return columns_of(sample, extent, columns.shape[0].value(), input == kMaskData,
                        std::move(tensor));
    }
    case MaskForm::KeyLengths:
      break;
  }
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) {
    tensor.set(i, static_cast<double>(extent.kv_len));
  }
  return tensor;
}

}  // namespace stof::engine
