#include "tokenizer.hpp"

#include <fstream>
#include <stdexcept>

#include "words.hpp"

namespace embeddings {

namespace {

constexpr std::size_t kMaxWord = 100;  // characters; a longer word is unknown

}  // namespace

Tokenizer::Tokenizer(const std::filesystem::path& vocabulary) {
  std::ifstream file(vocabulary);
  if (!file) {
    throw std::runtime_error("tokenizer: cannot open " + vocabulary.string());
  }
  std::string line;
  for (std::int32_t id = 0; std::getline(file, line); ++id) {
    vocabulary_.insert_or_assign(decode_utf8(line), id);
  }
  unknown_ = special(U"[UNK]");
  first_ = special(U"[CLS]");
  last_ = special(U"[SEP]");
}

std::int32_t Tokenizer::special(std::u32string_view token) const {
  const auto found = vocabulary_.find(token);
  if (found == vocabulary_.end()) {
    throw std::runtime_error("tokenizer: the vocabulary has no " +
                             std::string(token.begin(), token.end()));
  }
  return found->second;
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view text, std::size_t max_tokens) const {
  std::vector<std::int32_t> ids = {first_};
  for (const std::u32string& word : split_words(decode_utf8(text))) {
    const std::vector<std::int32_t> more = pieces(word);
    ids.insert(ids.end(), more.begin(), more.end());
    if (ids.size() >= max_tokens) {
      ids.resize(max_tokens - 1);
      break;
    }
  }
  ids.push_back(last_);
  return ids;
}

// The longest token that the word begins with, then the longest "##" token that goes on, and so on;
// a word that does not come out even is unknown as a whole.
std::vector<std::int32_t> Tokenizer::pieces(const std::u32string& word) const {
  if (word.size() > kMaxWord) {
    return {unknown_};
  }
  std::vector<std::int32_t> ids;
  std::u32string rest = word;
  std::size_t prefix = 0;  // characters of "##" in front of the rest
  while (rest.size() > prefix) {
    std::size_t size = rest.size();
    auto found = vocabulary_.find(rest);
    while (found == vocabulary_.end() && --size > prefix) {
      found = vocabulary_.find(std::u32string_view(rest).substr(0, size));
    }
    if (found == vocabulary_.end()) {
      return {unknown_};
    }
    ids.push_back(found->second);
    rest = U"##" + rest.substr(size);
    prefix = 2;
  }
  return ids;
}

}  // namespace embeddings
