#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace embeddings {

// The uncased WordPiece tokeniser of BERT (Devlin et al., "BERT", 2019), as Hugging Face's
// tokenizers has it. Text is text: "[CLS]" in it is a word between brackets.
class Tokenizer {
 public:
  // The file holds one token a line, and the number of the line is its id. Throws
  // std::runtime_error.
  explicit Tokenizer(const std::filesystem::path& vocabulary);

  // The ids of UTF-8 text between [CLS] and [SEP], of which the last are left out beyond
  // `max_tokens` (at least 2) in all.
  std::vector<std::int32_t> encode(std::string_view text, std::size_t max_tokens) const;

 private:
  struct Hash : std::hash<std::u32string_view> {
    using is_transparent = void;
  };
  using Vocabulary = std::unordered_map<std::u32string, std::int32_t, Hash, std::equal_to<>>;

  std::int32_t special(std::u32string_view token) const;
  std::vector<std::int32_t> pieces(const std::u32string& word) const;

  Vocabulary vocabulary_;
  std::int32_t unknown_ = 0, first_ = 0, last_ = 0;  // [UNK], [CLS], [SEP]
};

}  // namespace embeddings
