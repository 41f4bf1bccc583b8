#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "render/iteration.hpp"

namespace stof::render {

// The `loop` variable: draws the items of a loop and tells where it stands.
class Loop final : public Object, public std::enable_shared_from_this<Loop> {
 public:
  // Renders the body of a recursive loop over an inner iterable, at a depth.
  using Recursion = std::function<Value(const Value& iterable, std::int64_t depth)>;

  Loop(Value iterable, Recursion recursion, std::int64_t depth);

  // The next item, or no value; the loop then stands on it.
  Value advance(Runtime& runtime);

  Value cycle(const Arguments& arguments) const;
  Value changed(const Arguments& arguments);

  std::string_view type_name() const override { return "LoopContext"; }
  std::string repr() const override;
  Value attribute(Runtime& runtime, std::string_view name) override;
  bool is_callable() const override { return true; }
  Value call(Runtime& runtime, Arguments arguments) override;
  void release(Remains& remains) override;

 private:
  std::int64_t length(Runtime& runtime);
  const Value& peek(Runtime& runtime);

  Value iterable_;
  std::shared_ptr<Iterator> iterator_;
  Recursion recursion_;
  std::int64_t depth0_;
  std::int64_t index0_ = -1;
  std::optional<std::int64_t> length_;
  Value previous_;
  Value current_;
  Value next_;
  Value last_changed_;
};

}  // namespace stof::render
