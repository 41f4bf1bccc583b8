// The tokeniser of examples/05_embeddings, held to what make_fixture.py wrote down.
#include "tokenizer.hpp"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "words.hpp"

using embeddings::Tokenizer;

namespace {

const std::filesystem::path kFixture = STOF_SOURCE_DIR "/tests/examples/embeddings";
constexpr std::size_t kNoLimit = 100000;

std::vector<std::string> read_lines(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    lines.push_back(line);
  }
  return lines;
}

// Of the words as UTF-32, one character of ASCII a character.
std::string words(std::string_view text) {
  std::string joined;
  for (const std::u32string& word : embeddings::split_words(embeddings::decode_utf8(text))) {
    joined += joined.empty() ? "" : "|";
    for (const char32_t c : word) {
      joined += c < 0x80 ? std::string(1, static_cast<char>(c))
                         : fmt::format("<{:x}>", static_cast<std::uint32_t>(c));
    }
  }
  return joined;
}

}  // namespace

TEST_CASE("every line gets the tokens that the reference gives it") {
  const Tokenizer tokenizer(kFixture / "vocabulary.txt");
  const std::vector<std::string> lines = read_lines(kFixture / "lines.txt");
  const std::vector<std::string> expected = read_lines(kFixture / "ids.txt");
  REQUIRE(lines.size() == 1200);
  REQUIRE(expected.size() == lines.size());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::vector<std::int32_t> ids = tokenizer.encode(lines[i], kNoLimit);
    CHECK(ids.front() == 2);  // [CLS]
    CHECK(ids.back() == 3);   // [SEP]
    ids = {ids.begin() + 1, ids.end() - 1};
    CHECK_MESSAGE(fmt::format("{}", fmt::join(ids, " ")) == expected[i], "line ", i + 1);
  }
}

TEST_CASE("words lose case and accents; punctuation and ideographs stand alone") {
  CHECK(words("Hello, World!") == "hello|,|world|!");
  CHECK(words("Ångström\tÀ LA\ncarte") == "angstrom|a|la|carte");
  CHECK(words("a\u4e2d\u6587b") == "a|<4e2d>|<6587>|b");
  CHECK(words("\uac01") == "<1100><1161><11a8>");
  CHECK(words("soft\u00adhyphen zero\u200bwidth") == "softhyphen|zerowidth");
  CHECK(words("") == "");
  CHECK(words(" \n\t\u3000") == "");
}

TEST_CASE("bytes that are no UTF-8 are left out") {
  CHECK(words("a\xff"
              "b") == "ab");
  CHECK(words("a\xc3") == "a");
  CHECK(words("\xc0\xaf\xed\xa0\x80\xf4\x90\x80\x80x") == "x");  // overlong, surrogate, too large
  CHECK(words("\xe4\xb8z") == "z");                              // the z is no part of it
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    std::string bytes(random() % 40, '\0');
    for (char& byte : bytes) {
      byte = static_cast<char>(random());
    }
    for (const char32_t c : embeddings::decode_utf8(bytes)) {
      CHECK(c <= 0x10FFFF);
    }
  }
}

TEST_CASE("a long text is cut, between [CLS] and [SEP]") {
  const Tokenizer tokenizer(kFixture / "vocabulary.txt");
  const std::string text = "the old sailor repaired the broken compass";
  const std::vector<std::int32_t> whole = tokenizer.encode(text, kNoLimit);
  REQUIRE(whole.size() == 9);
  CHECK(tokenizer.encode(text, 9) == whole);
  for (std::size_t most = 2; most < 9; ++most) {
    std::vector<std::int32_t> expected(whole.begin(),
                                       whole.begin() + static_cast<std::ptrdiff_t>(most) - 1);
    expected.push_back(whole.back());
    CHECK(tokenizer.encode(text, most) == expected);
  }
}

TEST_CASE("a vocabulary that is not there or lacks a special token is an error") {
  CHECK_THROWS_WITH(Tokenizer("/nowhere/vocab.txt"), "tokenizer: cannot open /nowhere/vocab.txt");
  const auto path = std::filesystem::temp_directory_path() /
                    fmt::format("stof-vocabulary-{}", std::random_device()());
  std::ofstream(path) << "[UNK]\n[CLS]\nthe\n";
  CHECK_THROWS_WITH(Tokenizer{path}, "tokenizer: the vocabulary has no [SEP]");
  std::filesystem::remove(path);
}
