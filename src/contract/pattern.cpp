#include "contract/pattern.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>

#include <fmt/format.h>

namespace stof::contract {

namespace {

class PatternParser {
 public:
  explicit PatternParser(const HeaderValue& source) : source_(source), text_(source.string()) {}

  PatternStep parse() {
    PatternStep step;
    step.outputs = names("an output name");
    expect('=');
    step.op = name("an operator name");
    while (accept('|')) {
      step.alternatives.push_back(name("an operator name"));
    }
    step.is_optional = accept('?');
    expect('(');
    if (!at(')') && !at(';')) {
      step.inputs = names("an input name");
    }
    if (accept(';')) {
      do {
        step.attributes.push_back(attribute());
      } while (accept(','));
    }
    expect(')');
    if (skip_space(); position_ != text_.size()) {
      fail("the end");
    }
    check_attributes(step);
    return step;
  }

 private:
  void skip_space() {
    while (position_ < text_.size() && text_[position_] == ' ') {
      ++position_;
    }
  }

  bool at(char c) {
    skip_space();
    return position_ < text_.size() && text_[position_] == c;
  }

  bool accept(char c) {
    const bool found = at(c);
    position_ += found ? 1 : 0;
    return found;
  }

  void expect(char c) {
    if (!accept(c)) {
      fail(fmt::format("'{}'", c));
    }
  }

  std::string name(const char* what) {
    skip_space();
    std::size_t end = position_;
    const auto in_word = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
    while (end < text_.size() && in_word(static_cast<unsigned char>(text_[end]))) {
      ++end;
    }
    if (end == position_ || std::isdigit(static_cast<unsigned char>(text_[position_])) != 0) {
      fail(what);
    }
    std::string word = text_.substr(position_, end - position_);
    position_ = end;
    return word;
  }

  std::vector<std::string> names(const char* what) {
    std::vector<std::string> words;
    do {
      words.push_back(name(what));
    } while (accept(','));
    return words;
  }

  PatternAttribute attribute() {
    PatternAttribute attribute;
    attribute.name = name("an attribute name");
    if (accept(':')) {
      const std::string type = name("int, float or bool");
      if (type == "int") {
        attribute.type = ScalarType::Int;
      } else if (type == "bool") {
        attribute.type = ScalarType::Bool;
      } else if (type != "float") {
        position_ -= type.size();
        fail("int, float or bool");
      }
    }
    if (accept('=')) {
      attribute.value = number();
    }
    return attribute;
  }

  double number() {
    skip_space();
    double value = 0;
    const char* begin = text_.data() + position_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error != std::errc()) {
      fail("a number");
    }
    position_ += static_cast<std::size_t>(end - begin);
    return value;
  }

  void check_attributes(const PatternStep& step) {
    for (std::size_t i = 0; i < step.attributes.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (step.attributes[i].name == step.attributes[j].name) {
          source_.fail(fmt::format("the attribute '{}' stands twice", step.attributes[i].name));
        }
      }
    }
  }

  [[noreturn]] void fail(const std::string& expected) {
    skip_space();
    std::string found = "the end";
    if (position_ < text_.size()) {
      const auto byte = static_cast<unsigned char>(text_[position_]);
      found = byte < 0x80 ? fmt::format("'{}'", text_[position_]) : fmt::format("byte {:#x}", byte);
    }
    source_.fail(position_, fmt::format("expected {}, found {}", expected, found));
  }

  const HeaderValue& source_;
  std::string text_;
  std::size_t position_ = 0;
};

}  // namespace

PatternStep parse_pattern_step(const HeaderValue& text) {
  return PatternParser(text).parse();
}

}  // namespace stof::contract
