#pragma once

#include <cstdint>

#include "cuda/launches.hpp"
#include "mask/input_form.hpp"
#include "mask_layout/layout.hpp"
#include "mask_layout/views.hpp"

namespace stof::mask_layout {

using mask::InputForm;

// Mask data that is known on the GPU only, and may be another on each run. Packed device arrays:
// KeyLengths: data int32 [batch]. CuSeqlens: data int32 [count], count >= 2. Dense: data bytes
// [batch, heads, q_len, kv_len]. Csr: row_ptr int32 [q_len + 1], data int32 [count], columns in any
// order.
struct MaskInput {
  InputForm form = InputForm::Dense;
  const void* data = nullptr;
  const std::int32_t* row_ptr = nullptr;
  std::int64_t count = 0;
  std::int64_t batch = 1;  // of Dense: 1 where shared
  std::int64_t heads = 1;
};

// Adds what writes the bits of a Csr, [q_len][ceil(kv_len / 64)] words, and sets kInvalidData in
// the status where a value is out of range.
void write_input_bits(const MaskInput& input, const Grid& grid, std::uint64_t* bits,
                      std::int32_t* status, cuda::Launches& launches);

}  // namespace stof::mask_layout
