#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "render/object.hpp"

namespace stof::render {

// Gives one item after another, once. Filters such as map give iterators, as in Python.
class Iterator : public Object {
 public:
  // The next item; no value from the end on.
  virtual Value next(Runtime& runtime) = 0;

  std::string_view type_name() const override { return "generator"; }
  std::string repr() const override;
  // How many iterators it draws from, itself included; bounded, since next() recurses.
  int depth() const { return depth_; }

 protected:
  // Throws Failure for too many iterators over each other.
  explicit Iterator(int depth);

 private:
  int depth_;
};

// An iterator over a callable that gives one item a call. All values that it draws on are `held`
// apart from the callable, so that chains of generators come down without recursion.
class Generator final : public Iterator {
 public:
  using Next = std::function<Value(Runtime& runtime, std::vector<Value>& held)>;

  Generator(std::vector<Value> held, Next next);
  ~Generator() override { dismantle(std::move(held_)); }

  Value next(Runtime& runtime) override;
  void release(Remains& remains) override;

 private:
  std::vector<Value> held_;
  Next next_;
  bool is_done_ = false;
};

// Python's range: start, start + step, ... before stop.
class Range final : public Object {
 public:
  // Throws Failure for a step of 0 and for more than kMaxRangeLength numbers.
  Range(std::int64_t start, std::int64_t stop, std::int64_t step);

  std::int64_t start() const { return start_; }
  std::int64_t stop() const { return stop_; }
  std::int64_t step() const { return step_; }
  std::int64_t size() const { return size_; }
  std::int64_t at(std::int64_t index) const { return start_ + index * step_; }
  bool equals(const Range& other) const;

  std::string_view type_name() const override { return "range"; }
  bool is_truthy() const override { return size_ != 0; }
  std::string repr() const override;
  Value attribute(Runtime& runtime, std::string_view name) override;

 private:
  std::int64_t start_;
  std::int64_t stop_;
  std::int64_t step_;
  std::int64_t size_ = 0;
};

// What dict.keys(), values() and items() give: a live view.
class DictView final : public Object {
 public:
  enum class Part { Keys, Values, Items };

  DictView(std::shared_ptr<Dict> dict, Part part) : dict_(std::move(dict)), part_(part) {}

  const std::shared_ptr<Dict>& dict() const { return dict_; }
  Value at(std::size_t index) const;

  std::string_view type_name() const override;
  bool is_truthy() const override { return dict_->size() != 0; }
  std::string repr() const override;
  void release(Remains& remains) override { remains.emplace_back(std::move(dict_)); }

 private:
  std::shared_ptr<Dict> dict_;
  Part part_;
};

Value make_generator(std::vector<Value> held, Generator::Next next);

// Throws Failure for what Python cannot iterate over.
std::shared_ptr<Iterator> iterate(const Value& value);
bool is_iterable(const Value& value);
// From the last item to the first: sequences and dicts only.
std::shared_ptr<Iterator> iterate_reversed(const Value& value);
std::vector<Value> to_vector(Runtime& runtime, const Value& value);

// len(), or nothing for what has none.
std::optional<std::int64_t> length(const Value& value);
// len(). Throws Failure for what has none.
std::int64_t require_length(const Value& value);

}  // namespace stof::render
