#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "render/access.hpp"
#include "render/builtin.hpp"
#include "render/iteration.hpp"
#include "render/operators.hpp"
#include "render/selection.hpp"
#include "render/text.hpp"

// Filters over sequences: args[0] is the sequence.
namespace stof::render {

namespace {

Value length_filter(BuiltinCall& call) {
  return Value(require_length(call.args[0]));
}

Value list(BuiltinCall& call) {
  return make_list(to_vector(call.runtime, call.args[0]));
}

Value first(BuiltinCall& call) {
  Value item = iterate(call.args[0])->next(call.runtime);
  return item.is_missing() ? make_undefined("No first item, sequence was empty.") : item;
}

Value last(BuiltinCall& call) {
  Value item = iterate_reversed(call.args[0])->next(call.runtime);
  return item.is_missing() ? make_undefined("No last item, sequence was empty.") : item;
}

Value reverse(BuiltinCall& call) {
  const Value& value = call.args[0];
  if (const Text* text = value.text()) {
    std::string reversed;
    const std::vector<std::string_view> characters = split_characters(text->bytes);
    std::for_each(characters.rbegin(), characters.rend(),
                  [&reversed](std::string_view character) { reversed += character; });
    call.runtime.budget.allocate(reversed.size());
    return Value(std::move(reversed));
  }
  if (length(value)) {
    return Value(std::shared_ptr<Object>(iterate_reversed(value)));
  }
  std::vector<Value> items = to_vector(call.runtime, value);
  std::ranges::reverse(items);
  return make_list(std::move(items));
}

Value default_filter(BuiltinCall& call) {
  const bool replaces_false = truth_argument(call.args[2], false);
  const bool is_replaced =
      call.args[0].undefined() != nullptr || (replaces_false && !is_truthy(call.args[0]));
  if (!is_replaced) {
    return call.args[0];
  }
  return call.args[1].is_missing() ? Value("") : call.args[1];
}

// Gives lists of as many items as held[1] says; the last is filled up with held[2], if that is
// there. Items that wait for the next list are held behind.
Value next_batch(Runtime& runtime, std::vector<Value>& held) {
  constexpr std::ptrdiff_t kFirst = 3;
  auto* items = held[0].object_as<Iterator>();
  const auto take = [&held] {
    std::vector<Value> batch(std::move_iterator(held.begin() + kFirst),
                             std::move_iterator(held.end()));
    held.resize(kFirst);
    return batch;
  };
  for (Value item = items->next(runtime); !item.is_missing(); item = items->next(runtime)) {
    runtime.budget.allocate(sizeof(Value));
    const bool is_full = equals(Value(held.size() - kFirst), held[1]);
    Value full = is_full ? make_list(take()) : Value();
    held.push_back(std::move(item));
    if (is_full) {
      return full;
    }
  }
  std::vector<Value> batch = take();
  if (batch.empty()) {
    return {};
  }
  if (!held[2].is_missing()) {
    const std::int64_t missing =
        std::max<std::int64_t>(integer_argument(held[1], "linecount") - std::ssize(batch), 0);
    runtime.budget.allocate(static_cast<std::size_t>(missing) * sizeof(Value));
    batch.insert(batch.end(), static_cast<std::size_t>(missing), held[2]);
  }
  return make_list(std::move(batch));
}

Value batch(BuiltinCall& call) {
  const Value fill = call.args[2].is_none() ? Value() : call.args[2];
  auto next = [is_started = false](Runtime& runtime, std::vector<Value>& held) mutable {
    if (!is_started) {
      is_started = true;
      held[0] = Value(std::shared_ptr<Object>(iterate(held[0])));
    }
    return next_batch(runtime, held);
  };
  return make_generator({call.args[0], call.args[1], fill}, std::move(next));
}

struct Slices {
  std::int64_t count = 0;
  std::int64_t size = 0;
  std::int64_t larger = 0;  // how many of them hold one item more
  std::int64_t next = 0;
};

// Gives `count` lists of sizes as equal as can be, the larger ones first.
Value slice(BuiltinCall& call) {
  const Value fill = call.args[2].is_none() ? Value() : call.args[2];
  auto next = [is_started = false, slices = Slices()](Runtime& runtime,
                                                      std::vector<Value>& held) mutable -> Value {
    if (!is_started) {
      is_started = true;
      held[0] = make_list(to_vector(runtime, held[0]));
      slices.count = integer_argument(held[1], "slices");
      if (slices.count == 0) {
        throw Failure("division by zero");
      }
      const std::int64_t total = std::ssize(held[0].list()->items);
      slices.size = total / slices.count;
      slices.larger = total % slices.count;
    }
    if (slices.next >= slices.count) {
      return {};
    }
    const std::int64_t number = slices.next++;
    const auto& items = held[0].list()->items;
    const auto begin = items.begin() + number * slices.size + std::min(number, slices.larger);
    std::vector<Value> part(begin, begin + slices.size + (number < slices.larger ? 1 : 0));
    if (!held[2].is_missing() && number >= slices.larger) {
      part.push_back(held[2]);
    }
    runtime.budget.allocate((part.size() + 2) * sizeof(Value));
    return make_list(std::move(part));
  };
  return make_generator({call.args[0], call.args[1], fill}, std::move(next));
}

Value items(BuiltinCall& call) {
  auto next = [is_started = false](Runtime& runtime, std::vector<Value>& held) mutable -> Value {
    if (!is_started) {
      is_started = true;
      if (held[0].undefined() != nullptr) {
        return {};
      }
      if (held[0].dict() == nullptr) {
        throw Failure("Can only get item pairs from a mapping.");
      }
      const auto& dict = std::get<std::shared_ptr<Dict>>(held[0].storage());
      const Value view(
          std::shared_ptr<Object>(std::make_shared<DictView>(dict, DictView::Part::Items)));
      held[0] = Value(std::shared_ptr<Object>(iterate(view)));
    }
    return held[0].object_as<Iterator>()->next(runtime);
  };
  return make_generator({call.args[0]}, std::move(next));
}

Value unique(BuiltinCall& call) {
  const AttributeGetter getter(call.args[2], !truth_argument(call.args[1], false));
  auto next = [getter, is_started = false](Runtime& runtime,
                                           std::vector<Value>& held) mutable -> Value {
    if (!is_started) {
      is_started = true;
      held[0] = Value(std::shared_ptr<Object>(iterate(held[0])));
    }
    auto* items = held[0].object_as<Iterator>();
    Dict& seen = *held[1].dict();
    for (Value item = items->next(runtime); !item.is_missing(); item = items->next(runtime)) {
      Value key = getter(runtime, item);
      if (seen.find(key) == nullptr) {
        runtime.budget.allocate(4 * sizeof(Value));
        seen.set(std::move(key), Value(None{}));
        return item;
      }
    }
    return {};
  };
  return make_generator({call.args[0], Value(std::make_shared<Dict>())}, std::move(next));
}

constexpr Builtin kSequenceFilters[] = {
    {"attr", "obj name",
     [](BuiltinCall& call) {
       const std::string& name = text_argument(call.args[1], "name");
       Value found = find_attribute(call.runtime, call.args[0], name);
       return found.is_missing() ? missing_attribute(call.args[0], call.args[1]) : found;
     }},
    {"batch", "value linecount fill_with?", batch},
    {"count", "value /", length_filter},
    {"d", "value default_value? boolean?", default_filter},
    {"default", "value default_value? boolean?", default_filter},
    {"first", "seq", first},
    {"items", "value", items},
    {"last", "seq", last},
    {"length", "value /", length_filter},
    {"list", "value", list},
    {"reverse", "value", reverse},
    {"slice", "value slices fill_with?", slice},
    {"unique", "value case_sensitive? attribute?", unique},
};

}  // namespace

std::span<const Builtin> sequence_filters() {
  return kSequenceFilters;
}

}  // namespace stof::render
