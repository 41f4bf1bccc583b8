#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "render/limits.hpp"
#include "render/value.hpp"

namespace stof::render {

// The arguments of a call, before they are bound to parameters.
struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

// One rendering, as filters, tests and methods see it.
class Runtime {
 public:
  explicit Runtime(const RenderLimits& limits) : budget(limits) {}
  ~Runtime() { clear(); }
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  // A container that is about to be changed and so may come to hold itself. Such containers are
  // emptied at the end of the rendering: shared pointers alone would leak them.
  void track(const std::shared_ptr<List>& list);
  void track(const std::shared_ptr<Dict>& dict);
  void track(const std::shared_ptr<Object>& object);
  // Empties them.
  void clear();

  Budget budget;

 private:
  std::vector<std::weak_ptr<List>> lists_;
  std::vector<std::weak_ptr<Dict>> dicts_;
  std::vector<std::weak_ptr<Object>> objects_;
};

// A value beyond the plain ones: an iterator, a macro, a namespace, a loop.
class Object {
 public:
  Object() = default;
  virtual ~Object() = default;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  virtual std::string_view type_name() const = 0;
  virtual bool is_truthy() const { return true; }
  // What str() and repr() give; nothing for what Python would print with its address in memory.
  virtual std::string repr() const;
  virtual Value str() const { return Value(repr()); }
  // An attribute or an item; no value where there is none.
  virtual Value attribute(Runtime& runtime, std::string_view name);
  virtual Value item(Runtime& runtime, const Value& key);
  virtual bool is_callable() const { return false; }
  virtual Value call(Runtime& runtime, Arguments arguments);
  // Moves the values that it holds into `remains`, when nobody else holds the object.
  virtual void release(Remains& remains) { static_cast<void>(remains); }
};

}  // namespace stof::render
