#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "render/object.hpp"
#include "render/output.hpp"
#include "render/parsed_template.hpp"

namespace stof::render {

class Module;

// Gives the parsed template of a name; null where there is none. Throws Failure for a name that is
// refused and TemplateError for a template that does not parse.
using TemplateLoader = std::function<std::shared_ptr<const ParsedTemplate>(std::string_view name)>;

using Scope = std::unordered_map<std::string, Value>;

// A template that takes part in a rendering.
struct LoadedTemplate {
  std::shared_ptr<const ParsedTemplate> parsed;
  int file = 0;                              // its index in the line map
  std::shared_ptr<Module> default_module{};  // of imports without context, once there was one
};

struct BlockPlace {
  LoadedTemplate* owner = nullptr;
  const Block* block = nullptr;
};

// The variables of a template outside of its slots: what it was given, and what its top level set.
struct Context {
  LoadedTemplate* owner = nullptr;
  std::shared_ptr<const Scope> given;
  std::map<std::string, Value> set_names;
  std::set<std::string> exported;
  std::map<std::string, std::vector<BlockPlace>> blocks;  // most derived first
};

// A function of a template that runs, or ran and left closures behind.
struct Activation {
  Activation* outer = nullptr;
  Context* context = nullptr;
  LoadedTemplate* owner = nullptr;
  std::vector<Value> slots;
  bool is_captured = false;                   // a value refers to it: it lives on to the end
  LoadedTemplate* parent_template = nullptr;  // of a root function: what it extends
};

// Runs templates. One interpreter is one rendering.
class Interpreter {
 public:
  Interpreter(TemplateLoader loader, const RenderLimits& limits);
  ~Interpreter();
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  // The text of a template with its variables, a dict. Throws TemplateError.
  Text render(std::string_view name, const Dict& variables);

  // Every template that took part, in order of first use.
  const std::vector<std::string>& files() const { return files_; }

  // For the objects of the language: macros, blocks, loops.
  Value call_macro(const Macro& macro, Activation& closure, Arguments arguments);
  Value render_block(const BlockPlace& place, Context& context);
  Runtime& runtime() { return runtime_; }

 private:
  friend class StatementRunner;
  friend class ExpressionEvaluator;
  friend class FilteredItems;
  class ActivationOwner;

  Value evaluate(const Expression& expression, Activation& activation);
  Value evaluate_application(const Application& node, Activation& activation);
  Arguments evaluate_arguments(const CallArguments& node, Activation& activation);
  Value call(const Value& callee, Arguments arguments);

  void execute(const Body& body, Activation& activation, OutputBuffer& out);
  void execute(const Statement& statement, Activation& activation, OutputBuffer& out);

  void enter(const FrameSlots& frame, Activation& activation);
  static void leave(const FrameSlots& frame, Activation& activation);
  static Value& slot(SlotReference reference, Activation& activation);
  void assign(const Target& target, const Value& value, Activation& activation);
  static Value repack(const Target& target, Activation& activation);
  void export_names(const std::vector<NamedSlot>& names, Activation& activation);
  static void capture(Activation& activation);

  void run_loop(const For& loop, const Value& iterable, Activation& activation, OutputBuffer& out,
                std::int64_t depth);
  Value render_recursion(const For& loop, const Value& iterable, Activation& outer,
                         std::int64_t depth);
  Value filtered(const For& loop, const Value& iterable, Activation& outer);
  Value make_macro(std::shared_ptr<const Macro> macro, Activation& activation);
  void bind_macro(const Macro& macro, Arguments arguments, Activation& activation);

  LoadedTemplate* find_template(std::string_view name);
  LoadedTemplate& require_template(const Value& name);
  LoadedTemplate* select_template(const Value& names);
  std::shared_ptr<Module> import(LoadedTemplate& loaded, bool has_context,
                                 const std::vector<NamedSlot>& locals, Activation& activation);
  std::shared_ptr<Module> make_module(LoadedTemplate& loaded, std::shared_ptr<const Scope> given);

  Context& make_context(LoadedTemplate& owner, std::shared_ptr<const Scope> given);
  Context& derive_context(const std::vector<NamedSlot>& locals, Activation& activation);
  std::shared_ptr<const Scope> all_names(const std::vector<NamedSlot>& locals,
                                         Activation& activation);
  void run_root(LoadedTemplate& loaded, Context& context, OutputBuffer& out);
  void run_block(const BlockPlace& place, Context& context, OutputBuffer& out);

  class Level;

  TemplateLoader loader_;
  Runtime runtime_;
  int depth_ = 0;
  std::map<std::string, LoadedTemplate, std::less<>> templates_;
  std::vector<std::string> files_;
  std::deque<Context> contexts_;
  std::vector<std::unique_ptr<Activation>> captured_;
  std::vector<Value> block_inputs_;  // what filter blocks and set blocks under way filter
  std::shared_ptr<const Scope> globals_;
};

// Makes an activation of a function and keeps it to the end of the rendering if it was captured.
class Interpreter::ActivationOwner {
 public:
  ActivationOwner(Interpreter& interpreter, const Function& function, Activation* outer,
                  Context& context, LoadedTemplate& owner);
  ~ActivationOwner();
  ActivationOwner(const ActivationOwner&) = delete;
  ActivationOwner& operator=(const ActivationOwner&) = delete;

  Activation& operator*() { return *activation_; }

 private:
  Interpreter& interpreter_;
  std::unique_ptr<Activation> activation_;
};

// Counts how deep evaluation is within itself.
class Interpreter::Level {
 public:
  explicit Level(Interpreter& interpreter);
  ~Level() { --interpreter_.depth_; }
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;

 private:
  Interpreter& interpreter_;
};

}  // namespace stof::render
