#pragma once

#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "base/hash.hpp"
#include "compile/compiled_kernel.hpp"

namespace stof::jit {

// A kernel was found.
struct HitEvent {
  std::string layer;  // "memory", "disk", or a pack's name
};

// Another process compiles the kernel.
struct WaitEvent {
  int process = 0;  // its id, 0 where it is not known
};

struct CompileBeginEvent {
  int index = 0;  // of this kernel among those of one call that have to be compiled, from 0
  int count = 1;
};

struct CompileEndEvent {
  double time_ms = 0;
  std::vector<compile::FunctionResources> functions;
  std::string error;  // empty where it compiled
};

struct Event {
  base::Digest kernel;  // of its key
  std::string source;   // the template that it was rendered from
  std::variant<HitEvent, WaitEvent, CompileBeginEvent, CompileEndEvent> what;
};

using OnEvent = std::function<void(const Event&)>;

}  // namespace stof::jit
