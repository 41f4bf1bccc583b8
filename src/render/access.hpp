#pragma once

#include <cstdint>
#include <string_view>

#include "render/object.hpp"

// Attributes, items and slices, as jinja2.Environment looks them up.
namespace stof::render {

// value.name: an attribute (a method of Python's type too), else an item, else undefined.
Value get_attribute(Runtime& runtime, const Value& value, std::string_view name);
// value[key]: an item, else an attribute, else undefined.
Value get_item(Runtime& runtime, const Value& value, const Value& key);
// An attribute alone; no value where there is none.
Value find_attribute(Runtime& runtime, const Value& value, std::string_view name);
// What a value without such an attribute or item gives.
Value missing_attribute(const Value& value, const Value& name);

// The item of a sequence, range or dict (its keys) at a position within it.
Value item_at(const Value& sequence, std::int64_t index);

// value[start:stop:step], each none where it is left out. Throws Failure where Python raises.
Value get_slice(Runtime& runtime, const Value& value, const Value& start, const Value& stop,
                const Value& step);

// The positions that a slice of a sequence of `size` items visits: `count` from start on, before
// stop.
struct SlicePositions {
  std::int64_t start = 0;
  std::int64_t stop = 0;
  std::int64_t step = 1;
  std::int64_t count = 0;
};
SlicePositions slice_positions(const Value& start, const Value& stop, const Value& step,
                               std::int64_t size);

}  // namespace stof::render
