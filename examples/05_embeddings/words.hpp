#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace embeddings {

// Bytes that are no UTF-8 become U+FFFD, which split_words leaves out.
std::u32string decode_utf8(std::string_view text);

// The words of BERT's basic tokeniser. Characters are taken apart (NFD), lose their accents and
// become lower-case; blanks part words, and a punctuation mark or an ideograph is a word of its
// own; control characters are left out.
std::vector<std::u32string> split_words(std::u32string_view text);

}  // namespace embeddings
