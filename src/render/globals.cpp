#include <algorithm>
#include <array>
#include <iterator>

#include <fmt/format.h>

#include "render/builtin.hpp"
#include "render/formatting.hpp"
#include "render/iteration.hpp"
#include "render/mapping.hpp"
#include "render/operators.hpp"

// The functions of the global scope.
namespace stof::render {

namespace {

template <typename T, typename... Args>
Value make_object(Args&&... args) {
  return Value(std::shared_ptr<Object>(std::make_shared<T>(std::forward<Args>(args)...)));
}

class Joiner final : public Object {
 public:
  explicit Joiner(Value separator) : separator_(std::move(separator)) {}
  ~Joiner() override {
    Remains remains;
    remains.push_back(std::move(separator_));
    dismantle(std::move(remains));
  }

  std::string_view type_name() const override { return "Joiner"; }
  bool is_callable() const override { return true; }
  Value call(Runtime&, Arguments arguments) override {
    if (!arguments.positional.empty() || !arguments.named.empty()) {
      throw Failure("a joiner takes no arguments");
    }
    const bool is_first = !is_used_;
    is_used_ = true;
    return is_first ? Value("") : separator_;
  }
  Value attribute(Runtime&, std::string_view name) override {
    return name == "sep" ? separator_ : (name == "used" ? Value(is_used_) : Value());
  }
  void release(Remains& remains) override { remains.push_back(std::move(separator_)); }

 private:
  Value separator_;
  bool is_used_ = false;
};

// What a cycler and its bound methods share.
struct Cycle {
  explicit Cycle(std::vector<Value> values) : items(std::move(values)) {}
  ~Cycle() { dismantle(std::move(items)); }
  Cycle(const Cycle&) = delete;
  Cycle& operator=(const Cycle&) = delete;

  std::vector<Value> items;
  std::size_t position = 0;
};

// cycler.next or cycler.reset, before it is called.
class CyclerMethod final : public Object {
 public:
  CyclerMethod(std::shared_ptr<Cycle> cycle, bool is_reset)
      : cycle_(std::move(cycle)), is_reset_(is_reset) {}

  std::string_view type_name() const override { return "method"; }
  bool is_callable() const override { return true; }
  Value call(Runtime&, Arguments arguments) override {
    if (!arguments.positional.empty() || !arguments.named.empty()) {
      throw Failure(fmt::format("cycler.{}() takes no arguments", is_reset_ ? "reset" : "next"));
    }
    if (is_reset_) {
      cycle_->position = 0;
      return Value(None{});
    }
    const Value& item = cycle_->items[cycle_->position];
    cycle_->position = (cycle_->position + 1) % cycle_->items.size();
    return item;
  }
  void release(Remains& remains) override {
    if (cycle_.use_count() == 1) {
      std::ranges::move(cycle_->items, std::back_inserter(remains));
    }
  }

 private:
  std::shared_ptr<Cycle> cycle_;
  bool is_reset_;
};

class Cycler final : public Object {
 public:
  explicit Cycler(std::vector<Value> items) : cycle_(std::make_shared<Cycle>(std::move(items))) {
    if (cycle_->items.empty()) {
      throw Failure("at least one item has to be provided");
    }
  }

  std::string_view type_name() const override { return "Cycler"; }
  Value attribute(Runtime&, std::string_view name) override {
    if (name == "next" || name == "reset") {
      return make_object<CyclerMethod>(cycle_, name == "reset");
    }
    if (name == "current") {
      return cycle_->items[cycle_->position];
    }
    if (name == "pos") {
      return Value(cycle_->position);
    }
    return name == "items" ? make_tuple(cycle_->items) : Value();
  }
  void release(Remains& remains) override {
    if (cycle_.use_count() == 1) {
      std::ranges::move(cycle_->items, std::back_inserter(remains));
    }
  }

 private:
  std::shared_ptr<Cycle> cycle_;
};

Value range(BuiltinCall& call) {
  const std::int64_t first = integer_argument(call.args[0], "range() argument");
  if (call.args[1].is_missing()) {
    return make_object<Range>(0, first, 1);
  }
  return make_object<Range>(first, integer_argument(call.args[1], "range() argument"),
                            integer_argument(call.args[2], "range() argument", 1));
}

Value dict(BuiltinCall& call) {
  return Value(make_dict(call.runtime, call.args[0], call.rest.named));
}

Value make_namespace(BuiltinCall& call) {
  return make_object<Namespace>(make_dict(call.runtime, call.args[0], call.rest.named));
}

Value joiner(BuiltinCall& call) {
  return make_object<Joiner>(call.args[0].is_missing() ? Value(", ") : call.args[0]);
}

Value cycler(BuiltinCall& call) {
  if (!call.rest.named.empty()) {
    throw Failure("cycler() takes no named arguments");
  }
  return make_object<Cycler>(std::move(call.rest.positional));
}

Value fail(BuiltinCall& call) {
  throw Failure(to_string(call.args[0]));
}

constexpr std::array kGlobals = {
    Builtin{"cycler", "*", cycler},
    Builtin{"dict", "mapping? / **", dict},
    Builtin{"fail", "message", fail},
    Builtin{"joiner", "sep?", joiner},
    Builtin{"namespace", "mapping? / **", make_namespace},
    Builtin{"range", "start stop? step? /", range},
};

}  // namespace

void add_globals(Dict& scope) {
  for (const Builtin& global : kGlobals) {
    scope.set(global.name, make_function(global));
  }
}

}  // namespace stof::render
