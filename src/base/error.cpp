#include "stof/error.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/text.hpp"

namespace stof {

std::string TemplateError::text(const std::string& file, int line, int column,
                                const std::string& message, const std::string& source_line) {
  std::string text = fmt::format("{}:{}:{}: {}", file, line, column, message);
  if (!source_line.empty()) {
    // Tabs stay tabs below the line, so that the caret stands under its column in any editor.
    std::string indent(source_line, 0,
                       std::min<std::size_t>(std::max(column - 1, 0), source_line.size()));
    std::replace_if(
        indent.begin(), indent.end(), [](char c) { return c != '\t'; }, ' ');
    text += fmt::format("\n  {}\n  {}^", source_line, indent);
  }
  return text;
}

std::string CompileMessage::str() const {
  constexpr std::array<const char*, 3> kNames = {"info", "warning", "error"};
  std::string result;
  if (!file.empty()) {
    result = line > 0 ? fmt::format("{}:{}: ", file, line) : file + ": ";
  }
  result += kNames.at(static_cast<std::size_t>(severity));
  if (!code.empty()) {
    result += " " + code;
  }
  result += ": " + text;
  for (const std::string& note : notes) {
    result += "\n  " + note;
  }
  return result;
}

namespace {

std::string list_errors(const std::string& summary, const std::vector<CompileMessage>& messages) {
  constexpr int kMaxListed = 8;
  std::string list;
  int count = 0;
  for (const CompileMessage& message : messages) {
    if (message.severity == CompileMessage::Severity::Error && ++count <= kMaxListed) {
      list += '\n';
      list += message.str();
    }
  }
  if (count > kMaxListed) {
    list += fmt::format("\nand {} more", count - kMaxListed);
  }
  return fmt::format("compile: {} has {}{}", summary, base::counted(count, "error", "errors"),
                     list);
}

}  // namespace

CompileError::CompileError(const std::string& summary, std::string log, std::string source,
                           std::vector<CompileMessage> messages)
    : Error(list_errors(summary, messages)),
      log_(std::move(log)),
      source_(std::move(source)),
      messages_(std::move(messages)) {}

}  // namespace stof
