#include "validate/verdict.hpp"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "base/gpu_target.hpp"
#include "temporary_folder.hpp"

namespace stof::validate {
namespace {

cache::Cache open(const test::TemporaryFolder& folder) {
  cache::CacheOptions options;
  options.directory = folder.path();
  return cache::Cache(std::move(options));
}

TemplateCheck failed() {
  return {.file = "a.jinja",
          .rungs = {{"contract", true, "y = x"}, {"render", false, "a.jinja:3:1: \"y\""}},
          .warnings = {"slow"}};
}

TEST_CASE("verdict: comes back in another process, for the same files and architecture") {
  const test::TemporaryFolder folder;
  std::map<std::string, std::string> texts = {
      {"a.jinja", "{% include \"b.jinja\" %}"}, {"b.jinja", "b"}, {"c.jinja", "c"}};
  const base::GpuTarget hopper = base::parse_gpu_target("sm_90a");
  const auto store = [&] { return render::TemplateStore::from_texts(texts); };
  {
    cache::Cache cache = open(folder);
    add_verdict(cache, store(), hopper, Climb::Compiled, failed());
  }
  cache::Cache cache = open(folder);
  const auto find = [&](const base::GpuTarget& target, Climb climb) {
    return find_verdict(cache, store(), "a.jinja", target, climb);
  };
  const auto known = find(hopper, Climb::Compiled);
  REQUIRE(known.has_value());
  CHECK_FALSE(known->is_passed());
  CHECK(known->rungs.size() == 2);
  CHECK(known->rungs[1].detail == "a.jinja:3:1: \"y\"");
  CHECK(known->warnings == std::vector<std::string>{"slow"});
  CHECK(to_json(*known) == to_json(failed()));

  CHECK_FALSE(find(hopper, Climb::Validated));
  CHECK_FALSE(find(base::parse_gpu_target("sm_80"), Climb::Compiled));
  texts["c.jinja"] = "changed";
  CHECK(find(hopper, Climb::Compiled));
  texts["b.jinja"] = "changed";
  CHECK_FALSE(find(hopper, Climb::Compiled));
}

TEST_CASE("verdict: only what went past the numbers is validated") {
  const test::TemporaryFolder folder;
  cache::Cache cache = open(folder);
  const auto store = render::TemplateStore::from_texts({{"a.jinja", "a"}});
  const base::GpuTarget hopper = base::parse_gpu_target("sm_90a");
  TemplateCheck empty{.file = "a.jinja", .rungs = {{"contract", true, ""}}, .warnings = {}};
  add_verdict(cache, store, hopper, Climb::Validated, empty);
  const auto known = find_verdict(cache, store, "a.jinja", hopper, Climb::Validated);
  REQUIRE(known.has_value());
  CHECK(known->is_passed());
  CHECK_FALSE(known->is_validated());  // the numbers of nothing were tried
  CHECK(known->find("numerics") == nullptr);
}

}  // namespace
}  // namespace stof::validate
