#pragma once

#include <string>
#include <vector>

// Where the variables of a template live. A template is compiled as jinja2 compiles it, to
// functions (the root, each block, each macro) with numbered slots; a scope within a function has
// slots of its own, set up when it is entered.
namespace stof::render {

// A slot of the function that runs (hops 0) or of one that encloses it.
struct SlotReference {
  int hops = 0;
  int slot = -1;
};

struct NamedSlot {
  std::string name;
  SlotReference slot;
};

struct Function {
  int slot_count = 0;
};

// How a slot is set on entry to its scope.
struct SlotSetup {
  enum class From { Argument, Context, Outer, Nothing };

  From from = From::Nothing;
  int slot = -1;
  std::string name{};   // From::Context: what to look up
  SlotReference outer;  // From::Outer
};

struct FrameSlots {
  std::vector<SlotSetup> setups;
};

}  // namespace stof::render
