#include "render/object.hpp"

#include <fmt/format.h>

namespace stof::render {

void Runtime::clear() {
  // All are held until all are empty, so that no chain of them comes down one inside another.
  const auto locked = [](const auto& weak) {
    std::vector<decltype(weak.front().lock())> strong;
    for (const auto& pointer : weak) {
      if (auto held = pointer.lock()) {
        strong.push_back(std::move(held));
      }
    }
    return strong;
  };
  const auto lists = locked(lists_);
  const auto dicts = locked(dicts_);
  const auto objects = locked(objects_);
  Remains remains;
  for (const auto& list : lists) {
    remains.insert(remains.end(), list->items.begin(), list->items.end());
    list->items.clear();
  }
  for (const auto& dict : dicts) {
    dict->clear();
  }
  for (const auto& object : objects) {
    object->release(remains);
  }
  dismantle(std::move(remains));
}

void Runtime::track(const std::shared_ptr<List>& list) {
  if (!list->is_tracked) {
    list->is_tracked = true;
    lists_.emplace_back(list);
  }
}

void Runtime::track(const std::shared_ptr<Dict>& dict) {
  if (!dict->is_tracked) {
    dict->is_tracked = true;
    dicts_.emplace_back(dict);
  }
}

void Runtime::track(const std::shared_ptr<Object>& object) {
  objects_.emplace_back(object);
}

std::string Object::repr() const {
  throw Failure(fmt::format("a {} has no text of its own", type_name()));
}

Value Object::attribute(Runtime&, std::string_view) {
  return {};
}

Value Object::item(Runtime&, const Value&) {
  return {};
}

Value Object::call(Runtime&,
                   Arguments) {  // NOLINT(performance-unnecessary-value-param): others keep them
  throw Failure(fmt::format("'{}' object is not callable", type_name()));
}

}  // namespace stof::render
