#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "render/object.hpp"

namespace stof::render {

// dict(source, **named): the source is a mapping, an iterable of pairs, or no value.
std::shared_ptr<Dict> make_dict(Runtime& runtime, const Value& source,
                                const std::vector<std::pair<std::string, Value>>& named);

// namespace(): a mutable object with attributes, the one thing that `set` may change from an inner
// scope.
class Namespace final : public Object {
 public:
  explicit Namespace(std::shared_ptr<Dict> attributes) : attributes_(std::move(attributes)) {}

  void set(Runtime& runtime, std::string_view name, Value value);

  std::string_view type_name() const override { return "Namespace"; }
  std::string repr() const override;
  Value attribute(Runtime& runtime, std::string_view name) override;
  void release(Remains& remains) override { remains.emplace_back(std::move(attributes_)); }

 private:
  std::shared_ptr<Dict> attributes_;
};

}  // namespace stof::render
