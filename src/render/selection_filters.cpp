#include <algorithm>

#include <fmt/format.h>

#include "render/access.hpp"
#include "render/builtin.hpp"
#include "render/formatting.hpp"
#include "render/iteration.hpp"
#include "render/number_format.hpp"
#include "render/operators.hpp"
#include "render/selection.hpp"
#include "render/text.hpp"

// map, select, reject, selectattr and rejectattr: filters that apply others to each item, lazily.
namespace stof::render {

namespace {

std::vector<Value> path_of(const Value& attribute) {
  if (attribute.is_missing() || attribute.is_none()) {
    return {};
  }
  if (!attribute.is_text()) {
    return {as_real(attribute) ? attribute : Value(Undefined{.message = "no such attribute"})};
  }
  std::vector<Value> path;
  std::string_view rest = attribute.text()->bytes;
  for (bool has_more = true; has_more;) {
    const std::size_t dot = rest.find('.');
    const std::string_view part = rest.substr(0, dot);
    const bool is_number = !part.empty() && std::ranges::all_of(part, is_digit);
    path.push_back(is_number ? Value(parse_integer(part, 10).number) : Value(part));
    has_more = dot != std::string_view::npos;
    rest.remove_prefix(has_more ? dot + 1 : 0);
  }
  return path;
}

// What a lazy filter was called with, as values that its generator holds: the input, the positional
// arguments, then the named ones.
std::vector<Value> held_values(const BuiltinCall& call) {
  std::vector<Value> held = {call.args[0]};
  held.insert(held.end(), call.rest.positional.begin(), call.rest.positional.end());
  for (const auto& [name, value] : call.rest.named) {
    held.push_back(value);
  }
  return held;
}

std::vector<std::string> names_of(const Arguments& arguments) {
  std::vector<std::string> names;
  for (const auto& [name, value] : arguments.named) {
    names.push_back(name);
  }
  return names;
}

// Applies a filter or test to items, with arguments taken from what the generator holds.
struct ItemCall {
  const Builtin* builtin = nullptr;  // none: the item itself
  std::size_t first_argument = 0;    // in the held values
  std::size_t positional = 0;
  std::vector<std::string> names;

  Value operator()(Runtime& runtime, const std::vector<Value>& held, Value item) const {
    if (builtin == nullptr) {
      return item;
    }
    Arguments arguments;
    arguments.positional.push_back(std::move(item));
    for (std::size_t i = 0; i < positional; ++i) {
      arguments.positional.push_back(held[first_argument + i]);
    }
    for (std::size_t i = 0; i < names.size(); ++i) {
      arguments.named.emplace_back(names[i], held[first_argument + positional + i]);
    }
    return call(runtime, *builtin, std::move(arguments));
  }
};

[[noreturn]] void fail_unknown(std::string_view kind, const Value& name) {
  if (const Undefined* undefined = name.undefined()) {
    throw Failure(fmt::format("no {} of that name ({}; did you forget to quote it?)", kind,
                              undefined->message));
  }
  throw Failure(fmt::format("no {} named {}", kind, repr(name)));
}

ItemCall item_call(const std::vector<Value>& held, std::size_t name_index,
                   const std::vector<std::string>& names, bool is_filter) {
  const Value& name = held[name_index];
  const Builtin* builtin = nullptr;
  if (name.is_text()) {
    builtin = is_filter ? find_filter(name.text()->bytes) : find_test(name.text()->bytes);
  }
  if (builtin == nullptr) {
    fail_unknown(is_filter ? "filter" : "test", name);
  }
  return {.builtin = builtin,
          .first_argument = name_index + 1,
          .positional = held.size() - name_index - 1 - names.size(),
          .names = names};
}

// The iterator over held[0], made on first use: a lazy filter fails when it is drawn from.
std::shared_ptr<Iterator> first_iterator(const std::vector<Value>& held) {
  return is_truthy(held[0]) ? iterate(held[0]) : nullptr;
}

// Replaces the input by an iterator over it, so that the generator holds all that it draws on.
Iterator* start(std::vector<Value>& held) {
  std::shared_ptr<Iterator> iterator = first_iterator(held);
  held[0] = iterator == nullptr ? Value() : Value(std::shared_ptr<Object>(std::move(iterator)));
  return held[0].object_as<Iterator>();
}

// The arguments of map(attribute=..., default=...), as positions in the held values; 0 for none.
struct MapAttribute {
  std::size_t attribute = 0;
  std::size_t otherwise = 0;
};

MapAttribute map_attribute(const std::vector<Value>& held, const std::vector<std::string>& names) {
  MapAttribute places;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == "attribute") {
      places.attribute = 1 + i;
    } else if (names[i] == "default") {
      places.otherwise = held[1 + i].is_none() ? 0 : 1 + i;
    } else {
      throw Failure(fmt::format("Unexpected keyword argument '{}'", names[i]));
    }
  }
  return places;
}

