#include "render/json_text.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "render/formatting.hpp"
#include "render/limits.hpp"
#include "render/operators.hpp"
#include "render/text.hpp"

namespace stof::render {

namespace {

constexpr std::size_t kMaxJsonBytes = std::size_t{16} << 20U;

std::string json_real(double number) {
  if (std::isnan(number)) {
    return "NaN";
  }
  return std::isinf(number) ? (number > 0 ? "Infinity" : "-Infinity") : format_real(number);
}

std::string unicode_escape(char32_t code) {
  const auto number = static_cast<std::uint32_t>(code);
  if (number < 0x10000) {
    return fmt::format("\\u{:04x}", number);
  }
  const std::uint32_t offset = number - 0x10000;
  return fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + (offset >> 10U), 0xDC00 + (offset & 0x3FFU));
}

std::string json_quote(std::string_view text) {
  std::string quoted = "\"";
  for (std::size_t i = 0; i < text.size();) {
    const Character character = decode(text, i);
    constexpr std::string_view kShort = "\"\\\n\r\t\f\b";
    constexpr std::string_view kLetters = "\"\\nrtfb";
    const std::size_t known = character.code < 0x80 ? kShort.find(static_cast<char>(character.code))
                                                    : std::string_view::npos;
    constexpr std::string_view kHtml = "<>&'";
    const bool is_html = character.code < 0x80 &&
                         kHtml.find(static_cast<char>(character.code)) != std::string_view::npos;
    if (known != std::string_view::npos) {
      quoted += {'\\', kLetters[known]};
    } else if (character.code < 0x20 || character.code > 0x7E || is_html) {
      quoted += unicode_escape(character.code);
    } else {
      quoted += static_cast<char>(character.code);
    }
    i += character.size;
  }
  return quoted + '"';
}

class JsonWriter {
 public:
  explicit JsonWriter(const Value& indent) {
    if (indent.is_none()) {
      return;
    }
    is_indented_ = true;
    if (const Text* text = indent.text()) {
      indent_ = text->bytes;
    } else if (const auto width = as_integer(indent)) {
      if (*width > static_cast<std::int64_t>(kMaxJsonBytes)) {
        throw Failure("tojson: the indentation is too wide");
      }
      indent_.assign(static_cast<std::size_t>(std::max<std::int64_t>(*width, 0)), ' ');
    } else {
      throw Failure("tojson: the indentation must be an integer or a string");
    }
  }

  void write(const Value& value) {
    if (const Text* text = value.text()) {
      add(json_quote(text->bytes));
    } else if (const List* list = value.list()) {
      write_items(list->items);
    } else if (const Tuple* tuple = value.tuple()) {
      write_items(tuple->items);
    } else if (const Dict* dict = value.dict()) {
      write_entries(*dict);
    } else {
      add(scalar(value));
    }
  }

  std::string take() { return std::move(out_); }

 private:
  static std::string scalar(const Value& value) {
    if (value.is_none()) {
      return "null";
    }
    if (const bool* truth = value.boolean()) {
      return *truth ? "true" : "false";
    }
    if (const std::int64_t* integer = value.integer()) {
      return fmt::to_string(*integer);
    }
    if (const double* real = value.real()) {
      return json_real(*real);
    }
    require_defined(value);
    throw Failure(fmt::format("Object of type {} is not JSON serializable", type_name(value)));
  }

  void write_items(const std::vector<Value>& items) {
    if (items.empty()) {
      return add("[]");
    }
    open("[");
    for (std::size_t i = 0; i < items.size(); ++i) {
      separate(i == 0);
      write(items[i]);
    }
    close("]");
  }

  void write_entries(const Dict& dict) {
    if (dict.size() == 0) {
      return add("{}");
    }
    std::vector<Dict::Entry> entries = dict.entries();
    std::ranges::stable_sort(entries, less, &Dict::Entry::first);
    open("{");
    for (std::size_t i = 0; i < entries.size(); ++i) {
      separate(i == 0);
      const Value& key = entries[i].first;
      if (key.tuple() != nullptr || key.object() != nullptr) {
        throw Failure(
            fmt::format("keys must be str, int, float, bool or None, not {}", type_name(key)));
      }
      add(key.is_text() ? json_quote(key.text()->bytes) : json_quote(scalar(key)));
      add(": ");
      write(entries[i].second);
    }
    close("}");
  }

  void open(std::string_view bracket) {
    if (++depth_ > kMaxValueDepth) {
      throw Failure(fmt::format("values nested deeper than {} levels", kMaxValueDepth));
    }
    add(bracket);
  }

  void separate(bool is_first) {
    if (!is_first) {
      add(is_indented_ ? "," : ", ");
    }
    if (is_indented_) {
      new_line();
    }
  }

  void close(std::string_view bracket) {
    --depth_;
    if (is_indented_) {
      new_line();
    }
    add(bracket);
  }

  void new_line() {
    add("\n");
    for (int i = 0; i < depth_; ++i) {
      add(indent_);
    }
  }

  void add(std::string_view text) {
    if (out_.size() + text.size() > kMaxJsonBytes) {
      throw Failure(fmt::format("a text of more than {} bytes", kMaxJsonBytes));
    }
    out_ += text;
  }

  bool is_indented_ = false;
  std::string indent_;
  std::string out_;
  int depth_ = 0;
};

}  // namespace

std::string to_json(const Value& value, const Value& indent) {
  JsonWriter writer(indent);
  writer.write(value);
  return writer.take();
}

}  // namespace stof::render
