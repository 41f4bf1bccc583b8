#pragma once

#include <cstddef>

#include "kernel/kernel_source.hpp"
#include "render/template_store.hpp"

namespace stof::render {

// Puts the text of device headers in the place of their #include "..." lines, each once, without
// its #pragma once; #include <...> stays. Throws TemplateError at the including line for a header
// that the store has not, that includes itself, or that stands within an #if: it would be missing
// there for all other places.
kernel::KernelSource expand_headers(const kernel::KernelSource& source, const TemplateStore& store,
                                    std::size_t max_bytes);

}  // namespace stof::render