Value map(BuiltinCall& call) {
  const bool is_attribute =
      call.rest.positional.empty() && std::ranges::any_of(call.rest.named, [](const auto& named) {
        return named.first == "attribute";
      });
  const bool has_filter = !call.rest.positional.empty();
  auto next = [names = names_of(call.rest), is_attribute, has_filter, is_started = false,
               item_filter = ItemCall(), places = MapAttribute(), getter = AttributeGetter()](
                  Runtime& runtime, std::vector<Value>& held) mutable -> Value {
    if (!is_started) {
      is_started = true;
      if (start(held) == nullptr) {
        return {};
      }
      if (is_attribute) {
        places = map_attribute(held, names);
        getter = AttributeGetter(held[places.attribute]);
      } else if (has_filter) {
        item_filter = item_call(held, 1, names, true);
      } else {
        throw Failure("map requires a filter argument");
      }
    }
    Value item = held[0].object_as<Iterator>()->next(runtime);
    if (item.is_missing()) {
      return item;
    }
    if (!is_attribute) {
      return item_filter(runtime, held, std::move(item));
    }
    return getter(runtime, item, places.otherwise == 0 ? Value() : held[places.otherwise]);
  };
  return make_generator(held_values(call), std::move(next));
}

template <bool keeps, bool by_attribute>
Value select(BuiltinCall& call) {
  const std::size_t positional = call.rest.positional.size();
  auto next = [names = names_of(call.rest), positional, is_started = false, test = ItemCall(),
               getter = AttributeGetter()](Runtime& runtime,
                                           std::vector<Value>& held) mutable -> Value {
    constexpr std::size_t kTestIndex = by_attribute ? 2 : 1;
    if (!is_started) {
      is_started = true;
      if (start(held) == nullptr) {
        return {};
      }
      if (by_attribute && positional == 0) {
        throw Failure("Missing parameter for attribute name");
      }
      getter = AttributeGetter(by_attribute ? held[1] : Value());
      if (positional >= kTestIndex) {
        test = item_call(held, kTestIndex, names, false);
      }
    }
    auto* items = held[0].object_as<Iterator>();
    for (Value item = items->next(runtime); !item.is_missing(); item = items->next(runtime)) {
      if (is_truthy(test(runtime, held, getter(runtime, item))) == keeps) {
        return item;
      }
    }
    return {};
  };
  return make_generator(held_values(call), std::move(next));
}

constexpr Builtin kSelectionFilters[] = {
    {"map", "value / *", map},
    {"reject", "value / *", select<false, false>},
    {"rejectattr", "value / *", select<false, true>},
    {"select", "value / *", select<true, false>},
    {"selectattr", "value / *", select<true, true>},
};

}  // namespace

AttributeGetter::AttributeGetter(const Value& attribute, bool ignores_case)
    : path_(path_of(attribute)), ignores_case_(ignores_case) {}

Value AttributeGetter::operator()(Runtime& runtime, const Value& item,
                                  const Value& otherwise) const {
  Value value = item;
  for (const Value& part : path_) {
    value = part.undefined() == nullptr ? get_item(runtime, value, part) : part;
    if (value.undefined() != nullptr && !otherwise.is_missing()) {
      value = otherwise;
    }
  }
  return ignores_case_ && value.is_text() ? Value(to_lower(value.text()->bytes)) : value;
}

AttributesGetter::AttributesGetter(const Value& attributes, bool ignores_case) {
  if (!attributes.is_text()) {
    getters_.emplace_back(attributes, ignores_case);
    return;
  }
  std::string_view rest = attributes.text()->bytes;
  for (bool has_more = true; has_more;) {
    const std::size_t comma = rest.find(',');
    getters_.emplace_back(Value(rest.substr(0, comma)), ignores_case);
    has_more = comma != std::string_view::npos;
    rest.remove_prefix(has_more ? comma + 1 : 0);
  }
}

Value AttributesGetter::operator()(Runtime& runtime, const Value& item) const {
  std::vector<Value> keys;
  runtime.budget.allocate((getters_.size() + 2) * sizeof(Value));
  for (const AttributeGetter& getter : getters_) {
    keys.push_back(getter(runtime, item));
  }
  return make_list(std::move(keys));
}

std::span<const Builtin> selection_filters() {
  return kSelectionFilters;
}

}  // namespace stof::render
