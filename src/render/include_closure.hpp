#pragma once

#include <set>
#include <string>
#include <string_view>

#include "base/hash.hpp"
#include "render/template_store.hpp"

namespace stof::render {

// The files of a store that can have a part in rendering one of them, itself among them: what it
// includes, imports and extends, its device headers, and theirs. Every file of the store where a
// name is computed. What does not parse includes its device headers alone.
std::set<std::string> include_closure(const TemplateStore& store, const std::string& file);

// Of the paths and texts of these files: equal where they render alike.
base::Digest closure_digest(const TemplateStore& store, const std::string& file);

}  // namespace stof::render
