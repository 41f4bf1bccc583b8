#include "render/include_closure.hpp"

#include <vector>

#include <fmt/format.h>

#include "render/parsed_template.hpp"
#include "render/walk.hpp"
#include "stof/error.hpp"

namespace stof::render {

namespace {

// The headers that a text includes, in comments too.
LoadedNames headers_named(std::string_view text) {
  constexpr std::string_view kDirective = "include \"";
  LoadedNames loaded;
  for (std::size_t at = text.find(kDirective); at != std::string_view::npos;
       at = text.find(kDirective, at)) {
    at += kDirective.size();
    const std::string name(text.substr(at, text.find_first_of("\"\n", at) - at));
    loaded.is_complete = loaded.is_complete && name.find('{') == std::string::npos;
    loaded.names.insert(name);
  }
  return loaded;
}

// What one file names; that it does not parse, or names what the store has not, is an error of the
// rendering.
LoadedNames names_in(const std::string& file, const std::string& text) {
  LoadedNames loaded = headers_named(text);
  if (file.ends_with(".jinja")) {
    try {
      const LoadedNames templates = names_loaded(parse_template(file, text)->body);
      loaded.names.insert(templates.names.begin(), templates.names.end());
      loaded.is_complete = loaded.is_complete && templates.is_complete;
    } catch (const TemplateError&) {
      return loaded;
    }
  }
  return loaded;
}

}  // namespace

std::set<std::string> include_closure(const TemplateStore& store, const std::string& file) {
  std::set<std::string> closure;
  std::vector<std::string> open = {file};
  while (!open.empty()) {
    const std::string next = std::move(open.back());
    open.pop_back();
    const auto found = store.files().find(next);
    if (found == store.files().end() || !closure.insert(next).second) {
      continue;
    }
    const LoadedNames loaded = names_in(next, found->second.text);
    if (!loaded.is_complete) {
      for (const auto& [path, any] : store.files()) {
        closure.insert(path);
      }
      return closure;
    }
    open.insert(open.end(), loaded.names.begin(), loaded.names.end());
  }
  return closure;
}

base::Digest closure_digest(const TemplateStore& store, const std::string& file) {
  std::string all;
  for (const std::string& path : include_closure(store, file)) {
    const std::string& text = store.files().find(path)->second.text;
    all += fmt::format("{} {} {}{}", path.size(), text.size(), path, text);
  }
  return base::hash(all);
}

}  // namespace stof::render
