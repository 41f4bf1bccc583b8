#pragma once

#include <vector>

#include "render/object.hpp"

namespace stof::render {

// Looks up an attribute path such as "shape.0.size" of an item; the item itself for none. Holds no
// value but the names of its path.
class AttributeGetter {
 public:
  // The attribute is a string, a number, none or no value; nothing has an attribute of another
  // kind.
  explicit AttributeGetter(const Value& attribute = Value(), bool ignores_case = false);

  // `otherwise`, where given, stands for an undefined value on the path. Strings come in lower case
  // where case is ignored.
  Value operator()(Runtime& runtime, const Value& item, const Value& otherwise = Value()) const;

 private:
  std::vector<Value> path_;
  bool ignores_case_;
};

// Looks up several, separated by commas, as a list: the key that sort compares.
class AttributesGetter {
 public:
  AttributesGetter(const Value& attributes, bool ignores_case);

  Value operator()(Runtime& runtime, const Value& item) const;

 private:
  std::vector<AttributeGetter> getters_;
};

}  // namespace stof::render
