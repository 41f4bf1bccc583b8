#include "render/access.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "render/formatting.hpp"
#include "render/iteration.hpp"
#include "render/methods.hpp"
#include "render/operators.hpp"
#include "render/text.hpp"

namespace stof::render {

namespace {

bool is_sequence(const Value& value) {
  return value.is_text() || value.list() != nullptr || value.tuple() != nullptr ||
         value.object_as<Range>() != nullptr;
}

Value sequence_item(const Value& sequence, std::int64_t index) {
  const std::int64_t size = require_length(sequence);
  if (index < 0) {
    index += size;
  }
  return index >= 0 && index < size ? item_at(sequence, index) : Value();
}

// value[key] where Python finds one; no value where it raises a lookup or type error.
Value find_item(Runtime& runtime, const Value& value, const Value& key) {
  if (const Dict* dict = value.dict()) {
    if (key.list() != nullptr || key.dict() != nullptr) {
      return {};
    }
    const Value* found = dict->find(key);
    return found == nullptr ? Value() : *found;
  }
  if (const auto index = as_integer(key); index && is_sequence(value)) {
    return sequence_item(value, *index);
  }
  return value.object() != nullptr ? value.object()->item(runtime, key) : Value();
}

Value tuple_field(const Tuple& tuple, std::string_view name) {
  for (std::size_t i = 0; i < tuple.field_names.size(); ++i) {
    if (tuple.field_names[i] == name) {
      return tuple.items[i];
    }
  }
  return {};
}

std::int64_t slice_index(const Value& value, std::int64_t size, std::int64_t low,
                         std::int64_t high) {
  const auto index = as_integer(value);
  if (!index) {
    require_defined(value);
    throw Failure("slice indices must be integers or none");
  }
  const std::int64_t position = *index < 0 ? *index + size : *index;
  return std::clamp(position, low, high);
}

template <typename Items>
std::vector<Value> pick(const Items& items, const SlicePositions& positions) {
  std::vector<Value> picked;
  picked.reserve(static_cast<std::size_t>(positions.count));
  for (std::int64_t i = 0; i < positions.count; ++i) {
    picked.push_back(items[static_cast<std::size_t>(positions.start + i * positions.step)]);
  }
  return picked;
}

std::string pick_text(std::string_view text, const SlicePositions& positions) {
  const std::vector<std::string_view> characters = split_characters(text);
  std::string picked;
  for (std::int64_t i = 0; i < positions.count; ++i) {
    picked += characters[static_cast<std::size_t>(positions.start + i * positions.step)];
  }
  return picked;
}

// base + count * step
std::int64_t advanced(std::int64_t base, std::int64_t count, std::int64_t step) {
  std::int64_t distance = 0;
  std::int64_t end = 0;
  if (__builtin_mul_overflow(count, step, &distance) ||
      __builtin_add_overflow(base, distance, &end)) {
    throw Failure("slice of a range: the result is beyond 64-bit integers");
  }
  return end;
}

Value slice_range(const Range& range, const SlicePositions& positions) {
  return Value(std::shared_ptr<Object>(
      std::make_shared<Range>(advanced(range.start(), positions.start, range.step()),
                              advanced(range.start(), positions.stop, range.step()),
                              advanced(0, positions.step, range.step()))));
}

}  // namespace

Value find_attribute(Runtime& runtime, const Value& value, std::string_view name) {
  if (const Undefined* undefined = value.undefined()) {
    fail_undefined(*undefined);
  }
  if (name.starts_with("__")) {
    throw Failure(fmt::format("attribute '{}': names that start with __ are not supported", name));
  }
  if (const Tuple* tuple = value.tuple()) {
    if (Value field = tuple_field(*tuple, name); !field.is_missing()) {
      return field;
    }
  }
  if (Object* object = value.object()) {
    return object->attribute(runtime, name);
  }
  return find_method(value, name);
}

Value missing_attribute(const Value& value, const Value& name) {
  const std::string type(type_name(value));
  return make_undefined(name.is_text()
                            ? fmt::format("'{} object' has no attribute {}", type, repr(name))
                            : fmt::format("{} object has no element {}", type, repr(name)));
}

Value get_attribute(Runtime& runtime, const Value& value, std::string_view name) {
  Value found = find_attribute(runtime, value, name);
  if (found.is_missing()) {
    found = find_item(runtime, value, Value(name));
  }
  return found.is_missing() ? missing_attribute(value, Value(name)) : found;
}

Value get_item(Runtime& runtime, const Value& value, const Value& key) {
  if (const Undefined* undefined = value.undefined()) {
    fail_undefined(*undefined);
  }
  runtime.budget.step(scan_steps(value.is_text() ? value : key));
  Value found = find_item(runtime, value, key);
  if (found.is_missing() && key.is_text()) {
    found = find_attribute(runtime, value, key.text()->bytes);
  }
  return found.is_missing() ? missing_attribute(value, key) : found;
}

Value item_at(const Value& sequence, std::int64_t index) {
  const auto position = static_cast<std::size_t>(index);
  if (const Text* text = sequence.text()) {
    const std::size_t offset = byte_offset(text->bytes, position);
    return Value(text->bytes.substr(offset, decode(text->bytes, offset).size));
  }
  if (const List* list = sequence.list()) {
    // A list may have shrunk since its length was taken.
    return position < list->items.size() ? list->items[position] : Value();
  }
  if (const Tuple* tuple = sequence.tuple()) {
    return tuple->items[position];
  }
  if (const Dict* dict = sequence.dict()) {
    return position < dict->size() ? dict->entries()[position].first : Value();
  }
  if (const auto* view = sequence.object_as<DictView>()) {
    return position < view->dict()->size() ? view->at(position) : Value();
  }
  const auto* range = sequence.object_as<Range>();
  return range == nullptr ? Value() : Value(range->at(index));
}

SlicePositions slice_positions(const Value& start, const Value& stop, const Value& step,
                               std::int64_t size) {
  std::int64_t stride = 1;
  if (!step.is_none()) {
    const auto integer = as_integer(step);
    if (!integer) {
      require_defined(step);
      throw Failure("slice indices must be integers or none");
    }
    // A longer stride than any sequence visits the same items.
    stride = std::clamp<std::int64_t>(*integer, std::numeric_limits<std::int32_t>::min(),
                                      std::numeric_limits<std::int32_t>::max());
  }
  if (stride == 0) {
    throw Failure("slice step cannot be zero");
  }
  const std::int64_t low = stride > 0 ? 0 : -1;
  const std::int64_t high = stride > 0 ? size : size - 1;
  const std::int64_t first =
      start.is_none() ? (stride > 0 ? low : high) : slice_index(start, size, low, high);
  const std::int64_t last =
      stop.is_none() ? (stride > 0 ? high : low) : slice_index(stop, size, low, high);
  const std::int64_t distance = stride > 0 ? last - first : first - last;
  const std::int64_t magnitude = stride > 0 ? stride : -stride;
  return {.start = first,
          .stop = last,
          .step = stride,
          .count = distance > 0 ? (distance - 1) / magnitude + 1 : 0};
}

Value get_slice(Runtime& runtime, const Value& value, const Value& start, const Value& stop,
                const Value& step) {
  if (const Undefined* undefined = value.undefined()) {
    fail_undefined(*undefined);
  }
  if (!is_sequence(value)) {
    throw Failure(fmt::format("'{}' object has no slices", type_name(value)));
  }
  const SlicePositions positions = slice_positions(start, stop, step, require_length(value));
  runtime.budget.step(static_cast<std::uint64_t>(positions.count));
  if (const Text* text = value.text()) {
    runtime.budget.allocate(text->bytes.size());
    return Value(pick_text(text->bytes, positions));
  }
  runtime.budget.allocate(static_cast<std::size_t>(positions.count) * sizeof(Value));
  if (const List* list = value.list()) {
    return make_list(pick(list->items, positions));
  }
  if (const Tuple* tuple = value.tuple()) {
    return make_tuple(pick(tuple->items, positions));
  }
  return slice_range(*value.object_as<Range>(), positions);
}

}  // namespace stof::render
