#include "mask/extent.hpp"

#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "expr/node.hpp"
#include "mask/node.hpp"
#include "stof/error.hpp"

namespace stof::mask {

namespace {

void check_all_tables(const Mask& mask, const Extent& extent, std::string_view what) {
  if (const auto* predicate = std::get_if<Expr>(&mask.node().form)) {
    check_tables(*predicate, extent, what);
  } else if (const auto* combination = std::get_if<Combination>(&mask.node().form)) {
    for (const Mask& operand : combination->operands) {
      check_all_tables(operand, extent, what);
    }
  }
}

bool is_made_of(const Table& table, std::string_view what) {
  return table.name().starts_with(fmt::format("{}_", what));
}

// What has the wrong size, by what its user wrote.
std::string table_text(const Table& table) {
  if (is_made_of(table, kDocumentTable)) {
    return fmt::format("documents end at {}", table.size());
  }
  if (is_made_of(table, kLengthTable)) {
    return fmt::format("key_padding has {} lengths", table.size());
  }
  return fmt::format("table {} has {} entries", table.name(), table.size());
}

}  // namespace

std::optional<NamedSize> range_of(const Expr& index, const Extent& extent) {
  if (index.node().op != expr::Op::Scalar) {
    return std::nullopt;
  }
  const std::string_view scalar = index.node().name();
  if (scalar == "batch") {
    return NamedSize{.name = "batch", .size = extent.batch};
  }
  if (scalar == "head") {
    return NamedSize{.name = "heads", .size = extent.heads};
  }
  if (scalar == "q_pos") {
    return NamedSize{.name = "q_len", .size = extent.q_len};
  }
  if (scalar == "k_pos") {
    return NamedSize{.name = "kv_len", .size = extent.kv_len};
  }
  return std::nullopt;
}

bool is_too_short(std::int64_t entries, const NamedSize& range) {
  const bool may_share = range.name == "batch" || range.name == "heads";
  return entries < range.size && !(entries == 1 && may_share);
}

// An index beyond a table reads its last entry, which is never meant where a table has an entry for
// each batch element, head or token. Nor are lengths for more batch elements than there are.
void check_tables(const Expr& expression, const Extent& extent, std::string_view what) {
  const expr::Node& node = expression.node();
  if (node.op == expr::Op::Table) {
    const Table& table = node.table();
    const auto range = range_of(node.operands[0], extent);
    if (range && (is_too_short(table.size(), *range) ||
                  (is_made_of(table, kLengthTable) && table.size() > range->size))) {
      throw GraphError(
          fmt::format("{}: {}, but {} is {}", what, table_text(table), range->name, range->size));
    }
  }
  for (const Expr& operand : node.operands) {
    check_tables(operand, extent, what);
  }
}

void check_extent(const Mask& mask, const Extent& extent, std::string_view what) {
  for (const auto& [name, size] :
       {NamedSize{"batch", extent.batch}, NamedSize{"heads", extent.heads},
        NamedSize{"q_len", extent.q_len}, NamedSize{"kv_len", extent.kv_len}}) {
    if (size < 1 || size > kMaxLength) {
      throw GraphError(fmt::format("{}: {} {} is not in 1 to {}", what, name, size, kMaxLength));
    }
  }
  const DataExtent& data = mask.node().data;
  if (data.lengths && *data.lengths != std::pair(extent.q_len, extent.kv_len)) {
    throw GraphError(fmt::format("{}: data of {} queries and {} keys for an attention of {} and {}",
                                 what, data.lengths->first, data.lengths->second, extent.q_len,
                                 extent.kv_len));
  }
  for (const auto& [name, has, wants] : {std::tuple("batch", data.batch, extent.batch),
                                         std::tuple("heads", data.heads, extent.heads)}) {
    if (has != 1 && has != wants) {
      throw GraphError(
          fmt::format("{}: data for {} {}, but {} is {}", what, name, has, name, wants));
    }
  }
  check_all_tables(mask, extent, what);
}

}  // namespace stof::mask
