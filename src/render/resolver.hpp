#pragma once

#include "render/parsed_template.hpp"

namespace stof::render {

// Decides for every name of a template which slot it means, as jinja2's compiler does. Throws
// TemplateError for what that compiler refuses.
void resolve(ParsedTemplate& parsed);

}  // namespace stof::render
