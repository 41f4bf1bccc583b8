#include "jit/template_jit.hpp"

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "fake_compiler.hpp"
#include "stof/error.hpp"
#include "temporary_folder.hpp"

namespace {

using stof::cache::Cache;
using stof::cache::CacheOptions;
using stof::jit::Event;
using stof::jit::HitEvent;
using stof::jit::Jit;
using stof::jit::Kernel;
using stof::jit::TemplateJit;
using stof::kernel::KernelSpec;
using stof::render::Renderer;
using stof::render::TemplateStore;
using stof::test::cubin_of;
using stof::test::FakeCompiler;
using stof::test::TemporaryFolder;
using stof::test::text_of;

using Texts = std::map<std::string, std::string>;

const Texts kTexts = {{"norm.jinja", "norm {{ n }}"}, {"gemm.jinja", "gemm {{ n }}"}};

KernelSpec spec(const std::string& name, int n) {
  return {.file = name + ".jinja", .entry = name, .variables = {{"n", n}}};
}

// As one process would have it: what it shares with the next one is the folder.
struct Process {
  explicit Process(const TemporaryFolder& folder, const Texts& texts = kTexts,
                   const std::string& build = "fake 1")
      : cache(options(folder)),
        compiler(
            [](const std::string& source, const std::stop_token&) {
              if (source.starts_with("gemm 0")) {
                throw stof::CompileError("kernel for sm_90a", "log", source, {});
              }
            },
            build),
        renderer(std::make_shared<const TemplateStore>(TemplateStore::from_texts(texts))),
        jit(cache, compiler, {.on_event = [this](const Event& event) { add(event); }}),
        value(cache, compiler, renderer, jit) {}

  static CacheOptions options(const TemporaryFolder& folder) {
    CacheOptions options;
    options.directory = folder / "cache";
    return options;
  }

  void add(const Event& event) {
    if (const auto* hit = std::get_if<HitEvent>(&event.what)) {
      hits.push_back(event.source + " " + hit->layer);
    }
  }

  std::vector<std::string> get(const std::vector<KernelSpec>& specs,
                               const std::string& target = "sm_90a") const {
    std::vector<std::string> texts;
    for (const Kernel& kernel : value.get_or_compile(specs, stof::base::parse_gpu_target(target))) {
      texts.push_back(text_of(kernel.compiled));
    }
    return texts;
  }

  Cache cache;
  FakeCompiler compiler;
  Renderer renderer;
  Jit jit;
  std::vector<std::string> hits;
  TemplateJit value;
};

using Strings = std::vector<std::string>;

}  // namespace

TEST_CASE("kernels come in the order of their specs, and are compiled once") {
  const TemporaryFolder folder;
  Process process(folder);
  const Strings made = {cubin_of("gemm 3"), cubin_of("norm 1"), cubin_of("gemm 2")};
  CHECK(process.get({spec("gemm", 3), spec("norm", 1), spec("gemm", 2)}) == made);
  CHECK(process.compiler.count() == 3);
  CHECK(process.get({spec("norm", 4), spec("norm", 1)}) ==
        Strings{cubin_of("norm 4"), cubin_of("norm 1")});
  CHECK(process.compiler.count() == 4);
}

TEST_CASE("the next process renders nothing and compiles nothing") {
  const TemporaryFolder folder;
  Process(folder).get({spec("gemm", 3)});
  Process second(folder);
  CHECK(second.get({spec("gemm", 3)}) == Strings{cubin_of("gemm 3")});
  CHECK(second.compiler.count() == 0);
  CHECK(second.hits == Strings{"gemm.jinja disk"});
}

TEST_CASE("other variables, templates, targets and compilers are other renderings") {
  const TemporaryFolder folder;
  Process(folder).get({spec("gemm", 3)});
  const auto renderings = [&] {
    int count = 0;
    for (const auto& file :
         std::filesystem::recursive_directory_iterator(folder / "cache" / "v1" / "renderings")) {
      count += file.is_regular_file() ? 1 : 0;
    }
    return count;
  };
  CHECK(renderings() == 1);
  Process(folder).get({spec("gemm", 4)});
  CHECK(renderings() == 2);
  Process(folder).get({spec("gemm", 3)}, "sm_80");
  CHECK(renderings() == 3);
  Process(folder, kTexts, "fake 2").get({spec("gemm", 3)});
  CHECK(renderings() == 4);
  Texts changed = kTexts;
  changed["norm.jinja"] += " ";
  Process process(folder, changed);
  CHECK(process.get({spec("gemm", 3)}) == Strings{cubin_of("gemm 3")});
  CHECK(renderings() == 5);
  CHECK(process.compiler.count() == 0);  // it renders to the same kernel
}

TEST_CASE("a kernel that is gone is made again") {
  const TemporaryFolder folder;
  Process(folder).get({spec("gemm", 3)});
  std::filesystem::remove_all(folder / "cache" / "v1" / "kernels");
  Process process(folder);
  CHECK(process.get({spec("gemm", 3)}) == Strings{cubin_of("gemm 3")});
  CHECK(process.compiler.count() == 1);
}

TEST_CASE("what does not render or compile is thrown, and the rest is kept") {
  const TemporaryFolder folder;
  Process process(folder);
  CHECK_THROWS_AS(process.get({spec("missing", 1)}), stof::TemplateError);
  CHECK_THROWS_AS(process.get({spec("gemm", 1), spec("gemm", 0)}), stof::CompileError);
  CHECK(process.get({spec("gemm", 1)}) == Strings{cubin_of("gemm 1")});
  CHECK(process.compiler.count() == 2);
}

TEST_CASE("of several, each has its own outcome, and what was rendered before is known by name") {
  const TemporaryFolder folder;
  Process process(folder);
  const stof::base::GpuTarget target = stof::base::parse_gpu_target("sm_90a");
  CHECK_FALSE(process.value.known(spec("norm", 1), target));
  const std::vector<KernelSpec> specs = {spec("gemm", 0), spec("norm", 1), spec("none", 1)};
  const std::vector<stof::jit::Outcome> outcomes = process.value.try_each(specs, target);
  REQUIRE(outcomes.size() == 3);
  CHECK(outcomes[0].error != nullptr);  // it does not compile
  REQUIRE(outcomes[1].kernel.has_value());
  CHECK(text_of(outcomes[1].kernel->compiled) == cubin_of("norm 1"));
  CHECK(outcomes[2].error != nullptr);  // there is no such template
  CHECK(process.value.known(spec("norm", 1), target) == outcomes[1].kernel->digest);
  CHECK_FALSE(process.value.known(spec("gemm", 0), target));
}
