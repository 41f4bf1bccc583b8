#include "expr/names.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "expr/node.hpp"
#include "expr/table.hpp"
#include "stof/error.hpp"

namespace stof::expr {

namespace {

template <typename T>
void check_same(const std::map<std::string, T, std::less<>>& known, const std::string& name,
                const T& value, std::string_view kind) {
  const auto found = known.find(name);
  if (found != known.end() && !same_data(found->second, value)) {
    throw ExpressionError(0, fmt::format("expression: two different {}s are named {}", kind, name));
  }
}

void check_absent(bool is_known, const std::string& name, std::string_view kind,
                  std::string_view other) {
  if (is_known) {
    throw ExpressionError(
        0, fmt::format("expression: {} names both a {} and a {}", name, kind, other));
  }
}

// Throws unless every name of `more` may join `names`.
void check_compatible(const ExprNames& names, const ExprNames& more) {
  for (const auto& [name, type] : more.scalars) {
    check_same(names.scalars, name, type, "scalar");
    check_absent(names.tables.contains(name), name, "scalar", "table");
    check_absent(names.captures.contains(name), name, "scalar", "capture");
  }
  for (const auto& [name, table] : more.tables) {
    check_same(names.tables, name, table, "table");
    check_absent(names.scalars.contains(name), name, "scalar", "table");
    check_absent(names.captures.contains(name), name, "table", "capture");
  }
  for (const auto& [name, capture] : more.captures) {
    check_same(names.captures, name, capture, "capture");
    check_absent(names.scalars.contains(name), name, "scalar", "capture");
    check_absent(names.tables.contains(name), name, "table", "capture");
  }
}

template <typename T>
bool holds(const std::map<std::string, T, std::less<>>& all,
           const std::map<std::string, T, std::less<>>& part) {
  return std::ranges::all_of(part, [&](const auto& entry) { return all.contains(entry.first); });
}

bool holds(const ExprNames& all, const ExprNames& part) {
  return holds(all.scalars, part.scalars) && holds(all.tables, part.tables) &&
         holds(all.captures, part.captures);
}

SharedNames merge(const SharedNames& a, const SharedNames& b) {
  if (a == b || !b) {
    return a;
  }
  if (!a) {
    return b;
  }
  check_compatible(*a, *b);
  if (holds(*a, *b)) {
    return a;
  }
  if (holds(*b, *a)) {
    return b;
  }
  auto all = std::make_shared<ExprNames>(*a);
  all->scalars.insert(b->scalars.begin(), b->scalars.end());
  all->tables.insert(b->tables.begin(), b->tables.end());
  all->captures.insert(b->captures.begin(), b->captures.end());
  return all;
}

}  // namespace

bool same_data(const Table& a, const Table& b) {
  return &a.data() == &b.data() ||
         (a.type() == b.type() && a.size() == b.size() && a.data().digest == b.data().digest);
}

bool same_data(const Capture& a, const Capture& b) {
  return a.dtype() == b.dtype() && a.rank() == b.rank();
}

SharedNames merge_names(std::span<const Expr> operands) {
  SharedNames names;
  for (const Expr& operand : operands) {
    names = merge(names, operand.node().names);
  }
  return names;
}

SharedNames with_name(const SharedNames& names, const Table& table) {
  auto own = std::make_shared<ExprNames>();
  own->tables.emplace(table.name(), table);
  return merge(names, own);
}

SharedNames with_name(const SharedNames& names, const Capture& capture) {
  auto own = std::make_shared<ExprNames>();
  own->captures.emplace(capture.name(), capture);
  return merge(names, own);
}

SharedNames with_name(const std::string& scalar, ScalarType type) {
  auto own = std::make_shared<ExprNames>();
  own->scalars.emplace(scalar, type);
  return own;
}

}  // namespace stof::expr
