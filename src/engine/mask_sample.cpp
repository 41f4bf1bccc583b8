#include "engine/mask_sample.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "fusion/attention_rewriter.hpp"
#include "fusion/run_time_masks.hpp"
#include "graph/op_info.hpp"
#include "mask/evaluate.hpp"
#include "mask/rows.hpp"

namespace stof::engine {

namespace {

using fusion::kMaskData;

void fill_numbers(const mask::Extent& extent, HostTensor& tensor) {
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) {
    tensor.set(i, static_cast<double>(extent.kv_len));
  }
}

void fill_bytes(const Mask& sample, const mask::Extent& extent, HostTensor& tensor) {
  const mask::BitTensor bits = mask::evaluate_all(sample, extent);
  const std::vector<std::int64_t> shape = tensor.shape();
  std::int64_t at = 0;
  for (std::int64_t b = 0; b < shape[0]; ++b) {
    for (std::int64_t h = 0; h < shape[1]; ++h) {
      for (std::int64_t query = 0; query < extent.q_len; ++query) {
        for (std::int64_t key = 0; key < extent.kv_len; ++key) {
          tensor.set(at++, bits.at(b, h, query, key) ? 1 : 0);
        }
      }
    }
  }
}

void fill_offsets(const Mask& sample, const mask::Extent& extent, HostTensor& tensor) {
  const mask::RowSpans rows = mask::row_spans(mask::build_layout(sample, extent));
  const std::int64_t last = tensor.element_count() - 1;
  std::int64_t documents = 0;
  for (std::int64_t query = 1; query < extent.q_len; ++query) {
    const auto row = static_cast<std::size_t>(query);
    if (rows.count[row] > 0 && rows.first[row] == query && documents + 1 < last) {
      tensor.set(++documents, static_cast<double>(query));
    }
  }
  for (std::int64_t i = documents + 1; i <= last; ++i) {
    tensor.set(i, static_cast<double>(std::max(extent.q_len, extent.kv_len)));
  }
}

// Where the columns of each row begin, or with has_columns these themselves.
void fill_csr(const Mask& sample, const mask::Extent& extent, std::int64_t room, bool has_columns,
              HostTensor& tensor) {
  const mask::BitTensor bits = mask::evaluate_all(sample, extent);
  std::int64_t seen = 0;
  for (std::int64_t query = 0; query < extent.q_len; ++query) {
    for (const std::uint64_t word : bits.row(0, 0, query)) {
      seen += std::popcount(word);
    }
  }
  const std::int64_t most = seen > room ? room / extent.q_len : extent.kv_len;  // of a row
  std::int64_t at = 0;
  for (std::int64_t query = 0; query < extent.q_len; ++query) {
    const std::int64_t begin = at;
    for (std::int64_t key = 0; key < extent.kv_len && at - begin < most; ++key) {
      if (bits.at(0, 0, query, key)) {
        if (has_columns) {
          tensor.set(at, static_cast<double>(key));
        }
        ++at;
      }
    }
    if (!has_columns) {
      tensor.set(query + 1, static_cast<double>(at));
    }
  }
}

}  // namespace

HostTensor mask_sample(const graph::Ir& ir, const graph::Operator& attention, std::size_t input) {
  const auto* like = graph::find_attribute<Mask>(attention, "like");
  const Mask sample = like == nullptr ? Mask() : *like;
  const mask::Extent extent = fusion::extent_of(ir, attention);
  const graph::Value& value = graph::value_at(ir, attention.inputs[input]);
  HostTensor tensor(value.dtype, value.shape.sizes({}));
  const MaskForm form =
      input < kMaskData
          ? MaskForm::KeyLengths
          : *graph::mask_form_from_name(graph::attribute<std::string>(attention, "mask_form"));
  switch (form) {
    case MaskForm::KeyLengths:
      fill_numbers(extent, tensor);
      break;
    case MaskForm::CuSeqlens:
      fill_offsets(sample, extent, tensor);
      break;
    case MaskForm::Dense:
      fill_bytes(sample, extent, tensor);
      break;
    case MaskForm::Csr:
      fill_csr(sample, extent,
               graph::value_at(ir, attention.inputs[kMaskData + 1]).shape[0].value(),
               input != kMaskData, tensor);
      break;
  }
  return tensor;
}

}  // namespace stof::engine
