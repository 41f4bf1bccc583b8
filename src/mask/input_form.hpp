#pragma once

#include <cstdint>

namespace stof::mask {

// How a mask that is known at run time only arrives: what MaskForm says of a graph.
enum class InputForm : std::uint8_t { KeyLengths, CuSeqlens, Dense, Csr };

}  // namespace stof::mask
