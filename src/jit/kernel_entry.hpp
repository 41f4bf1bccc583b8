#pragma once

#include <optional>

#include "cache/entry.hpp"
#include "compile/compiled_kernel.hpp"
#include "kernel/key.hpp"

namespace stof::jit {

// A kernel as the cache keeps it: the cubin is the payload, the rest is JSON in the meta.
cache::Entry to_entry(const kernel::Key& key, const compile::CompiledKernel& kernel);

// The same back, or nothing where the meta is not what to_entry writes.
std::optional<compile::CompiledKernel> from_entry(const cache::Entry& entry);

}  // namespace stof::jit
