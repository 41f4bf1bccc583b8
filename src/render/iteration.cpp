#include "render/iteration.hpp"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "render/access.hpp"
#include "render/formatting.hpp"
#include "render/operators.hpp"
#include "render/text.hpp"

namespace stof::render {

namespace {

constexpr int kMaxIteratorDepth = 64;

int depth_over(const std::vector<Value>& held) {
  int depth = 0;
  for (const Value& value : held) {
    const auto* iterator = value.object_as<Iterator>();
    depth = std::max(depth, iterator == nullptr ? 0 : iterator->depth());
  }
  return depth + 1;
}

std::shared_ptr<Iterator> generate(const Value& value, Generator::Next next) {
  return std::make_shared<Generator>(std::vector<Value>{value}, std::move(next));
}

std::shared_ptr<Iterator> iterate_text(const Value& value) {
  return generate(value, [offset = std::size_t{0}](Runtime&, std::vector<Value>& held) mutable {
    const std::string& text = held[0].text()->bytes;
    if (offset >= text.size()) {
      return Value();
    }
    const std::size_t size = decode(text, offset).size;
    Value character(text.substr(offset, size));
    offset += size;
    return character;
  });
}

// A list may grow and shrink on the way, as in Python.
std::shared_ptr<Iterator> iterate_items(const Value& value) {
  return generate(value, [i = std::size_t{0}](Runtime&, std::vector<Value>& held) mutable {
    const List* list = held[0].list();
    const std::vector<Value>& items = list != nullptr ? list->items : held[0].tuple()->items;
    return i < items.size() ? items[i++] : Value();
  });
}

std::shared_ptr<Iterator> iterate_view(const Value& value, std::size_t size) {
  return generate(value, [size, i = std::size_t{0}](Runtime&, std::vector<Value>& held) mutable {
    const auto& view = *held[0].object_as<DictView>();
    if (view.dict()->size() != size) {
      throw Failure("dictionary changed size during iteration");
    }
    return i < size ? view.at(i++) : Value();
  });
}

std::shared_ptr<Iterator> iterate_range(const Range& range) {
  return std::make_shared<Generator>(
      std::vector<Value>(), [start = range.start(), step = range.step(), size = range.size(),
                             i = std::int64_t{0}](Runtime&, std::vector<Value>&) mutable {
        return i < size ? Value(start + step * i++) : Value();
      });
}

std::shared_ptr<Iterator> iterate_object(const std::shared_ptr<Object>& object) {
  if (auto iterator = std::dynamic_pointer_cast<Iterator>(object)) {
    return iterator;
  }
  if (const auto* range = dynamic_cast<const Range*>(object.get())) {
    return iterate_range(*range);
  }
  if (const auto* view = dynamic_cast<const DictView*>(object.get())) {
    return iterate_view(Value(object), view->dict()->size());
  }
  return nullptr;
}

std::shared_ptr<Iterator> try_iterate(const Value& value) {
  const Value::Storage& storage = value.storage();
  if (value.is_text()) {
    return iterate_text(value);
  }
  if (value.list() != nullptr || value.tuple() != nullptr) {
    return iterate_items(value);
  }
  if (const auto* dict = std::get_if<std::shared_ptr<Dict>>(&storage)) {
    return iterate_view(
        Value(std::shared_ptr<Object>(std::make_shared<DictView>(*dict, DictView::Part::Keys))),
        (*dict)->size());
  }
  if (const auto* object = std::get_if<std::shared_ptr<Object>>(&storage)) {
    return iterate_object(*object);
  }
  if (value.undefined() != nullptr) {
    require_defined(value);
    return generate(Value(), [](Runtime&, std::vector<Value>&) { return Value(); });
  }
  return nullptr;
}

}  // namespace

Iterator::Iterator(int depth) : depth_(depth) {
  if (depth > kMaxIteratorDepth) {
    throw Failure(fmt::format("more than {} filters over one sequence", kMaxIteratorDepth));
  }
}

std::string Iterator::repr() const {
  throw Failure("a generator has no text of its own; make it a list with |list or |join");
}

Generator::Generator(std::vector<Value> held, Next next)
    : Iterator(depth_over(held)), held_(std::move(held)), next_(std::move(next)) {}

Value Generator::next(Runtime& runtime) {
  if (is_done_) {
    return {};
  }
  runtime.budget.step();
  Value item = next_(runtime, held_);
  is_done_ = item.is_missing();
  return item;
}

void Generator::release(Remains& remains) {
  remains.insert(remains.end(), std::move_iterator(held_.begin()), std::move_iterator(held_.end()));
  held_.clear();
}

Range::Range(std::int64_t start, std::int64_t stop, std::int64_t step)
    : start_(start), stop_(stop), step_(step) {
  if (step == 0) {
    throw Failure("range() arg 3 must not be zero");
  }
  const bool is_empty = step > 0 ? start >= stop : start <= stop;
  if (is_empty) {
    return;
  }
  const auto distance = step > 0
                            ? static_cast<std::uint64_t>(stop) - static_cast<std::uint64_t>(start)
                            : static_cast<std::uint64_t>(start) - static_cast<std::uint64_t>(stop);
  const auto stride =
      step > 0 ? static_cast<std::uint64_t>(step) : 0 - static_cast<std::uint64_t>(step);
  const std::uint64_t size = (distance - 1) / stride + 1;
  if (size > static_cast<std::uint64_t>(kMaxRangeLength)) {
    throw Failure(fmt::format("range of {} numbers, more than {}", size, kMaxRangeLength));
  }
  size_ = static_cast<std::int64_t>(size);
}

bool Range::equals(const Range& other) const {
  return size_ == other.size_ &&
         (size_ == 0 || (start_ == other.start_ && (size_ == 1 || step_ == other.step_)));
}

std::string Range::repr() const {
  return step_ == 1 ? fmt::format("range({}, {})", start_, stop_)
                    : fmt::format("range({}, {}, {})", start_, stop_, step_);
}

Value Range::attribute(Runtime&, std::string_view name) {
  if (name == "start") {
    return Value(start_);
  }
  if (name == "stop") {
    return Value(stop_);
  }
  return name == "step" ? Value(step_) : Value();
}

Value DictView::at(std::size_t index) const {
  const auto& [key, value] = dict_->entries()[index];
  switch (part_) {
    case Part::Keys:
      return key;
    case Part::Values:
      return value;
    default:
      return make_tuple({key, value});
  }
}

std::string_view DictView::type_name() const {
  switch (part_) {
    case Part::Keys:
      return "dict_keys";
    case Part::Values:
      return "dict_values";
    default:
      return "dict_items";
  }
}

std::string DictView::repr() const {
  std::vector<Value> items;
  for (std::size_t i = 0; i < dict_->size(); ++i) {
    items.push_back(at(i));
  }
  return fmt::format("{}({})", type_name(), render::repr(make_list(std::move(items))));
}

std::shared_ptr<Iterator> iterate(const Value& value) {
  std::shared_ptr<Iterator> iterator = try_iterate(value);
  if (iterator == nullptr) {
    throw Failure(fmt::format("'{}' object is not iterable", type_name(value)));
  }
  return iterator;
}

bool is_iterable(const Value& value) {
  return try_iterate(value) != nullptr;
}

std::shared_ptr<Iterator> iterate_reversed(const Value& value) {
  const auto size = length(value);
  const bool is_lazy = value.object() != nullptr && value.object_as<Range>() == nullptr &&
                       value.object_as<DictView>() == nullptr;
  if (!size || is_lazy) {
    throw Failure(fmt::format("'{}' object is not reversible", type_name(value)));
  }
  return generate(value, [i = *size](Runtime&, std::vector<Value>& held) mutable {
    return i-- > 0 ? item_at(held[0], i) : Value();
  });
}

Value make_generator(std::vector<Value> held, Generator::Next next) {
  return Value(
      std::shared_ptr<Object>(std::make_shared<Generator>(std::move(held), std::move(next))));
}

std::vector<Value> to_vector(Runtime& runtime, const Value& value) {
  std::vector<Value> items;
  const std::shared_ptr<Iterator> iterator = iterate(value);
  for (Value item = iterator->next(runtime); !item.is_missing(); item = iterator->next(runtime)) {
    runtime.budget.allocate(sizeof(Value));
    items.push_back(std::move(item));
  }
  return items;
}

std::optional<std::int64_t> length(const Value& value) {
  if (const Text* text = value.text()) {
    return static_cast<std::int64_t>(count_characters(text->bytes));
  }
  if (const List* list = value.list()) {
    return std::ssize(list->items);
  }
  if (const Tuple* tuple = value.tuple()) {
    return std::ssize(tuple->items);
  }
  if (const Dict* dict = value.dict()) {
    return static_cast<std::int64_t>(dict->size());
  }
  if (const auto* range = value.object_as<Range>()) {
    return range->size();
  }
  if (const auto* view = value.object_as<DictView>()) {
    return static_cast<std::int64_t>(view->dict()->size());
  }
  if (value.undefined() != nullptr) {
    require_defined(value);
    return 0;
  }
  return std::nullopt;
}

std::int64_t require_length(const Value& value) {
  const auto size = length(value);
  if (!size) {
    throw Failure(fmt::format("object of type '{}' has no len()", type_name(value)));
  }
  return *size;
}

}  // namespace stof::render
