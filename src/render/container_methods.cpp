#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "render/access.hpp"
#include "render/formatting.hpp"
#include "render/iteration.hpp"
#include "render/mapping.hpp"
#include "render/methods.hpp"
#include "render/operators.hpp"

// The methods of lists, tuples, dicts and floats: args[0] is the value itself.
namespace stof::render {

namespace {

// The list of a call that is about to change it.
List& changing_list(BuiltinCall& call, std::size_t added_items = 0) {
  call.runtime.budget.allocate(added_items * sizeof(Value));
  call.runtime.track(std::get<std::shared_ptr<List>>(call.args[0].storage()));
  return *call.args[0].list();
}

Dict& changing_dict(BuiltinCall& call) {
  call.runtime.budget.allocate(4 * sizeof(Value));
  call.runtime.track(std::get<std::shared_ptr<Dict>>(call.args[0].storage()));
  return *call.args[0].dict();
}

const std::vector<Value>& items(const BuiltinCall& call) {
  return call.args[0].list() != nullptr ? call.args[0].list()->items : call.args[0].tuple()->items;
}

Value append(BuiltinCall& call) {
  changing_list(call, 1).items.push_back(call.args[1]);
  return Value(None{});
}

Value extend(BuiltinCall& call) {
  std::vector<Value> added = to_vector(call.runtime, call.args[1]);
  std::vector<Value>& target = changing_list(call).items;
  target.insert(target.end(), added.begin(), added.end());
  return Value(None{});
}

Value insert(BuiltinCall& call) {
  std::vector<Value>& target = changing_list(call, 1).items;
  call.runtime.budget.step(target.size());
  const std::int64_t size = std::ssize(target);
  std::int64_t index = integer_argument(call.args[1], "index");
  index = std::clamp<std::int64_t>(index < 0 ? index + size : index, 0, size);
  target.insert(target.begin() + index, call.args[2]);
  return Value(None{});
}

Value pop(BuiltinCall& call) {
  std::vector<Value>& target = changing_list(call).items;
  if (target.empty()) {
    throw Failure("pop from empty list");
  }
  const std::int64_t size = std::ssize(target);
  std::int64_t index = integer_argument(call.args[1], "index", -1);
  index += index < 0 ? size : 0;
  if (index < 0 || index >= size) {
    throw Failure("pop index out of range");
  }
  Value item = std::move(target[static_cast<std::size_t>(index)]);
  target.erase(target.begin() + index);
  return item;
}

std::ptrdiff_t position_of(Runtime& runtime, const std::vector<Value>& all, const Value& wanted,
                           std::int64_t start, std::int64_t stop) {
  for (std::int64_t i = start; i < stop; ++i) {
    runtime.budget.step();
    const Value& item = all[static_cast<std::size_t>(i)];
    if (is_identical(item, wanted) || equals(item, wanted)) {
      return i;
    }
  }
  return -1;
}

Value index(BuiltinCall& call) {
  const std::int64_t size = std::ssize(items(call));
  const auto bound = [size](const Value& value, std::int64_t otherwise) {
    const std::int64_t position = integer_argument(value, "index", otherwise);
    return std::clamp<std::int64_t>(position < 0 ? position + size : position, 0, size);
  };
  const std::ptrdiff_t found = position_of(call.runtime, items(call), call.args[1],
                                           bound(call.args[2], 0), bound(call.args[3], size));
  if (found < 0) {
    throw Failure(fmt::format("{} is not in {}", repr(call.args[1]), type_name(call.args[0])));
  }
  return Value(found);
}

Value remove(BuiltinCall& call) {
  const std::ptrdiff_t found =
      position_of(call.runtime, items(call), call.args[1], 0, std::ssize(items(call)));
  if (found < 0) {
    throw Failure("list.remove(x): x not in list");
  }
  std::vector<Value>& target = changing_list(call).items;
  target.erase(target.begin() + found);
  return Value(None{});
}

Value count(BuiltinCall& call) {
  call.runtime.budget.step(items(call).size());
  return Value(std::ranges::count_if(items(call), [&](const Value& item) {
    return is_identical(item, call.args[1]) || equals(item, call.args[1]);
  }));
}

Value clear_list(BuiltinCall& call) {
  changing_list(call).items.clear();
  return Value(None{});
}

Value copy_list(BuiltinCall& call) {
  call.runtime.budget.allocate(items(call).size() * sizeof(Value));
  return make_list(items(call));
}

Value reverse(BuiltinCall& call) {
  std::ranges::reverse(changing_list(call).items);
  return Value(None{});
}

template <DictView::Part part>
Value view(BuiltinCall& call) {
  return Value(std::shared_ptr<Object>(
      std::make_shared<DictView>(std::get<std::shared_ptr<Dict>>(call.args[0].storage()), part)));
}

Value get(BuiltinCall& call) {
  const Value* found = call.args[0].dict()->find(call.args[1]);
  if (found != nullptr) {
    return *found;
  }
  return call.args[2].is_missing() ? Value(None{}) : call.args[2];
}

Value update(BuiltinCall& call) {
  const std::shared_ptr<Dict> added = make_dict(call.runtime, call.args[1], call.rest.named);
  Dict& target = changing_dict(call);
  for (const auto& [key, value] : added->entries()) {
    target.set(key, value);
  }
  return Value(None{});
}

Value setdefault(BuiltinCall& call) {
  const Value* found = call.args[0].dict()->find(call.args[1]);
  if (found != nullptr) {
    return *found;
  }
  Value value = call.args[2].is_missing() ? Value(None{}) : call.args[2];
  changing_dict(call).set(call.args[1], value);
  return value;
}

Value pop_key(BuiltinCall& call) {
  const Value* found = call.args[0].dict()->find(call.args[1]);
  if (found == nullptr && call.args[2].is_missing()) {
    throw Failure(fmt::format("no key {} to pop", repr(call.args[1])));
  }
  Value value = found == nullptr ? call.args[2] : *found;
  call.runtime.budget.step(call.args[0].dict()->size());
  changing_dict(call).erase(call.args[1]);
  return value;
}

Value popitem(BuiltinCall& call) {
  Dict& dict = changing_dict(call);
  if (dict.size() == 0) {
    throw Failure("popitem(): dictionary is empty");
  }
  call.runtime.budget.step(dict.size());
  const auto [key, value] = dict.entries().back();
  dict.erase(key);
  return make_tuple({key, value});
}

Value clear_dict(BuiltinCall& call) {
  changing_dict(call).clear();
  return Value(None{});
}

Value copy_dict(BuiltinCall& call) {
  return Value(make_dict(call.runtime, call.args[0], {}));
}

Value is_integer(BuiltinCall& call) {
  const double number = *call.args[0].real();
  return Value(std::isfinite(number) && number == std::floor(number));
}

constexpr Builtin kListMethods[] = {
    {"append", "self object /", append},
    {"clear", "self /", clear_list},
    {"copy", "self /", copy_list},
    {"count", "self value /", count},
    {"extend", "self iterable /", extend},
    {"index", "self value start? stop? /", index},
    {"insert", "self index object /", insert},
    {"pop", "self index? /", pop},
    {"remove", "self value /", remove},
    {"reverse", "self /", reverse},
};

constexpr Builtin kTupleMethods[] = {
    {"count", "self value /", count},
    {"index", "self value start? stop? /", index},
};

constexpr Builtin kDictMethods[] = {
    {"clear", "self /", clear_dict},
    {"copy", "self /", copy_dict},
    {"get", "self key default? /", get},
    {"items", "self /", view<DictView::Part::Items>},
    {"keys", "self /", view<DictView::Part::Keys>},
    {"pop", "self key default? /", pop_key},
    {"popitem", "self /", popitem},
    {"setdefault", "self key default? /", setdefault},
    {"update", "self other? / **", update},
    {"values", "self /", view<DictView::Part::Values>},
};

constexpr Builtin kRealMethods[] = {{"is_integer", "self /", is_integer}};

}  // namespace

std::span<const Builtin> list_methods() {
  return kListMethods;
}

std::span<const Builtin> tuple_methods() {
  return kTupleMethods;
}

std::span<const Builtin> dict_methods() {
  return kDictMethods;
}

std::span<const Builtin> real_methods() {
  return kRealMethods;
}

}  // namespace stof::render
