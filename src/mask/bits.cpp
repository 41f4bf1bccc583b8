#include "mask/bits.hpp"

namespace stof::mask {

void set_bits(std::span<std::uint64_t> words, std::int64_t begin, std::int64_t end) {
  while (begin < end) {
    const std::int64_t word = begin / kWordBits;
    const std::int64_t stop = std::min(end, (word + 1) * kWordBits);
    words[word] |= low_bits(stop - begin) << (begin % kWordBits);
    begin = stop;
  }
}

}  // namespace stof::mask
