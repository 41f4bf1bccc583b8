#include "render/value.hpp"

#include <iterator>

#include "render/object.hpp"

namespace stof::render {

Value::Value(Undefined undefined)
    : storage_(std::make_shared<const Undefined>(std::move(undefined))) {}

Value::Value(Text text) : storage_(std::make_shared<const Text>(std::move(text))) {}

Value make_list(std::vector<Value> items) {
  return Value(std::make_shared<List>(std::move(items)));
}

Value make_tuple(std::vector<Value> items) {
  return Value(std::shared_ptr<const Tuple>(std::make_shared<Tuple>(std::move(items))));
}

Value make_undefined(std::string message) {
  return Value(Undefined{.message = std::move(message)});
}

const Value* Dict::find(const Value& key) const {
  if (entries_.empty()) {
    ValueHash()(key);  // an empty map does not ask for it, but a key without a hash is an error
    return nullptr;
  }
  const auto found = index_.find(key);
  return found == index_.end() ? nullptr : &entries_[found->second].second;
}

void Dict::set(Value key, Value value) {
  const auto [found, is_new] = index_.try_emplace(key, entries_.size());
  if (is_new) {
    entries_.emplace_back(std::move(key), std::move(value));
  } else {
    entries_[found->second].second = std::move(value);
  }
}

bool Dict::erase(const Value& key) {
  const auto found = index_.find(key);
  if (found == index_.end()) {
    return false;
  }
  const std::size_t position = found->second;
  index_.erase(found);
  entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(position));
  for (auto& [other, place] : index_) {
    place -= place > position ? 1 : 0;
  }
  return true;
}

void Dict::clear() {
  index_.clear();
  Remains remains;
  for (auto& [key, value] : entries_) {
    remains.push_back(std::move(key));
    remains.push_back(std::move(value));
  }
  entries_.clear();
  dismantle(std::move(remains));
}

namespace {

void move_into(std::vector<Value>& items, Remains& remains) {
  remains.insert(remains.end(), std::move_iterator(items.begin()), std::move_iterator(items.end()));
  items.clear();
}

template <typename Pointer>
Pointer* last_owner(Value& value) {
  auto* pointer = std::get_if<Pointer>(&value.storage());
  return pointer != nullptr && pointer->use_count() == 1 ? pointer : nullptr;
}

// Takes what a container or object holds when the value is its last owner.
void release(Value& value, Remains& remains) {
  if (auto* list = last_owner<std::shared_ptr<List>>(value)) {
    move_into((*list)->items, remains);
  } else if (auto* tuple = last_owner<std::shared_ptr<const Tuple>>(value)) {
    // The tuple dies here with its last owner, so that nobody sees it empty; none is made const.
    move_into(const_cast<Tuple&>(**tuple).items, remains);
  } else if (auto* dict = last_owner<std::shared_ptr<Dict>>(value)) {
    for (const auto& [key, item] : (*dict)->entries()) {
      remains.push_back(key);
      remains.push_back(item);
    }
  } else if (auto* object = last_owner<std::shared_ptr<Object>>(value)) {
    (*object)->release(remains);
  }
}

}  // namespace

void dismantle(Remains remains) noexcept {
  while (!remains.empty()) {
    Value last = std::move(remains.back());
    remains.pop_back();
    release(last, remains);
  }
}

List::~List() {
  dismantle(std::move(items));
}

Tuple::~Tuple() {
  dismantle(std::move(items));
}

Dict::~Dict() {
  clear();
}

}  // namespace stof::render
