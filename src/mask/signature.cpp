#include "mask/signature.hpp"

#include <bit>
#include <map>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "base/hash.hpp"
#include "expr/node.hpp"
#include "expr/skeleton.hpp"
#include "mask/node.hpp"

namespace stof::mask {

namespace {

constexpr std::size_t kMaxSkeleton = 512;

// Tables and captures count by where they first occur: their names may hold a digest of values.
class SkeletonWriter {
 public:
  std::string write(const Mask& mask) {
    std::visit([this](const auto& form) { add(form); }, mask.node().form);
    return std::move(text_);
  }

 private:
  void add(const Expr& expression) { add_tree(expr::skeleton(expression).expr); }
  void add(const DenseData& /*data*/) { text_ += "dense"; }
  void add(const BlockData& data) { text_ += fmt::format("blocks{}", data.block_size); }
  void add(const CsrData& /*data*/) { text_ += "csr"; }

  void add(const Combination& combination) {
    text_ += combination.operation == Operation::And  ? "&"
             : combination.operation == Operation::Or ? "|"
                                                      : "~";
    for (std::size_t i = 0; i < combination.operands.size(); ++i) {
      text_ += i == 0 ? "(" : ", ";
      std::visit([this](const auto& form) { add(form); }, combination.operands[i].node().form);
    }
    text_ += ")";
  }

  void add_tree(const Expr& expression) {
    const expr::Node& node = expression.node();
    switch (node.op) {
      case expr::Op::Constant:
        text_ += expression.text();
        break;
      case expr::Op::Scalar:
        text_ += node.name();
        break;
      case expr::Op::Table:
        add_numbered('t', node.table().name());
        break;
      case expr::Op::Capture:
        add_numbered('c', node.capture().name());
        text_ += fmt::format(":{}", stof::name(node.capture().dtype()));
        break;
      default:
        text_ += expr::info(node.op).text;
    }
    for (std::size_t i = 0; i < node.operands.size(); ++i) {
      text_ += i == 0 ? "(" : ", ";
      add_tree(node.operands[i]);
    }
    text_ += node.operands.empty() ? "" : ")";
  }

  void add_numbered(char kind, const std::string& name) {
    const auto number = numbers_.try_emplace({kind, name}, numbers_.size()).first->second;
    text_ += fmt::format("{}{}", kind, number);
  }

  std::string text_;
  std::map<std::pair<char, std::string>, std::size_t> numbers_;
};

std::string skeleton_of(const Mask& mask) {
  std::string text = SkeletonWriter().write(mask);
  return text.size() <= kMaxSkeleton ? text : base::hash(text).hex();
}

int length_bucket(std::int64_t length) {
  return std::bit_width(static_cast<std::uint64_t>(length - 1));
}

}  // namespace

int step_of(std::int64_t n) {
  if (n == 0) {
    return 0;
  }
  const auto value = static_cast<std::uint64_t>(n);
  const int octave = std::bit_width(value) - 1;
  const std::uint64_t quarter = (octave >= 2 ? value >> (octave - 2) : value << (2 - octave)) & 3;
  return 1 + 4 * octave + static_cast<int>(quarter);
}

MaskSignature signature_of(const Mask& mask, const MaskFeatures& features) {
  const std::int64_t planes = features.mask_batch * features.mask_heads;
  return {.mask_class = features.mask_class,
          .per_batch = features.mask_batch > 1,
          .per_head = features.mask_heads > 1,
          .q_len = length_bucket(features.extent.q_len),
          .kv_len = length_bucket(features.extent.kv_len),
          .full_tiles = step_of(features.full_tiles / planes),
          .part_tiles = step_of(features.part_tiles / planes),
          .longest_tile_row = step_of(features.longest_tile_row),
          .min_keys = step_of(features.min_keys),
          .mean_keys = step_of(static_cast<std::int64_t>(features.mean_keys)),
          .max_keys = step_of(features.max_keys),
          .skeleton = features.mask_class == MaskClass::None ? "true" : skeleton_of(mask)};
}

std::string MaskSignature::text() const {
  return fmt::format(
      "mask 1 {} batch={} heads={} q=2^{} k=2^{} full={} part={} row={} keys={},{},{} {}",
      name(mask_class), per_batch ? "each" : "all", per_head ? "each" : "all", q_len, kv_len,
      full_tiles, part_tiles, longest_tile_row, min_keys, mean_keys, max_keys, skeleton);
}

std::string MaskSignature::digest() const {
  return base::hash(text()).hex();
}

}  // namespace stof::mask
