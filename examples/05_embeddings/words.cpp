#include "words.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <utility>

namespace embeddings {

namespace {

struct Range {
  char32_t first, last;
};

// Every step-th character of [first, last] becomes one of `to`, `to` + to_step, ….
struct Fold {
  char32_t first, last, step, to, to_step;
};

struct LongFold {
  char32_t from;
  std::u32string_view to;
};

// kBlanks, kDropped, kIdeographs, kPunctuation: ranges; kFolds and kLongFolds: what becomes of the
// others where it is another character. All in order.
#include "characters.inc"

// The last entry that begins at or before the character; null where there is none.
template <typename Entry>
const Entry* entry_of(std::span<const Entry> entries, char32_t Entry::*first, char32_t c) {
  const auto next = std::upper_bound(entries.begin(), entries.end(), c,
                                     [&](char32_t a, const Entry& b) { return a < b.*first; });
  return next == entries.begin() ? nullptr : &*std::prev(next);
}

bool is_in(std::span<const Range> ranges, char32_t c) {
  const Range* range = entry_of(ranges, &Range::first, c);
  return range != nullptr && c <= range->last;
}

// A syllable of Hangul is made of two or three letters by rule (The Unicode Standard, 3.12).
void append_hangul(char32_t syllable, std::u32string& folded) {
  constexpr char32_t kVowels = 21, kTrails = 28;
  folded.push_back(0x1100 + syllable / (kVowels * kTrails));
  folded.push_back(0x1161 + syllable / kTrails % kVowels);
  if (syllable % kTrails != 0) {
    folded.push_back(0x11A7 + syllable % kTrails);
  }
}

void append_folded(char32_t c, std::u32string& folded) {
  constexpr char32_t kHangul = 0xAC00, kSyllables = 11172;
  if (c >= kHangul && c < kHangul + kSyllables) {
    append_hangul(c - kHangul, folded);
    return;
  }
  const LongFold* many = entry_of<LongFold>(kLongFolds, &LongFold::from, c);
  if (many != nullptr && many->from == c) {
    folded += many->to;
    return;
  }
  const Fold* fold = entry_of<Fold>(kFolds, &Fold::first, c);
  if (fold != nullptr && c <= fold->last && (c - fold->first) % fold->step == 0) {
    c = fold->to + (c - fold->first) / fold->step * fold->to_step;
  }
  folded += c;
}

class Splitter {
 public:
  void add(char32_t c) {
    if (is_in(kBlanks, c)) {
      end_word();
    } else if (!is_in(kDropped, c)) {
      folded_.clear();
      append_folded(c, folded_);
      add_folded(is_in(kIdeographs, c));
    }
  }

  std::vector<std::u32string> words() && {
    end_word();
    return std::move(words_);
  }

 private:
  void add_folded(bool is_ideograph) {
    for (const char32_t c : folded_) {
      const bool is_alone = is_ideograph || is_in(kPunctuation, c);
      if (is_alone) {
        end_word();
      }
      word_ += c;
      if (is_alone) {
        end_word();
      }
    }
  }

  void end_word() {
    if (!word_.empty()) {
      words_.push_back(std::move(word_));
      word_.clear();
    }
  }

  std::vector<std::u32string> words_;
  std::u32string word_;
  std::u32string folded_;  // of one character
};

constexpr char32_t kReplacement = 0xFFFD;

// The bytes of a character that begins with `lead`; 0 for a byte that begins none.
std::size_t utf8_size(unsigned char lead) {
  if (lead < 0x80) {
    return 1;
  }
  return lead >= 0xC2 && lead <= 0xDF   ? 2
         : lead >= 0xE0 && lead <= 0xEF ? 3
         : lead >= 0xF0 && lead <= 0xF4 ? 4
                                        : 0;
}

// The character in whole bytes; kReplacement where they hold none.
char32_t decode(std::string_view bytes) {
  constexpr char32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (bytes.size() == 1) {
    return static_cast<unsigned char>(bytes[0]);
  }
  char32_t c = static_cast<unsigned char>(bytes[0]) & (0x7FU >> bytes.size());
  for (const char byte : bytes.substr(1)) {
    const auto more = static_cast<unsigned char>(byte);
    if ((more & 0xC0U) != 0x80) {
      return kReplacement;
    }
    c = c << 6 | (more & 0x3FU);
  }
  const bool is_surrogate = c >= 0xD800 && c < 0xE000;
  return c < kLeast[bytes.size()] || c > 0x10FFFF || is_surrogate ? kReplacement : c;
}

}  // namespace

std::u32string decode_utf8(std::string_view text) {
  std::u32string characters;
  while (!text.empty()) {
    const std::size_t size = utf8_size(static_cast<unsigned char>(text[0]));
    const bool is_whole = size != 0 && size <= text.size();
    const char32_t c = is_whole ? decode(text.substr(0, size)) : kReplacement;
    characters += c;
    text.remove_prefix(is_whole && c != kReplacement ? size : 1);
  }
  return characters;
}

std::vector<std::u32string> split_words(std::u32string_view text) {
  Splitter splitter;
  for (const char32_t c : text) {
    splitter.add(c);
  }
  return std::move(splitter).words();
}

}  // namespace embeddings
