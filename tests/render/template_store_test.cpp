#include "render/template_store.hpp"

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <unistd.h>

#include "render/limits.hpp"
#include "stof/error.hpp"

using stof::render::embedded_templates;
using stof::render::EmbeddedTemplate;
using stof::render::Failure;
using stof::render::kEmbeddedOrigin;
using stof::render::TemplateFile;
using stof::render::TemplateStore;
using stof::render::UnreadFile;
namespace fs = std::filesystem;

namespace {

// A folder that goes with the test.
class Folder {
 public:
  explicit Folder(const std::string& name)
      : path_(fs::temp_directory_path() / (name + '.' + std::to_string(getpid()))) {
    fs::create_directories(path_);
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  void write(const std::string& name, const std::string& text) const {
    fs::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name, std::ios::binary) << text;
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

TemplateStore open(const std::vector<fs::path>& folders) {
  return TemplateStore::open(folders);
}

}  // namespace

TEST_CASE("a store holds what is embedded") {
  const TemplateStore store = open({});
  CHECK(store.files().size() == embedded_templates().size());
  CHECK(store.shadows().empty());
  const TemplateFile* warp = store.find("device/warp.cuh");
  REQUIRE(warp != nullptr);
  CHECK(warp->origin == kEmbeddedOrigin);
  CHECK(store.find("device/nope.cuh") == nullptr);
}

TEST_CASE("folders add templates and headers, at any depth, and nothing else") {
  const Folder folder("stof_store");
  folder.write("mine.jinja", "{{ x }}\r\n");
  folder.write("parts/deep/more.cuh", "int x;\n");
  folder.write("notes.txt", "no template");
  const TemplateStore store = open({folder.path()});
  REQUIRE(store.find("mine.jinja") != nullptr);
  CHECK(store.find("mine.jinja")->text == "{{ x }}\r\n");
  CHECK(store.find("mine.jinja")->origin == folder.path().string());
  CHECK(store.find("parts/deep/more.cuh") != nullptr);
  CHECK(store.find("notes.txt") == nullptr);
}

TEST_CASE("a file that hides another is reported, and the first folder wins") {
  const Folder first("stof_first");
  const Folder second("stof_second");
  first.write("device/warp.cuh", "first");
  second.write("device/warp.cuh", "second");
  second.write("own.jinja", "own");
  const TemplateStore store = open({first.path(), second.path()});
  CHECK(store.find("device/warp.cuh")->text == "first");
  REQUIRE(store.shadows().size() == 2);
  CHECK(store.shadows()[0].path == "device/warp.cuh");
  CHECK(store.shadows()[0].origin == first.path().string());
  CHECK(store.shadows()[0].hidden_origin == second.path().string());
  CHECK_FALSE(store.shadows()[0].hides_embedded());
  CHECK(store.shadows()[1].hides_embedded());
}

TEST_CASE("paths that leave the folders are refused") {
  const TemplateStore store = open({});
  for (const char* path : {"../a", "a/../b", "/a", "..", "a/.."}) {
    CHECK_THROWS_AS(store.find(path), Failure);
  }
  CHECK(store.find("a..b") == nullptr);
  CHECK(store.find("") == nullptr);
}

TEST_CASE("a folder that cannot be read is the caller's error, of files there is a list") {
  CHECK_THROWS_WITH_AS(open({"/nonexistent/folder"}),
                       "template folder /nonexistent/folder: No such file or directory",
                       stof::GraphError);
  const Folder folder("stof_large");
  folder.write("large.jinja", std::string((1U << 20U) + 1, 'x'));
  folder.write("small.jinja", "x");
  std::filesystem::create_symlink("nowhere", folder.path() / "lost.cuh");
  const TemplateStore store = open({folder.path()});
  CHECK(store.find("small.jinja") != nullptr);
  CHECK(store.find("large.jinja") == nullptr);
  std::map<std::string, std::string> unread;
  for (const UnreadFile& file : store.unread()) {
    unread.emplace(file.path, file.reason);
  }
  CHECK(unread ==
        std::map<std::string, std::string>{{"large.jinja", "1048577 bytes, more than 1048576"},
                                           {"lost.cuh", "it is no file, or leads to none"}});
}

TEST_CASE("links to folders are followed, once") {
  const Folder folder("stof_links"), elsewhere("stof_elsewhere");
  elsewhere.write("b.jinja", "b");
  std::filesystem::create_directory_symlink(elsewhere.path(), folder.path() / "linked");
  std::filesystem::create_directory_symlink(folder.path(), elsewhere.path() / "back");
  const TemplateStore store = open({folder.path()});
  CHECK(store.find("linked/b.jinja") != nullptr);
  CHECK(store.find("linked/back/linked/b.jinja") == nullptr);
}

TEST_CASE("a file that is equal to an embedded one is the embedded one") {
  const EmbeddedTemplate& embedded = embedded_templates().front();
  const Folder folder("stof_equal");
  const std::string path(embedded.path);
  folder.write(path, std::string(embedded.text));
  CHECK(open({folder.path()}).find(path)->origin == kEmbeddedOrigin);
  CHECK(open({folder.path()}).shadows().empty());
  folder.write(path, std::string(embedded.text) + " ");
  CHECK(open({folder.path()}).find(path)->origin != kEmbeddedOrigin);
}

TEST_CASE("the digest covers every path and text, and nothing else") {
  const auto digest = [](const std::map<std::string, std::string>& texts) {
    return TemplateStore::from_texts(texts).digest();
  };
  CHECK(digest({{"a", "x"}, {"b", "y"}}) == digest({{"b", "y"}, {"a", "x"}}));
  CHECK_FALSE(digest({{"a", "x"}}) == digest({{"a", "y"}}));
  CHECK_FALSE(digest({{"a", "x"}}) == digest({{"b", "x"}}));
  CHECK_FALSE(digest({{"a", "x"}}) == digest({{"ax", ""}}));
  CHECK_FALSE(digest({{"a", "x"}, {"b", ""}}) == digest({{"a", ""}, {"b", "x"}}));
  CHECK_FALSE(digest({}) == digest({{"", ""}}));
  const Folder folder("stof_digest");
  folder.write("a.jinja", "x");
  const auto before = open({folder.path()}).digest();
  CHECK(before == open({folder.path()}).digest());
  folder.write("a.jinja", "z");
  CHECK_FALSE(before == open({folder.path()}).digest());
}
