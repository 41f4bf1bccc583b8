#include "compile/log_parser.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <optional>
#include <utility>

// A log has two parts in any mixture. The front end writes "FILE(LINE): SEVERITY: TEXT", then the
// source line and a caret, then what led there, then an empty line. ptxas writes lines that start
// with its name; "Function properties" and "Used" lines belong to the last function that was named.

namespace stof::compile {

namespace {

using Severity = CompileMessage::Severity;

// Takes a prefix off the text, if it has it.
bool consume(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) {
    return false;
  }
  text.remove_prefix(prefix.size());
  return true;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) {
    return {};
  }
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

template <typename T>
std::optional<T> consume_number(std::string_view& text) {
  T number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0) {
    return std::nullopt;
  }
  text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
  return number;
}

std::optional<int> number_after(std::string_view text, std::string_view words) {
  const std::size_t at = text.find(words);
  if (at == std::string_view::npos) {
    return std::nullopt;
  }
  text.remove_prefix(at + words.size());
  return consume_number<int>(text);
}

// The text between the first two quotes.
std::string quoted(std::string_view text) {
  const std::size_t begin = text.find('\'');
  const std::size_t end = begin == std::string_view::npos ? begin : text.find('\'', begin + 1);
  return end == std::string_view::npos ? "" : std::string(text.substr(begin + 1, end - begin - 1));
}

struct SeverityWord {
  std::string_view word;
  Severity severity;
};

constexpr auto kFrontEndWords =
    std::to_array<SeverityWord>({{"error", Severity::Error},
                                 {"warning", Severity::Warning},
                                 {"remark", Severity::Info},
                                 {"catastrophic error", Severity::Error},
                                 {"internal error", Severity::Error}});

constexpr auto kPtxasWords = std::to_array<SeverityWord>({{"info", Severity::Info},
                                                          {"warning", Severity::Warning},
                                                          {"error", Severity::Error},
                                                          {"fatal", Severity::Error}});

// "error: TEXT" or "warning #177-D: TEXT".
std::optional<LogMessage> front_end_text(std::string_view text) {
  for (const auto& [word, severity] : kFrontEndWords) {
    std::string_view rest = text;
    if (!consume(rest, word)) {
      continue;
    }
    LogMessage result;
    result.message.severity = severity;
    if (consume(rest, " #")) {
      result.message.code = rest.substr(0, rest.find(':'));
      rest.remove_prefix(result.message.code.size());
    }
    if (consume(rest, ": ")) {
      result.message.text = rest;
      return result;
    }
  }
  return std::nullopt;
}

// "FILE(LINE): " before that; names of files may hold parentheses too.
std::optional<LogMessage> front_end_message(std::string_view line) {
  constexpr std::string_view kEnd = "): ";
  for (std::size_t end = line.find(kEnd); end != std::string_view::npos;
       end = line.find(kEnd, end + 1)) {
    const std::size_t begin = line.rfind('(', end);
    if (begin == std::string_view::npos || begin == 0) {
      continue;
    }
    std::string_view digits = line.substr(begin + 1, end - begin - 1);
    const auto number = consume_number<int>(digits);
    auto result = front_end_text(line.substr(end + kEnd.size()));
    if (number && digits.empty() && result) {
      result->message.file = line.substr(0, begin);
      result->message.line = *number;
      return result;
    }
  }
  if (consume(line, "nvrtc: ")) {
    return front_end_text(line);
  }
  return std::nullopt;
}

class LogParser {
 public:
  ParsedLog parse(std::string_view log) {
    while (!log.empty()) {
      const std::string_view line = log.substr(0, log.find('\n'));
      log.remove_prefix(std::min(line.size() + 1, log.size()));
      read_line(line);
    }
    restore_source_order();
    return std::move(result_);
  }

 private:
  void read_line(std::string_view line) {
    std::string_view ptxas = trimmed(line);
    if (consume(ptxas, "ptxas ")) {
      continuation_ = -1;
      read_ptxas(trimmed(ptxas));
    } else if (continuation_ >= 0 && line.starts_with(' ')) {
      // The source line, the caret, then what led there.
      if (++continuation_ > 2) {
        read_note(trimmed(line));
      }
    } else if (auto message = front_end_message(line)) {
      result_.messages.push_back(std::move(*message));
      continuation_ = 0;
    } else {
      continuation_ = -1;
    }
  }

