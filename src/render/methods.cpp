#include "render/methods.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "render/operators.hpp"

namespace stof::render {

namespace {

class BoundMethod final : public Object {
 public:
  BoundMethod(Value self, const Builtin& method) : self_(std::move(self)), method_(method) {}

  std::string_view type_name() const override { return "method"; }
  bool is_callable() const override { return true; }
  Value call(Runtime& runtime, Arguments arguments) override {
    arguments.positional.insert(arguments.positional.begin(), self_);
    return render::call(runtime, method_, std::move(arguments));
  }
  void release(Remains& remains) override { remains.push_back(std::move(self_)); }

 private:
  Value self_;
  const Builtin& method_;
};

// Attributes of Python's types that this engine knows of only to refuse: a template that uses one
// must not find an item of that name, or nothing, instead.
constexpr std::string_view kTextOthers[] = {"casefold",     "encode",      "format_map",
                                            "isidentifier", "isprintable", "maketrans",
                                            "translate",    "swapcase"};
constexpr std::string_view kListOthers[] = {"sort"};
constexpr std::string_view kDictOthers[] = {"fromkeys"};
constexpr std::string_view kIntegerOthers[] = {
    "as_integer_ratio", "bit_count", "bit_length", "conjugate", "denominator",
    "from_bytes",       "imag",      "numerator",  "real",      "to_bytes"};
constexpr std::string_view kRealOthers[] = {
    "as_integer_ratio", "conjugate", "fromhex", "hex", "imag", "real"};

struct Type {
  std::span<const Builtin> methods;
  std::span<const std::string_view> others;
};

Type type_of(const Value& value) {
  if (value.is_text()) {
    return {.methods = text_methods(), .others = kTextOthers};
  }
  if (value.list() != nullptr) {
    return {.methods = list_methods(), .others = kListOthers};
  }
  if (value.tuple() != nullptr) {
    return {.methods = tuple_methods(), .others = {}};
  }
  if (value.dict() != nullptr) {
    return {.methods = dict_methods(), .others = kDictOthers};
  }
  if (value.real() != nullptr) {
    return {.methods = real_methods(), .others = kRealOthers};
  }
  if (as_integer(value)) {
    return {.methods = {}, .others = kIntegerOthers};
  }
  return {};
}

}  // namespace

Value find_method(const Value& self, std::string_view name) {
  const Type type = type_of(self);
  if (const Builtin* method = find_builtin(type.methods, name)) {
    return Value(std::shared_ptr<Object>(std::make_shared<BoundMethod>(self, *method)));
  }
  if (std::ranges::find(type.others, name) != type.others.end()) {
    throw Failure(fmt::format("'{}' of {} is not supported", name, type_name(self)));
  }
  return {};
}

}  // namespace stof::render
