#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "compile/compiled_kernel.hpp"

namespace stof::compile {

// Throws TemplateError where what the template at `file` rendered to has no entry of that name, or
// one whose parameters are not as many and as wide as what a launch passes: its argument_bytes. The
// first of its arguments may have names, for the message.
void check_entry(const CompiledKernel& kernel, const std::string& file, const std::string& name,
                 std::span<const std::int64_t> argument_bytes,
                 std::span<const std::string> argument_names = {});

}  // namespace stof::compile