  // "detected during instantiation of X", or "detected during:" with those on lines of their own.
  void read_note(std::string_view note) {
    if (consume(note, "detected during")) {
      consume(note, ":");
    }
    if (!trimmed(note).empty()) {
      result_.messages.back().message.notes.emplace_back(trimmed(note));
    }
  }

  // What follows "ptxas ".
  void read_ptxas(std::string_view line) {
    int ptx_line = 0;
    if (consume(line, "application ptx input, line ")) {
      ptx_line = consume_number<int>(line).value_or(0);
      consume(line, "; ");
    } else if (consume(line, ".")) {
      read_properties(trimmed(line));
      return;
    }
    for (const auto& [word, severity] : kPtxasWords) {
      std::string_view rest = line;
      if (consume(rest, word) && consume(rest = trimmed(rest), ": ")) {
        read_ptxas_text(severity, rest, ptx_line);
        return;
      }
    }
  }

  void read_ptxas_text(Severity severity, std::string_view text, int ptx_line) {
    LogMessage result = {.message = {}, .ptx_line = ptx_line};
    result.message.severity = severity;
    if (text.starts_with("(C")) {
      const std::size_t end = std::min(text.find(')'), text.size() - 1);
      result.message.code = text.substr(1, end - 1);
      text.remove_prefix(end + 1);
      // "injected in around line 12 by compiler", "to compile instruction at line 12 in function".
      result.ptx_line = number_after(text, " line ").value_or(ptx_line);
    }
    result.message.text = trimmed(text);
    if (result.message.text == "Ptx assembly aborted due to errors") {
      return;  // the errors come before it
    }
    const bool is_message = severity != Severity::Info || !result.message.code.empty() ||
                            is_performance_loss(result.message);
    if (is_message) {
      result_.messages.push_back(std::move(result));
    } else {
      read_resources(text);
    }
  }

  void read_resources(std::string_view text) {
    if (consume(text, "Compiling entry function ")) {
      entry_starts_.push_back(result_.functions.size());
      FunctionResources& entry = result_.functions.emplace_back();
      entry.name = quoted(text);
      entry.is_entry = true;
    } else if (consume(text, "Function properties for ")) {
      const std::string_view name = trimmed(text);
      if (result_.functions.empty() || result_.functions.back().name != name) {
        result_.functions.emplace_back().name = name;
      }
    } else if (consume(text, "Used ")) {
      read_use(text);
    }
  }

  // "32 registers, used 1 barriers, 2048 bytes smem": by unit, since parts that are 0 are left out.
  void read_use(std::string_view text) {
    for_each_part(text, [](FunctionResources& function, std::int64_t value, std::string_view unit) {
      if (unit == "registers") {
        function.registers = value;
      } else if (unit == "barriers") {
        function.barriers = value;
      } else if (unit == "bytes smem") {
        function.shared_bytes = value;
      }
    });
  }

  // "160 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads"
  void read_properties(std::string_view text) {
    for_each_part(text, [](FunctionResources& function, std::int64_t value, std::string_view unit) {
      if (unit == "bytes stack frame") {
        function.stack_bytes = value;
      } else if (unit == "bytes spill stores") {
        function.spill_store_bytes = value;
      } else if (unit == "bytes spill loads") {
        function.spill_load_bytes = value;
      }
    });
  }

  template <typename Read>
  void for_each_part(std::string_view text, Read read) {
    while (!text.empty() && !result_.functions.empty()) {
      std::string_view part = trimmed(text.substr(0, text.find(',')));
      text.remove_prefix(std::min(text.find(','), text.size() - 1) + 1);
      consume(part, "used ");
      if (const auto value = consume_number<std::int64_t>(part)) {
        read(result_.functions.back(), *value, trimmed(part));
      }
    }
  }

  // ptxas takes the entry points last to first, each followed by the functions that it calls.
  void restore_source_order() {
    std::vector<FunctionResources> ordered;
    std::size_t end = result_.functions.size();
    for (auto start = entry_starts_.rbegin(); start != entry_starts_.rend(); ++start) {
      std::move(result_.functions.begin() + static_cast<std::ptrdiff_t>(*start),
                result_.functions.begin() + static_cast<std::ptrdiff_t>(end),
                std::back_inserter(ordered));
      end = *start;
    }
    result_.functions = std::move(ordered);
  }

  ParsedLog result_;
  std::vector<std::size_t> entry_starts_;  // indices into result_.functions
  int continuation_ = -1;  // lines since a message of the front end; -1 outside of one
};

}  // namespace

ParsedLog parse_log(std::string_view log) {
  return LogParser().parse(log);
}

}  // namespace stof::compile
