#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/launches.hpp"

namespace stof::mask_layout {

// Every 32 bits of memory that is aligned to 4 bytes become `word`; size_bytes is a multiple of 4.
void fill(void* data, std::uint32_t word, std::size_t size_bytes, cuda::Launches& launches);

// Writes one value, as it is when the launches are made, where kernels read it.
template <typename T>
void store(T* to, const T& value, cuda::Launches& launches);

}  // namespace stof::mask_layout
