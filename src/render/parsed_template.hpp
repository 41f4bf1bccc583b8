#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "render/ast.hpp"
#include "render/source.hpp"

namespace stof::render {

// A template, parsed and resolved; immutable.
struct ParsedTemplate {
  explicit ParsedTemplate(Source template_source) : source(std::move(template_source)) {}

  Source source;
  Body body;
  std::map<std::string, std::shared_ptr<Block>> blocks;
  bool has_extends = false;
  bool is_always_extended = false;  // by an extends outside of every if

  Function function;
  FrameSlots frame;
  std::optional<SlotReference> self;
};

// Throws TemplateError for text outside of the language.
std::shared_ptr<const ParsedTemplate> parse_template(std::string file, std::string_view text);

}  // namespace stof::render
