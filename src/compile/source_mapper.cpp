#include "compile/source_mapper.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace stof::compile {

namespace {

struct Place {
  std::string file;
  int line = 0;

  std::string str() const { return fmt::format("{}:{}", file, line); }
};

std::optional<int> consume_int(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  int number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) {
    return std::nullopt;
  }
  text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
  return number;
}

// A line of the rendered text is a line of a template; a line that the map does not cover stays.
Place origin(std::string_view file, int line, const kernel::LineMap& lines) {
  if (file == kProgramName) {
    if (const auto [mapped_file, mapped_line] = lines.origin(line); mapped_line > 0) {
      return {std::string(mapped_file), mapped_line};
    }
  }
  return {std::string(file), line};
}

// "instantiation of … at line 6", of the rendered text, or "… at line 6 of FILE".
std::string map_note(const std::string& note, const kernel::LineMap& lines) {
  constexpr std::string_view kAt = " at line ";
  const std::size_t at = note.rfind(kAt);
  if (at == std::string::npos) {
    return note;
  }
  std::string_view rest = std::string_view(note).substr(at + kAt.size());
  const auto line = consume_int(rest);
  constexpr std::string_view kOf = " of ";
  if (!line || !(rest.empty() || rest.starts_with(kOf))) {
    return note;
  }
  const std::string_view file = rest.empty() ? kProgramName : rest.substr(kOf.size());
  return fmt::format("{} at {}", note.substr(0, at), origin(file, *line, lines).str());
}

// The index and line of ".loc 1 5 3" and of "inlined_at 1 5 3".
struct Location {
  int file = 0;
  int line = 0;
};

std::optional<Location> read_location(std::string_view text) {
  const auto file = consume_int(text);
  const auto line = consume_int(text);
  if (!file || !line) {
    return std::nullopt;
  }
  return Location{.file = *file, .line = *line};
}

std::optional<Location> location_after(std::string_view text, std::string_view word) {
  const std::size_t at = text.find(word);
  return at == std::string_view::npos ? std::nullopt : read_location(text.substr(at + word.size()));
}

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    lines.push_back(text.substr(0, text.find('\n')));
    text.remove_prefix(std::min(lines.back().size() + 1, text.size()));
  }
  return lines;
}

// .file 1 "/working/folder/kernel.cu": the compiler puts the working directory in front of names
// that have no folder of their own.
std::string file_name(const std::vector<std::string_view>& ptx, int index) {
  const std::string directive = fmt::format(".file\t{} \"", index);
  for (const std::string_view line : ptx) {
    if (const std::size_t at = line.find(directive); at != std::string_view::npos) {
      const std::string_view rest = line.substr(at + directive.size());
      const std::string_view path = rest.substr(0, rest.find('"'));
      return std::string(path.substr(path.rfind('/') + 1));
    }
  }
  return "";
}

}  // namespace

CompileMessage map_front_end_message(CompileMessage message, const kernel::LineMap& lines) {
  Place place = origin(message.file, message.line, lines);
  message.file = std::move(place.file);
  message.line = place.line;
  for (std::string& note : message.notes) {
    note = map_note(note, lines);
  }
  return message;
}

CompileMessage map_ptxas_message(const LogMessage& message, std::string_view ptx_text,
                                 const kernel::LineMap& lines) {
  CompileMessage mapped = message.message;
  const std::vector<std::string_view> ptx = split_lines(ptx_text);
  const auto end = static_cast<std::size_t>(std::max(message.ptx_line, 0));
  for (std::size_t i = std::min(end, ptx.size()); i > 0; --i) {
    const auto location = location_after(ptx[i - 1], ".loc\t");
    if (!location) {
      continue;
    }
    Place place = origin(file_name(ptx, location->file), location->line, lines);
    mapped.file = std::move(place.file);
    mapped.line = place.line;
    if (const auto caller = location_after(ptx[i - 1], "inlined_at ")) {
      const Place call = origin(file_name(ptx, caller->file), caller->line, lines);
      mapped.notes.push_back("called from " + call.str());
    }
    break;
  }
  if (end > 0 && end <= ptx.size()) {
    std::string_view instruction = ptx[end - 1];
    instruction.remove_prefix(std::min(instruction.find_first_not_of(" \t"), instruction.size()));
    if (!instruction.empty()) {
      mapped.notes.push_back(fmt::format("PTX: {}", instruction));
    }
  }
  return mapped;
}

}  // namespace stof::compile
