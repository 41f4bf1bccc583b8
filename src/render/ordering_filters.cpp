#include <algorithm>
#include <array>

#include "render/builtin.hpp"
#include "render/iteration.hpp"
#include "render/operators.hpp"
#include "render/selection.hpp"

// Filters that compare items: sort, dictsort, groupby, min and max.
namespace stof::render {

namespace {

struct Keyed {
  Value key;
  Value item;
};

template <typename Getter>
std::vector<Keyed> with_keys(Runtime& runtime, const Value& sequence, const Getter& getter) {
  std::vector<Keyed> keyed;
  for (Value& item : to_vector(runtime, sequence)) {
    runtime.budget.allocate(sizeof(Keyed));
    Value key = getter(runtime, item);
    keyed.push_back({.key = std::move(key), .item = std::move(item)});
  }
  return keyed;
}

void sort_by_key(Runtime& runtime, std::vector<Keyed>& keyed, bool is_reverse) {
  std::ranges::stable_sort(keyed, [&](const Keyed& left, const Keyed& right) {
    runtime.budget.step();
    return is_reverse ? less(right.key, left.key) : less(left.key, right.key);
  });
}

Value items_of(std::vector<Keyed>& keyed) {
  std::vector<Value> items;
  items.reserve(keyed.size());
  for (Keyed& entry : keyed) {
    items.push_back(std::move(entry.item));
  }
  return make_list(std::move(items));
}

bool ignores_case(const Value& is_case_sensitive) {
  return !truth_argument(is_case_sensitive, false);
}

Value sort(BuiltinCall& call) {
  const AttributesGetter getter(call.args[3], ignores_case(call.args[2]));
  std::vector<Keyed> keyed = with_keys(call.runtime, call.args[0], getter);
  sort_by_key(call.runtime, keyed, truth_argument(call.args[1], false));
  return items_of(keyed);
}

Value dictsort(BuiltinCall& call) {
  const Dict* dict = call.args[0].dict();
  const std::string by = call.args[2].is_missing() ? "key" : text_argument(call.args[2], "by");
  if (by != "key" && by != "value") {
    throw Failure("You can only sort by either \"key\" or \"value\"");
  }
  if (dict == nullptr) {
    require_defined(call.args[0]);
    throw Failure("dictsort wants a mapping");
  }
  const AttributeGetter getter(Value(), ignores_case(call.args[1]));
  std::vector<Keyed> keyed;
  for (const auto& [key, value] : dict->entries()) {
    call.runtime.budget.allocate(4 * sizeof(Value));
    keyed.push_back(
        {.key = getter(call.runtime, by == "key" ? key : value), .item = make_tuple({key, value})});
  }
  sort_by_key(call.runtime, keyed, truth_argument(call.args[3], false));
  return items_of(keyed);
}

constexpr std::array<std::string_view, 2> kGroupFields = {"grouper", "list"};

Value make_group(Value grouper, Value list) {
  std::vector<Value> items = {std::move(grouper), std::move(list)};
  return Value(
      std::shared_ptr<const Tuple>(std::make_shared<Tuple>(std::move(items), kGroupFields)));
}

Value groupby(BuiltinCall& call) {
  const Value otherwise = call.args[2].is_none() ? Value() : call.args[2];
  const bool shows_first = ignores_case(call.args[3]);
  const AttributeGetter getter(call.args[1], shows_first);
  const AttributeGetter exact(call.args[1]);
  std::vector<Keyed> keyed = with_keys(
      call.runtime, call.args[0],
      [&](Runtime& runtime, const Value& item) { return getter(runtime, item, otherwise); });
  sort_by_key(call.runtime, keyed, false);
  std::vector<Value> groups;
  for (std::size_t begin = 0; begin < keyed.size();) {
    std::size_t end = begin + 1;
    while (end < keyed.size() && equals(keyed[begin].key, keyed[end].key)) {
      ++end;
    }
    std::vector<Value> members;
    for (std::size_t i = begin; i < end; ++i) {
      members.push_back(keyed[i].item);
    }
    call.runtime.budget.allocate((members.size() + 4) * sizeof(Value));
    Value grouper = shows_first ? exact(call.runtime, members[0], otherwise) : keyed[begin].key;
    groups.push_back(make_group(std::move(grouper), make_list(std::move(members))));
    begin = end;
  }
  return make_list(std::move(groups));
}

template <bool finds_largest>
Value extreme(BuiltinCall& call) {
  const AttributeGetter getter(call.args[2], ignores_case(call.args[1]));
  const std::shared_ptr<Iterator> items = iterate(call.args[0]);
  Value best = items->next(call.runtime);
  if (best.is_missing()) {
    return make_undefined("No aggregated item, sequence was empty.");
  }
  Value best_key = getter(call.runtime, best);
  for (Value item = items->next(call.runtime); !item.is_missing();
       item = items->next(call.runtime)) {
    Value key = getter(call.runtime, item);
    if (finds_largest ? less(best_key, key) : less(key, best_key)) {
      best = std::move(item);
      best_key = std::move(key);
    }
  }
  return best;
}

constexpr Builtin kOrderingFilters[] = {
    {"dictsort", "value case_sensitive? by? reverse?", dictsort},
    {"groupby", "value attribute default? case_sensitive?", groupby},
    {"max", "value case_sensitive? attribute?", extreme<true>},
    {"min", "value case_sensitive? attribute?", extreme<false>},
    {"sort", "value reverse? case_sensitive? attribute?", sort},
};

}  // namespace

std::span<const Builtin> ordering_filters() {
  return kOrderingFilters;
}

}  // namespace stof::render
