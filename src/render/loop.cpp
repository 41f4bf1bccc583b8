#include "render/loop.hpp"

#include <fmt/format.h>

#include "render/operators.hpp"

namespace stof::render {

namespace {

// loop.cycle or loop.changed, before it is called.
class LoopMethod final : public Object {
 public:
  LoopMethod(std::shared_ptr<Loop> loop, bool is_cycle)
      : loop_(std::move(loop)), is_cycle_(is_cycle) {}

  std::string_view type_name() const override { return "method"; }
  bool is_callable() const override { return true; }
  Value call(Runtime&, Arguments arguments) override {
    if (!arguments.named.empty()) {
      throw Failure(
          fmt::format("loop.{}() takes no named arguments", is_cycle_ ? "cycle" : "changed"));
    }
    return is_cycle_ ? loop_->cycle(arguments) : loop_->changed(arguments);
  }
  void release(Remains& remains) override {
    remains.emplace_back(std::shared_ptr<Object>(std::move(loop_)));
  }

 private:
  std::shared_ptr<Loop> loop_;
  bool is_cycle_;
};

}  // namespace

Loop::Loop(Value iterable, Recursion recursion, std::int64_t depth)
    : iterable_(std::move(iterable)),
      iterator_(iterate(iterable_)),
      recursion_(std::move(recursion)),
      depth0_(depth) {}

Value Loop::advance(Runtime& runtime) {
  Value item = next_.is_missing() ? iterator_->next(runtime) : std::exchange(next_, Value());
  if (item.is_missing()) {
    return item;
  }
  ++index0_;
  previous_ = std::exchange(current_, item);
  return item;
}

const Value& Loop::peek(Runtime& runtime) {
  if (next_.is_missing()) {
    next_ = iterator_->next(runtime);
  }
  return next_;
}

std::int64_t Loop::length(Runtime& runtime) {
  if (!length_) {
    length_ = iterable_.object_as<Iterator>() == nullptr ? render::length(iterable_) : std::nullopt;
  }
  if (!length_) {
    // A generator is drawn to its end, and the loop goes on over what it gave.
    std::vector<Value> rest;
    for (Value item = iterator_->next(runtime); !item.is_missing();
         item = iterator_->next(runtime)) {
      runtime.budget.allocate(sizeof(Value));
      rest.push_back(std::move(item));
    }
    length_ = std::ssize(rest) + index0_ + 1 + (next_.is_missing() ? 0 : 1);
    iterator_ = iterate(make_list(std::move(rest)));
  }
  return *length_;
}

Value Loop::cycle(const Arguments& arguments) const {
  if (arguments.positional.empty()) {
    throw Failure("no items for cycling given");
  }
  return arguments.positional[static_cast<std::size_t>(index0_) % arguments.positional.size()];
}

Value Loop::changed(const Arguments& arguments) {
  Value values = make_tuple(arguments.positional);
  if (!last_changed_.is_missing() && equals(last_changed_, values)) {
    return Value(false);
  }
  last_changed_ = std::move(values);
  return Value(true);
}

std::string Loop::repr() const {
  throw Failure("the loop variable has no text of its own; print one of its attributes");
}

Value Loop::attribute(Runtime& runtime, std::string_view name) {
  if (name == "index") {
    return Value(index0_ + 1);
  }
  if (name == "index0") {
    return Value(index0_);
  }
  if (name == "first") {
    return Value(index0_ == 0);
  }
  if (name == "last") {
    return Value(peek(runtime).is_missing());
  }
  if (name == "length") {
    return Value(length(runtime));
  }
  if (name == "revindex") {
    return Value(length(runtime) - index0_);
  }
  if (name == "revindex0") {
    return Value(length(runtime) - index0_ - 1);
  }
  if (name == "depth") {
    return Value(depth0_ + 1);
  }
  if (name == "depth0") {
    return Value(depth0_);
  }
  if (name == "previtem") {
    return index0_ == 0 ? make_undefined("there is no previous item") : previous_;
  }
  if (name == "nextitem") {
    const Value& next = peek(runtime);
    return next.is_missing() ? make_undefined("there is no next item") : next;
  }
  if (name == "cycle" || name == "changed") {
    return Value(
        std::shared_ptr<Object>(std::make_shared<LoopMethod>(shared_from_this(), name == "cycle")));
  }
  return {};
}

Value Loop::call(Runtime&, Arguments arguments) {
  if (recursion_ == nullptr) {
    throw Failure("the loop must be marked 'recursive' to be called");
  }
  if (arguments.positional.size() == 1 && arguments.named.empty()) {
    return recursion_(arguments.positional[0], depth0_ + 1);
  }
  if (arguments.positional.empty() && arguments.named.size() == 1 &&
      arguments.named[0].first == "iterable") {
    return recursion_(arguments.named[0].second, depth0_ + 1);
  }
  throw Failure("loop() takes one iterable");
}

void Loop::release(Remains& remains) {
  for (Value* value : {&iterable_, &previous_, &current_, &next_, &last_changed_}) {
    remains.push_back(std::exchange(*value, Value()));
  }
  if (iterator_ != nullptr) {
    remains.emplace_back(std::shared_ptr<Object>(std::move(iterator_)));
  }
}

}  // namespace stof::render
