#include "fusion/fold_product.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "base/check.hpp"
#include "base/float16.hpp"
#include "base/parallel.hpp"

namespace stof::fusion {

namespace {

constexpr std::int64_t kColumnsAtOnce = 32;  // by one thread

// Where float16 begins to hold fewer digits, and where it ends. bfloat16 reaches as far as float32.
constexpr double kLeastNormal = 0x1p-14;
constexpr double kLargest = 65504;

std::vector<float> floats_of(const HostTensor& tensor) {
  HostTensor wide = tensor.cast(DType::Float32);
  std::vector<float> values(static_cast<std::size_t>(wide.element_count()));
  std::memcpy(values.data(), wide.bytes().data(), wide.bytes().size());
  return values;
}

// A matrix of which each column n has k elements, in either order.
struct Layout {
  std::int64_t n = 0, k = 0;
  bool is_turned = false;

  std::size_t at(std::int64_t column, std::int64_t row) const {
    return static_cast<std::size_t>(is_turned ? column * k + row : row * n + column);
  }
};

class Folder {
 public:
  Folder(const FoldedProduct& folded,
         const std::function<HostTensor(const std::string&)>& tensor_of)
      : folded_(folded), gain_(floats_of(tensor_of(folded.gain))) {
    if (!folded.shift.empty()) {
      shift_ = floats_of(tensor_of(folded.shift));
    }
    for (const std::string& bias : folded.biases) {
      const std::vector<float> values = floats_of(tensor_of(bias));
      bias_.insert(bias_.end(), values.begin(), values.end());
    }
    for (const std::string& name : folded.parts) {
      parts_.push_back(tensor_of(name));
      whole_.n += parts_.back().shape()[folded.is_turned ? 0 : 1];
    }
    dtype_ = parts_.front().dtype();
    whole_.k = static_cast<std::int64_t>(gain_.size());
    whole_.is_turned = folded.is_turned;
    STOF_CHECK(size_bytes(dtype_) == 2) << folded.weight;
    bits_.resize(static_cast<std::size_t>(whole_.n * whole_.k));
    offset_.resize(static_cast<std::size_t>(whole_.n));
  }

  FoldedTensors run() {
    std::int64_t first = 0;
    std::string fault;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const HostTensor& tensor = parts_[i];
      const Layout part{.n = tensor.shape()[folded_.is_turned ? 0 : 1],
                        .k = whole_.k,
                        .is_turned = folded_.is_turned};
      const std::vector<float> values = floats_of(tensor);
      const std::int64_t blocks = (part.n + kColumnsAtOnce - 1) / kColumnsAtOnce;
      std::vector<std::string> faults(static_cast<std::size_t>(blocks));
      base::parallel_for(blocks, [&](std::int64_t block) {
        const std::int64_t end = std::min(part.n, (block + 1) * kColumnsAtOnce);
        for (std::int64_t n = block * kColumnsAtOnce; n < end; ++n) {
          std::string found = fold_column(values, part, n, first + n);
          std::string& known = faults[static_cast<std::size_t>(block)];
          known = known.empty() ? std::move(found) : known;
        }
      });
      for (const std::string& one : faults) {
        if (fault.empty() && !one.empty()) {
          fault = fmt::format("'{}' times '{}' {}", folded_.gain, folded_.parts[i], one);
        }
      }
      first += part.n;
    }
    FoldedTensors tensors{
        .weight = HostTensor(dtype_, folded_.is_turned ? std::vector{whole_.n, whole_.k}
                                                       : std::vector{whole_.k, whole_.n}),
        .offset = {},
        .fault = std::move(fault)};
    std::memcpy(tensors.weight.bytes().data(), bits_.data(), tensors.weight.bytes().size());
    if (!folded_.offset.empty()) {
      tensors.offset = HostTensor(DType::Float32, {whole_.n});
      std::memcpy(tensors.offset->bytes().data(), offset_.data(), tensors.offset->bytes().size());
    }
    return tensors;
  }

 private:
  // What is wrong with it.
  std::string fold_column(const std::vector<float>& values, const Layout& part, std::int64_t from,
                          std::int64_t to) {
    std::vector<double> column(static_cast<std::size_t>(whole_.k));
    double moved = bias_.empty() ? 0 : bias_[static_cast<std::size_t>(to)];
    for (std::size_t k = 0; k < column.size(); ++k) {
      const double weight = values[part.at(from, static_cast<std::int64_t>(k))];
      column[k] = weight * gain_[k];
      moved += shift_.empty() ? 0 : weight * shift_[k];
    }
    offset_[static_cast<std::size_t>(to)] = static_cast<float>(moved);
    if (folded_.is_centred) {
      const double mean =
          std::accumulate(column.begin(), column.end(), 0.0) / static_cast<double>(column.size());
      std::for_each(column.begin(), column.end(), [&](double& value) { value -= mean; });
    }
    std::string fault = fault_of(column, moved);
    if (fault.empty()) {
      round(column, to);
    }
    return fault;
  }

  void round(const std::vector<double>& column, std::int64_t to) {
    double carry = 0;
    for (std::size_t k = 0; k < column.size(); ++k) {
      const double wanted = column[k] + (folded_.is_centred ? carry : 0);
      double rounded = 0;
      std::uint16_t& bits = bits_[whole_.at(to, static_cast<std::int64_t>(k))];
      if (dtype_ == DType::Float16) {
        bits = base::Float16::from(wanted).bits;
        rounded = base::Float16{bits}.to_float();
      } else {
        bits = base::BFloat16::from(wanted).bits;
        rounded = base::BFloat16{bits}.to_float();
      }
      carry = wanted - rounded;
    }
  }

  std::string fault_of(const std::vector<double>& column, double moved) const {
    const double limit = dtype_ == DType::Float16 ? kLargest : std::numeric_limits<float>::max();
    double squares = moved - moved;  // NaN where the offset is not finite
    for (const double value : column) {
      if (!(std::abs(value) < limit)) {
        return fmt::format("is {}, {} holds numbers below {}", value, name(dtype_), limit);
      }
      squares += value * value;
    }
    if (std::isnan(squares)) {
      return "has an offset that is not finite";
    }
    const double size = std::sqrt(squares / static_cast<double>(column.size()));
    if (dtype_ == DType::Float16 && size > 0 && size < kLeastNormal) {
      return fmt::format("is of the size {}, {} has all its digits from {} on", size, name(dtype_),
                         kLeastNormal);
    }
    return {};
  }

  const FoldedProduct& folded_;
  std::vector<HostTensor> parts_;
  DType dtype_ = DType::Float16;
  Layout whole_;
  std::vector<float> gain_, shift_, bias_;
  std::vector<std::uint16_t> bits_;
  std::vector<float> offset_;
};

}  // namespace

FoldedTensors fold_product(const FoldedProduct& folded,
                           const std::function<HostTensor(const std::string&)>& tensor_of) {
  return Folder(folded, tensor_of).run();
}

}  // namespace stof::fusion
