#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.hpp"
#include "render/embedded_templates.hpp"

namespace stof::render {

inline constexpr std::string_view kEmbeddedOrigin = "embedded";

struct TemplateFile {
  std::string text;
  std::string origin;  // kEmbeddedOrigin, or the folder that it was read from
};

// A file that stands in for another of the same path. Whether it may is for the caller to decide.
struct Shadow {
  std::string path;
  std::string origin;         // of the file that is used
  std::string hidden_origin;  // of the file that is not

  bool hides_embedded() const { return hidden_origin == kEmbeddedOrigin; }
};

// A file of a folder that is none of the templates, and why.
struct UnreadFile {
  std::string path;  // below its root
  std::string reason;
};

// Every template (*.jinja) and device header (*.cuh) that a rendering may use, by path below its
// root: "attention/row.jinja". An immutable value; files are read once, when it is made.
class TemplateStore {
 public:
  // The embedded templates and those of the folders; the first folder that has a path wins, and
  // every folder wins over what is embedded, but for files that are equal to it. Links are
  // followed. Throws GraphError for a folder that cannot be read.
  static TemplateStore open(std::span<const std::filesystem::path> folders);
  // Of given texts, as if they were embedded.
  static TemplateStore from_texts(const std::map<std::string, std::string>& texts);

  // The same, with embedded files again in the place of those that hide them.
  TemplateStore with_embedded(std::span<const std::string> paths) const;

  // Null where there is none. Throws Failure for a path that is absolute or holds "..".
  const TemplateFile* find(std::string_view path) const;

  const std::map<std::string, TemplateFile, std::less<>>& files() const { return files_; }
  std::map<std::string, std::string> texts() const;                // by path
  const std::vector<Shadow>& shadows() const { return shadows_; }  // ordered by path
  // Files that cannot be read, or are larger than kMaxSourceBytes.
  const std::vector<UnreadFile>& unread() const { return unread_; }
  // Of all paths and texts that are used, whatever their origins.
  const base::Digest& digest() const { return digest_; }

 private:
  TemplateStore() = default;
  void add_folder(const std::filesystem::path& folder);
  void add(std::string path, TemplateFile file);
  void seal();

  std::map<std::string, TemplateFile, std::less<>> files_;
  std::vector<Shadow> shadows_;
  std::vector<UnreadFile> unread_;
  base::Digest digest_;
};

}  // namespace stof::render
