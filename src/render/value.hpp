#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "kernel/kernel_source.hpp"

// What a template computes with: Python's values, with int64 for int. Strings, numbers and tuples
// never change; lists, dicts and namespaces are shared and may, as in Python.
namespace stof::render {

class Value;
class Object;
class List;
class Tuple;
class Dict;

struct None {};

// A name or item that does not exist. A strict one fails in every use but a test for definedness;
// the value of an inline if without else is not strict: it prints as nothing and is false.
struct Undefined {
  std::string message;
  bool is_strict = true;
};

// A string. One that a macro or a block rendered knows the template lines that its lines came from.
struct Text {
  std::string bytes;
  std::shared_ptr<const std::vector<kernel::LineRun>> lines;
};

// The default value is no value at all: an argument that was not given, a variable never set.
class Value {
 public:
  using Storage =
      std::variant<std::monostate, None, std::shared_ptr<const Undefined>, bool, std::int64_t,
                   double, std::shared_ptr<const Text>, std::shared_ptr<List>,
                   std::shared_ptr<const Tuple>, std::shared_ptr<Dict>, std::shared_ptr<Object>>;

  Value() = default;
  explicit Value(None none) : storage_(none) {}
  explicit Value(Undefined undefined);
  template <std::same_as<bool> T>
  explicit Value(T truth) : storage_(truth) {}
  template <std::integral T>
  requires(!std::same_as<T, bool>) explicit Value(T number)
      : storage_(static_cast<std::int64_t>(number)) {}
  explicit Value(double number) : storage_(number) {}
  explicit Value(Text text);
  explicit Value(std::string text) : Value(Text{std::move(text), nullptr}) {}
  explicit Value(std::string_view text) : Value(std::string(text)) {}
  explicit Value(const char* text) : Value(std::string(text)) {}
  explicit Value(std::shared_ptr<const Text> text) : storage_(std::move(text)) {}
  explicit Value(std::shared_ptr<List> list) : storage_(std::move(list)) {}
  explicit Value(std::shared_ptr<const Tuple> tuple) : storage_(std::move(tuple)) {}
  explicit Value(std::shared_ptr<Dict> dict) : storage_(std::move(dict)) {}
  explicit Value(std::shared_ptr<Object> object) : storage_(std::move(object)) {}

  bool is_missing() const { return std::holds_alternative<std::monostate>(storage_); }
  bool is_none() const { return std::holds_alternative<None>(storage_); }
  bool is_text() const { return text() != nullptr; }

  // What it holds, or null: the alternatives of one variant.
  const Undefined* undefined() const { return pointee<std::shared_ptr<const Undefined>>(); }
  const bool* boolean() const { return std::get_if<bool>(&storage_); }
  const std::int64_t* integer() const { return std::get_if<std::int64_t>(&storage_); }
  const double* real() const { return std::get_if<double>(&storage_); }
  const Text* text() const { return pointee<std::shared_ptr<const Text>>(); }
  List* list() const { return pointee<std::shared_ptr<List>>(); }
  const Tuple* tuple() const { return pointee<std::shared_ptr<const Tuple>>(); }
  Dict* dict() const { return pointee<std::shared_ptr<Dict>>(); }
  Object* object() const { return pointee<std::shared_ptr<Object>>(); }
  template <typename T>
  T* object_as() const {
    return dynamic_cast<T*>(object());
  }

  const Storage& storage() const { return storage_; }
  Storage& storage() { return storage_; }

 private:
  template <typename Pointer>
  typename Pointer::element_type* pointee() const {
    const auto* pointer = std::get_if<Pointer>(&storage_);
    return pointer == nullptr ? nullptr : pointer->get();
  }

  Storage storage_;
};

Value make_list(std::vector<Value> items);
Value make_tuple(std::vector<Value> items);
Value make_undefined(std::string message);

// Copies a JSON tree; the order of its keys is the order of the dicts. Throws Failure for a number
// beyond int64 and a tree deeper than kMaxValueDepth.
Value from_json(const nlohmann::json& json);
Value from_json(const nlohmann::ordered_json& json);

// A copy that shares no list and no dict. Throws Failure for one deeper than kMaxValueDepth.
Value deep_copy(const Value& value, int depth = 0);

// The values that a value holds, given up so that a deep one is taken down without recursion.
using Remains = std::vector<Value>;

class List {
 public:
  explicit List(std::vector<Value> values) : items(std::move(values)) {}
  ~List();
  List(const List&) = delete;
  List& operator=(const List&) = delete;

  std::vector<Value> items;
  bool is_tracked = false;  // the rendering knows that it was changed and may hold itself
};

class Tuple {
 public:
  explicit Tuple(std::vector<Value> values) : items(std::move(values)) {}
  Tuple(std::vector<Value> values, std::span<const std::string_view> names)
      : items(std::move(values)), field_names(names) {}
  ~Tuple();
  Tuple(const Tuple&) = delete;
  Tuple& operator=(const Tuple&) = delete;

  std::vector<Value> items;
  std::span<const std::string_view> field_names;  // of a named tuple; static
};

struct ValueHash {
  std::size_t operator()(const Value& value) const;
};
struct ValueEqual {
  bool operator()(const Value& left, const Value& right) const;
};

// A mapping in order of insertion. Keys compare as in Python: 1, 1.0 and true are one key. Throws
// Failure for a key that has no hash.
class Dict {
 public:
  using Entry = std::pair<Value, Value>;

  Dict() = default;
  ~Dict();
  Dict(const Dict&) = delete;
  Dict& operator=(const Dict&) = delete;

  const std::vector<Entry>& entries() const { return entries_; }
  std::size_t size() const { return entries_.size(); }
  const Value* find(const Value& key) const;
  const Value* find(std::string_view key) const { return find(Value(key)); }
  void set(Value key, Value value);
  void set(std::string_view key, Value value) { set(Value(key), std::move(value)); }
  bool erase(const Value& key);
  void clear();

  bool is_tracked = false;

 private:
  std::vector<Entry> entries_;
  std::unordered_map<Value, std::size_t, ValueHash, ValueEqual> index_;
};

// Tears down what is left of a value, level by level.
void dismantle(Remains remains) noexcept;

}  // namespace stof::render
