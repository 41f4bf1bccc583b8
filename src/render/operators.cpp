#include "render/operators.hpp"

#include <cmath>
#include <functional>

#include <fmt/format.h>

#include "render/iteration.hpp"
#include "render/text.hpp"

namespace stof::render {

namespace {

template <typename... Functions>
struct Overload : Functions... {
  using Functions::operator()...;
};
template <typename... Functions>
Overload(Functions...) -> Overload<Functions...>;

// Guards a walk over values within values.
class Walk {
 public:
  class Level {
   public:
    explicit Level(Walk& walk) : walk_(walk) {
      if (++walk_.depth_ > kMaxValueDepth) {
        throw Failure(fmt::format("values nested deeper than {} levels", kMaxValueDepth));
      }
    }
    ~Level() { --walk_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    Walk& walk_;
  };

  void visit() {
    if (++visited_ > kMaxWalk) {
      throw Failure(fmt::format("a comparison of more than {} values", kMaxWalk));
    }
  }

 private:
  int depth_ = 0;
  std::size_t visited_ = 0;
};

// -1, 0 or 1; 2 where one is not a number.
int compare_mixed(std::int64_t integer, double real) {
  if (std::isnan(real)) {
    return 2;
  }
  if (real >= 0x1p63) {
    return -1;
  }
  if (real < -0x1p63) {
    return 1;
  }
  const double whole = std::floor(real);
  const auto floor = static_cast<std::int64_t>(whole);
  if (integer != floor) {
    return integer < floor ? -1 : 1;
  }
  return real > whole ? -1 : 0;
}

int compare_reals(double left, double right) {
  if (std::isnan(left) || std::isnan(right)) {
    return 2;
  }
  return left < right ? -1 : (left > right ? 1 : 0);
}

std::optional<int> compare_numbers(const Value& left, const Value& right) {
  const auto a = as_integer(left);
  const auto b = as_integer(right);
  if (a && b) {
    return *a < *b ? -1 : (*a > *b ? 1 : 0);
  }
  if (a && right.real() != nullptr) {
    return compare_mixed(*a, *right.real());
  }
  if (b && left.real() != nullptr) {
    const int order = compare_mixed(*b, *left.real());
    return order == 2 ? 2 : -order;
  }
  if (left.real() != nullptr && right.real() != nullptr) {
    return compare_reals(*left.real(), *right.real());
  }
  return std::nullopt;
}

bool equals_in(Walk& walk, const Value& left, const Value& right);

// Items that are one object are equal, as in Python's containers, even where they compare
// otherwise.
bool items_equal(Walk& walk, const std::vector<Value>& left, const std::vector<Value>& right) {
  if (left.size() != right.size()) {
    return false;
  }
  const Walk::Level level(walk);
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (!is_identical(left[i], right[i]) && !equals_in(walk, left[i], right[i])) {
      return false;
    }
  }
  return true;
}

bool dicts_equal(Walk& walk, const Dict& left, const Dict& right) {
  if (left.size() != right.size()) {
    return false;
  }
  const Walk::Level level(walk);
  for (const auto& [key, value] : left.entries()) {
    const Value* other = right.find(key);
    if (other == nullptr || (!is_identical(value, *other) && !equals_in(walk, value, *other))) {
      return false;
    }
  }
  return true;
}

bool equals_in(Walk& walk, const Value& left, const Value& right) {
  walk.visit();
  require_defined(left);
  require_defined(right);
  if (const auto order = compare_numbers(left, right)) {
    return *order == 0;
  }
  if (left.text() != nullptr && right.text() != nullptr) {
    return left.text()->bytes == right.text()->bytes;
  }
  if (left.list() != nullptr && right.list() != nullptr) {
    return items_equal(walk, left.list()->items, right.list()->items);
  }
  if (left.tuple() != nullptr && right.tuple() != nullptr) {
    return items_equal(walk, left.tuple()->items, right.tuple()->items);
  }
  if (left.dict() != nullptr && right.dict() != nullptr) {
    return dicts_equal(walk, *left.dict(), *right.dict());
  }
  if (const auto* a = left.object_as<Range>()) {
    const auto* b = right.object_as<Range>();
    return b != nullptr && a->equals(*b);
  }
  if (left.undefined() != nullptr && right.undefined() != nullptr) {
    return true;
  }
  return is_identical(left, right);
}

bool less_in(Walk& walk, const Value& left, const Value& right);

bool items_less(Walk& walk, const std::vector<Value>& left, const std::vector<Value>& right) {
  const Walk::Level level(walk);
  for (std::size_t i = 0; i < left.size() && i < right.size(); ++i) {
    if (!is_identical(left[i], right[i]) && !equals_in(walk, left[i], right[i])) {
      return less_in(walk, left[i], right[i]);
    }
  }
  return left.size() < right.size();
}

bool less_in(Walk& walk, const Value& left, const Value& right) {
  walk.visit();
  for (const Value* value : {&left, &right}) {
    if (const Undefined* undefined = value->undefined()) {
      fail_undefined(*undefined);
    }
  }
  if (const auto order = compare_numbers(left, right)) {
    return *order == -1;
  }
  if (left.text() != nullptr && right.text() != nullptr) {
    return left.text()->bytes < right.text()->bytes;
  }
  if (left.list() != nullptr && right.list() != nullptr) {
    return items_less(walk, left.list()->items, right.list()->items);
  }
  if (left.tuple() != nullptr && right.tuple() != nullptr) {
    return items_less(walk, left.tuple()->items, right.tuple()->items);
  }
  throw Failure(fmt::format("'{}' and '{}' have no order", type_name(left), type_name(right)));
}

std::size_t hash_in(Walk& walk, const Value& value) {
  walk.visit();
  require_defined(value);
  if (const auto integer = as_integer(value)) {
    return std::hash<std::int64_t>()(*integer);
  }
  if (const double* real = value.real()) {
    const bool is_whole = *real >= -0x1p63 && *real < 0x1p63 && *real == std::floor(*real);
    return is_whole ? std::hash<std::int64_t>()(static_cast<std::int64_t>(*real))
                    : std::hash<double>()(*real);
  }
  if (const Text* text = value.text()) {
    return std::hash<std::string>()(text->bytes);
  }
  if (const Tuple* tuple = value.tuple()) {
    const Walk::Level level(walk);
    std::size_t hash = tuple->items.size();
    for (const Value& item : tuple->items) {
      hash = hash * 1'000'003 + hash_in(walk, item);
    }
    return hash;
  }
  if (const auto* range = value.object_as<Range>()) {
    return static_cast<std::size_t>(range->size());
  }
  if (value.list() != nullptr || value.dict() != nullptr ||
      value.object_as<DictView>() != nullptr) {
    throw Failure(fmt::format("unhashable type: '{}'", type_name(value)));
  }
  return std::hash<const void*>()(value.object());
}

bool contains_item(const std::vector<Value>& items, const Value& item, Runtime& runtime) {
  for (const Value& candidate : items) {
    runtime.budget.step();
    if (is_identical(candidate, item) || equals(candidate, item)) {
      return true;
    }
  }
  return false;
}

bool ordered(CompareOperator op, const Value& left, const Value& right) {
  // Not the negation of one another: no order holds where one is not a number.
  const auto numbers = compare_numbers(left, right);
  switch (op) {
    case CompareOperator::Less:
      return less(left, right);
    case CompareOperator::Greater:
      return less(right, left);
    case CompareOperator::LessEqual:
      return numbers ? *numbers == -1 || *numbers == 0 : !less(right, left);
    default:
      return numbers ? *numbers == 1 || *numbers == 0 : !less(left, right);
  }
}

}  // namespace

std::string_view type_name(const Value& value) {
  return std::visit(
      Overload{
          [](std::monostate) -> std::string_view { return "missing"; },
          [](None) -> std::string_view { return "NoneType"; },
          [](bool) -> std::string_view { return "bool"; },
          [](std::int64_t) -> std::string_view { return "int"; },
          [](double) -> std::string_view { return "float"; },
          [](const std::shared_ptr<const Undefined>&) -> std::string_view { return "undefined"; },
          [](const std::shared_ptr<const Text>&) -> std::string_view { return "str"; },
          [](const std::shared_ptr<List>&) -> std::string_view { return "list"; },
          [](const std::shared_ptr<const Tuple>&) -> std::string_view { return "tuple"; },
          [](const std::shared_ptr<Dict>&) -> std::string_view { return "dict"; },
          [](const std::shared_ptr<Object>& object) { return object->type_name(); }},
      value.storage());
}

bool is_truthy(const Value& value) {
  require_defined(value);
  return std::visit(
      Overload{[](std::monostate) { return false; }, [](None) { return false; },
               [](bool truth) { return truth; }, [](std::int64_t number) { return number != 0; },
               [](double number) { return number != 0; },
               [](const std::shared_ptr<const Undefined>&) { return false; },
               [](const std::shared_ptr<const Text>& text) { return !text->bytes.empty(); },
               [](const std::shared_ptr<List>& list) { return !list->items.empty(); },
               [](const std::shared_ptr<const Tuple>& tuple) { return !tuple->items.empty(); },
               [](const std::shared_ptr<Dict>& dict) { return dict->size() != 0; },
               [](const std::shared_ptr<Object>& object) { return object->is_truthy(); }},
      value.storage());
}

bool is_callable(const Value& value) {
  return value.undefined() != nullptr ||
         (value.object() != nullptr && value.object()->is_callable());
}

void fail_undefined(const Undefined& undefined) {
  throw Failure(undefined.message);
}

void require_defined(const Value& value) {
  if (const Undefined* undefined = value.undefined();
      undefined != nullptr && undefined->is_strict) {
    fail_undefined(*undefined);
  }
}

std::optional<std::int64_t> as_integer(const Value& value) {
  if (const std::int64_t* integer = value.integer()) {
    return *integer;
  }
  if (const bool* truth = value.boolean()) {
    return *truth ? 1 : 0;
  }
  return std::nullopt;
}

std::optional<double> as_real(const Value& value) {
  if (const double* real = value.real()) {
    return *real;
  }
  if (const auto integer = as_integer(value)) {
    return static_cast<double>(*integer);
  }
  return std::nullopt;
}

std::uint64_t scan_steps(const Value& value) {
  constexpr std::size_t kBytesAStep = 64;
  const Text* text = value.text();
  return text == nullptr ? 0 : text->bytes.size() / kBytesAStep;
}

bool equals(const Value& left, const Value& right) {
  Walk walk;
  return equals_in(walk, left, right);
}

bool less(const Value& left, const Value& right) {
  Walk walk;
  return less_in(walk, left, right);
}

std::size_t ValueHash::operator()(const Value& value) const {
  Walk walk;
  return hash_in(walk, value);
}

bool ValueEqual::operator()(const Value& left, const Value& right) const {
  return is_identical(left, right) || equals(left, right);
}

bool is_identical(const Value& left, const Value& right) {
  if (left.storage().index() != right.storage().index()) {
    return false;
  }
  if (const bool* truth = left.boolean()) {
    return *truth == *right.boolean();
  }
  if (const std::int64_t* integer = left.integer()) {
    return *integer == *right.integer();
  }
  if (const double* real = left.real()) {
    return *real == *right.real();
  }
  if (left.is_none()) {
    return true;
  }
  if (left.text() != nullptr) {
    return left.text()->bytes == right.text()->bytes;
  }
  return left.list() == right.list() && left.tuple() == right.tuple() &&
         left.dict() == right.dict() && left.object() == right.object() &&
         left.undefined() == right.undefined();
}

bool contains(Runtime& runtime, const Value& container, const Value& item) {
  if (const Undefined* undefined = container.undefined()) {
    require_defined(container);
    static_cast<void>(undefined);
    return false;
  }
  if (const Text* text = container.text()) {
    if (item.text() == nullptr) {
      throw Failure(
          fmt::format("'in <string>' requires string as left operand, not {}", type_name(item)));
    }
    runtime.budget.step(1 + text->bytes.size() / 64);
    return find_text(text->bytes, item.text()->bytes) != std::string::npos;
  }
  if (const List* list = container.list()) {
    return contains_item(list->items, item, runtime);
  }
  if (const Tuple* tuple = container.tuple()) {
    return contains_item(tuple->items, item, runtime);
  }
  if (const Dict* dict = container.dict()) {
    return dict->find(item) != nullptr;
  }
  const std::shared_ptr<Iterator> iterator = iterate(container);
  for (Value next = iterator->next(runtime); !next.is_missing(); next = iterator->next(runtime)) {
    if (is_identical(next, item) || equals(next, item)) {
      return true;
    }
  }
  return false;
}

bool compare(Runtime& runtime, CompareOperator op, const Value& left, const Value& right) {
  runtime.budget.step(scan_steps(left));
  switch (op) {
    case CompareOperator::Equal:
      return equals(left, right);
    case CompareOperator::NotEqual:
      return !equals(left, right);
    case CompareOperator::In:
      return contains(runtime, right, left);
    case CompareOperator::NotIn:
      return !contains(runtime, right, left);
    default:
      return ordered(op, left, right);
  }
}

}  // namespace stof::render
