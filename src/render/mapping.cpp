#include "render/mapping.hpp"

#include <fmt/format.h>

#include "render/formatting.hpp"
#include "render/iteration.hpp"

namespace stof::render {

namespace {

void add_pairs(Runtime& runtime, Dict& dict, const Value& pairs) {
  const std::shared_ptr<Iterator> iterator = iterate(pairs);
  std::size_t index = 0;
  for (Value pair = iterator->next(runtime); !pair.is_missing(); pair = iterator->next(runtime)) {
    std::vector<Value> items = to_vector(runtime, pair);
    if (items.size() != 2) {
      throw Failure(
          fmt::format("dictionary update sequence element #{} has length {}; 2 is required", index,
                      items.size()));
    }
    dict.set(std::move(items[0]), std::move(items[1]));
    ++index;
  }
}

}  // namespace

std::shared_ptr<Dict> make_dict(Runtime& runtime, const Value& source,
                                const std::vector<std::pair<std::string, Value>>& named) {
  auto dict = std::make_shared<Dict>();
  if (const Dict* other = source.dict()) {
    runtime.budget.step(other->size());
    runtime.budget.allocate(other->size() * 4 * sizeof(Value));
    for (const auto& [key, value] : other->entries()) {
      dict->set(key, value);
    }
  } else if (!source.is_missing()) {
    add_pairs(runtime, *dict, source);
  }
  for (const auto& [key, value] : named) {
    dict->set(key, value);
  }
  runtime.budget.allocate((1 + named.size()) * 4 * sizeof(Value));
  return dict;
}

void Namespace::set(Runtime& runtime, std::string_view name, Value value) {
  runtime.track(attributes_);
  runtime.budget.allocate(sizeof(Value));
  attributes_->set(name, std::move(value));
}

std::string Namespace::repr() const {
  return fmt::format("<Namespace {}>", render::repr(Value(attributes_)));
}

Value Namespace::attribute(Runtime&, std::string_view name) {
  const Value* found = attributes_->find(name);
  return found == nullptr ? Value() : *found;
}

}  // namespace stof::render
