#pragma once

#include <string>

#include "compile/compiled_kernel.hpp"

namespace stof::compile {

// Throws TemplateError where what the template at `file` rendered to has no entry of that name.
void check_entry(const CompiledKernel& kernel, const std::string& file, const std::string& name);

}  // namespace stof::compile
