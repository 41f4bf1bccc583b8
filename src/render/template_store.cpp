#include "render/template_store.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>
#include <system_error>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "render/limits.hpp"
#include "render/source.hpp"
#include "stof/error.hpp"

namespace stof::render {

namespace {

bool leaves_root(std::string_view path) {
  if (path.starts_with('/')) {
    return true;
  }
  while (!path.empty()) {
    const std::size_t end = std::min(path.find('/'), path.size());
    if (path.substr(0, end) == "..") {
      return true;
    }
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return false;
}

// The text, or else why there is none.
std::variant<std::string, UnreadFile> read_file(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    return UnreadFile{.path = {}, .reason = "it is no file, or leads to none"};
  }
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (!error && size > kMaxSourceBytes) {
    return UnreadFile{.path = {},
                      .reason = fmt::format("{} bytes, more than {}", size, kMaxSourceBytes)};
  }
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (error || file.bad() || !file.is_open()) {
    return UnreadFile{.path = {}, .reason = "it cannot be read"};
  }
  return text;
}

bool is_template(const std::filesystem::path& path) {
  return path.extension() == ".jinja" || path.extension() == ".cuh";
}

}  // namespace

TemplateStore TemplateStore::open(std::span<const std::filesystem::path> folders) {
  TemplateStore store;
  for (const std::filesystem::path& folder : folders) {
    store.add_folder(folder);
  }
  for (const EmbeddedTemplate& embedded : embedded_templates()) {
    store.add(std::string(embedded.path),
              {.text = std::string(embedded.text), .origin = std::string(kEmbeddedOrigin)});
  }
  store.seal();
  return store;
}

TemplateStore TemplateStore::from_texts(const std::map<std::string, std::string>& texts) {
  TemplateStore store;
  for (const auto& [path, text] : texts) {
    store.add(path, {.text = text, .origin = std::string(kEmbeddedOrigin)});
  }
  store.seal();
  return store;
}

TemplateStore TemplateStore::with_embedded(std::span<const std::string> paths) const {
  TemplateStore store = *this;
  for (const EmbeddedTemplate& embedded : embedded_templates()) {
    const std::string path(embedded.path);
    if (std::ranges::find(paths, path) != paths.end()) {
      store.files_.at(path) = {.text = std::string(embedded.text),
                               .origin = std::string(kEmbeddedOrigin)};
    }
  }
  std::erase_if(store.shadows_, [&](const Shadow& shadow) {
    return std::ranges::find(paths, shadow.path) != paths.end();
  });
  store.seal();
  return store;
}

void TemplateStore::add_folder(const std::filesystem::path& folder) {
  using FolderIterator = std::filesystem::recursive_directory_iterator;
  std::error_code error;
  std::set<std::filesystem::path> folders = {std::filesystem::weakly_canonical(folder, error)};
  FolderIterator entry(folder, std::filesystem::directory_options::follow_directory_symlink, error);
  for (; !error && entry != FolderIterator(); entry.increment(error)) {
    std::error_code ignored;
    std::string path = entry->path().lexically_relative(folder).generic_string();
    if (entry->is_directory(ignored)) {
      // A link may lead back to where it stands.
      const auto real = std::filesystem::weakly_canonical(entry->path(), ignored);
      if (!folders.insert(real).second) {
        entry.disable_recursion_pending();
      }
    } else if (is_template(entry->path())) {
      auto read = read_file(entry->path());
      if (auto* text = std::get_if<std::string>(&read)) {
        add(std::move(path), {.text = std::move(*text), .origin = folder.string()});
      } else {
        unread_.push_back({std::move(path), std::get<UnreadFile>(read).reason});
      }
    }
  }
  if (error) {
    throw GraphError(fmt::format("template folder {}: {}", folder.string(), error.message()));
  }
}

// The first file of a path stays; each later one is hidden, or takes the place of an equal one.
void TemplateStore::add(std::string path, TemplateFile file) {
  const auto found = files_.find(path);
  if (found == files_.end()) {
    files_.emplace(std::move(path), std::move(file));
  } else if (file.origin == kEmbeddedOrigin && file.text == found->second.text) {
    found->second.origin = std::move(file.origin);
  } else {
    shadows_.push_back({.path = std::move(path),
                        .origin = found->second.origin,
                        .hidden_origin = std::move(file.origin)});
  }
}

void TemplateStore::seal() {
  std::ranges::stable_sort(shadows_, {}, &Shadow::path);
  std::string all;
  for (const auto& [path, file] : files_) {
    all += fmt::format("{} {} {}{}", path.size(), file.text.size(), path, file.text);
  }
  digest_ = base::hash(all);
}

std::map<std::string, std::string> TemplateStore::texts() const {
  std::map<std::string, std::string> texts;
  for (const auto& [path, file] : files_) {
    texts.emplace(path, file.text);
  }
  return texts;
}

const TemplateFile* TemplateStore::find(std::string_view path) const {
  if (leaves_root(path)) {
    throw Failure(fmt::format("template path '{}' leaves the template folders", path));
  }
  const auto found = files_.find(path);
  return found == files_.end() ? nullptr : &found->second;
}

}  // namespace stof::render
