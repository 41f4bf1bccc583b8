#include "render/header_expansion.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "render/limits.hpp"
#include "render/line_runs.hpp"
#include "stof/error.hpp"

namespace stof::render {

namespace {

// A preprocessor line: its word and what follows, both without blanks around.
struct Directive {
  std::string_view word;
  std::string_view rest;
};

std::string_view skip_blanks(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  return text;
}

std::optional<Directive> parse_directive(std::string_view line) {
  line = skip_blanks(line);
  if (!line.starts_with('#')) {
    return std::nullopt;
  }
  line = skip_blanks(line.substr(1));
  const std::size_t end = std::min(line.find_first_of(" \t\"<(/\r"), line.size());
  return Directive{.word = line.substr(0, end), .rest = skip_blanks(line.substr(end))};
}

// Whether a line leaves a block comment open that it found open or opened.
bool ends_in_comment(std::string_view line, bool is_in_comment) {
  char quote = '\0';
  for (std::size_t i = 0; i < line.size(); ++i) {
    const std::string_view pair = line.substr(i, 2);
    if (is_in_comment) {
      is_in_comment = pair != "*/";
      i += is_in_comment ? 0 : 1;
    } else if (quote != '\0') {
      quote = line[i] == quote ? '\0' : quote;
      i += line[i] == '\\' ? 1 : 0;
    } else if (pair == "//") {
      return false;
    } else if (pair == "/*") {
      is_in_comment = true;
      ++i;
    } else if (line[i] == '"' ||
               (line[i] == '\'' &&
                (i == 0 || std::isalnum(static_cast<unsigned char>(line[i - 1])) == 0))) {
      quote = line[i];
    }
  }
  return is_in_comment;
}

class HeaderExpander {
 public:
  HeaderExpander(const kernel::KernelSource& source, const TemplateStore& store,
                 std::size_t max_bytes)
      : source_(source), store_(store), max_bytes_(max_bytes) {
    result_.lines.files = source.lines.files;
  }

  kernel::KernelSource run() {
    result_.text.reserve(source_.text.size());
    expand(
        source_.text, [this](int line) { return origin_of(source_.lines.runs, line); }, false);
    return std::move(result_);
  }

 private:
  template <typename Origin>
  void expand(std::string_view text, const Origin& origin_at, bool is_header) {
    bool is_in_comment = false;
    int conditions = 0;
    int number = 1;
    while (!text.empty()) {
      const std::size_t end = text.find('\n');
      const bool has_end = end != std::string_view::npos;
      const std::string_view line = text.substr(0, end);
      text.remove_prefix(has_end ? end + 1 : text.size());
      const auto directive = is_in_comment ? std::nullopt : parse_directive(line);
      is_in_comment = ends_in_comment(line, is_in_comment);
      if (directive) {
        conditions += directive->word.starts_with("if") ? 1 : (directive->word == "endif" ? -1 : 0);
      }
      const LineOrigin origin = origin_at(number++);
      if (directive && directive->word == "include" && directive->rest.starts_with('"')) {
        include(*directive, line, origin, conditions);
      } else if (!(is_header && directive && directive->word == "pragma" &&
                   directive->rest.starts_with("once"))) {
        add(line, has_end, origin);
      }
    }
  }

  void include(const Directive& directive, std::string_view line, LineOrigin origin,
               int conditions) {
    const std::size_t close = directive.rest.find('"', 1);
    if (close == std::string_view::npos) {
      fail(origin, line, "#include has no closing quote");
    }
    const std::string name(directive.rest.substr(1, close - 1));
    const auto open = std::ranges::find(open_, name);
    if (open != open_.end()) {
      std::string cycle;
      for (auto file = open; file != open_.end(); ++file) {
        cycle += *file + " -> ";
      }
      fail(origin, line, fmt::format("headers include each other: {}{}", cycle, name));
    }
    if (conditions > 0) {
      fail(origin, line,
           fmt::format("#include \"{}\" within #if: a header stands once, for the whole file",
                       name));
    }
    if (!done_.insert(name).second) {
      return;
    }
    expand_file(name, look_up(name, line, origin));
  }

  const TemplateFile& look_up(const std::string& name, std::string_view line, LineOrigin origin) {
    const TemplateFile* file = nullptr;
    try {
      file = store_.find(name);
    } catch (const Failure& failure) {
      fail(origin, line, failure.what());
    }
    if (file == nullptr || !name.ends_with(".cuh")) {
      fail(origin, line, fmt::format("no device header \"{}\" in the template folders", name));
    }
    return *file;
  }

  void expand_file(const std::string& name, const TemplateFile& file) {
    const auto index = static_cast<int>(result_.lines.files.size());
    result_.lines.files.push_back(name);
    open_.push_back(name);
    expand(
        file.text, [index](int line) { return LineOrigin{.file = index, .line = line}; }, true);
    open_.pop_back();
    if (!result_.text.empty() && result_.text.back() != '\n') {
      result_.text += '\n';
    }
  }

  void add(std::string_view line, bool has_end, LineOrigin origin) {
    if (result_.text.size() + line.size() + 1 > max_bytes_) {
      throw TemplateError(file_of(origin), origin.line, 1,
                          fmt::format("a text of more than {} bytes", max_bytes_));
    }
    if (line.ends_with('\r')) {
      line.remove_suffix(1);
    }
    result_.text += line;
    result_.text += has_end ? "\n" : "";
    add_line(result_.lines.runs, line_++, origin);
  }

  std::string file_of(LineOrigin origin) const {
    return origin.file < 0 ? "" : result_.lines.files[static_cast<std::size_t>(origin.file)];
  }

  [[noreturn]] void fail(LineOrigin origin, std::string_view line,
                         const std::string& message) const {
    const auto column = static_cast<int>(std::min(line.find('#'), line.size())) + 1;
    throw TemplateError(file_of(origin), origin.line, column, message, std::string(line));
  }

  const kernel::KernelSource& source_;
  const TemplateStore& store_;
  std::size_t max_bytes_;
  kernel::KernelSource result_;
  int line_ = 1;
  std::set<std::string> done_;
  std::vector<std::string> open_;
};

}  // namespace

kernel::KernelSource expand_headers(const kernel::KernelSource& source, const TemplateStore& store,
                                    std::size_t max_bytes) {
  return HeaderExpander(source, store, max_bytes).run();
}

}  // namespace stof::render
