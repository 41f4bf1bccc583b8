#include "jit/jit.hpp"

#include <filesystem>
#include <fstream>
#include <latch>
#include <set>
#include <thread>

#include <doctest/doctest.h>

#include "fake_compiler.hpp"
#include "jit/kernel_entry.hpp"
#include "kernel/kernel_key.hpp"
#include "shared_cache.hpp"
#include "stof/error.hpp"
#include "temporary_folder.hpp"

using stof::CacheError;
using stof::CancelledError;
using stof::CompileError;
using stof::CudaError;
using stof::cache::Cache;
using stof::cache::CacheOptions;
using stof::compile::CompileTask;
using stof::jit::Event;
using stof::jit::Jit;
using stof::jit::JitOptions;
using stof::jit::Kernel;
using stof::jit::Outcome;
using stof::test::cubin_of;
using stof::test::FakeCompiler;
using stof::test::make_task;
using stof::test::shared_cache;
using stof::test::TemporaryFolder;
using stof::test::text_of;
using namespace std::chrono_literals;
namespace fs = std::filesystem;
namespace jit = stof::jit;

namespace {

// One word an event, and of what.
std::string word(const Event& event) {
  struct Words {
    std::string operator()(const jit::HitEvent& hit) const { return "hit " + hit.layer; }
    std::string operator()(const jit::WaitEvent&) const { return "wait"; }
    std::string operator()(const jit::CompileBeginEvent& begin) const {
      return "begin " + std::to_string(begin.index) + "/" + std::to_string(begin.count);
    }
    std::string operator()(const jit::CompileEndEvent& end) const {
      return end.error.empty() ? "end " + std::to_string(end.functions.at(0).registers)
                               : "fail " + end.error;
    }
  };
  return event.source + " " + std::visit(Words(), event.what);
}

// A jit, and what it told.
struct Listener {
  Listener(Cache& cache, const FakeCompiler& compiler, JitOptions options = {})
      : value(cache, compiler, with_events(std::move(options))) {}

  JitOptions with_events(JitOptions options) {
    options.on_event = [this](const Event& event) { words.push_back(word(event)); };
    return options;
  }

  std::vector<std::string> words;
  Jit value;
};

using Words = std::vector<std::string>;

void fail(const std::string& source, const std::stop_token&) {
  throw CompileError("kernel for sm_90a", "log", source, {});
}

std::string error_of(const Outcome& outcome) {
  try {
    if (outcome.error) {
      std::rethrow_exception(outcome.error);
    }
  } catch (const stof::Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a kernel is compiled once, then found in memory, then on disk") {
  const TemporaryFolder folder;
  const FakeCompiler compiler;
  Cache cache(shared_cache(folder));
  Listener first(cache, compiler);
  const Kernel compiled = first.value.get_or_compile(make_task("a"));
  CHECK(compiled.layer == "compiler");
  CHECK(text_of(compiled.compiled) == cubin_of("a"));
  const Kernel again = first.value.get_or_compile(make_task("a"));
  CHECK(again.layer == "memory");
  CHECK(text_of(again.compiled) == cubin_of("a"));
  CHECK(first.words == Words{"a.jinja begin 0/1", "a.jinja end 32", "a.jinja hit memory"});
  CHECK(compiler.count() == 1);

  const FakeCompiler other;
  Cache later(shared_cache(folder));
  Listener second(later, other);
  const Kernel found = second.value.get_or_compile(make_task("a"));
  CHECK(found.layer == "disk");
  CHECK(text_of(found.compiled) == cubin_of("a"));
  CHECK(found.compiled.functions == compiled.compiled.functions);
  CHECK(found.digest == compiled.digest);
  CHECK(second.words == Words{"a.jinja hit disk"});
  CHECK(other.count() == 0);
}

TEST_CASE("a kernel is found by its digest alone, without source and compiler") {
  const TemporaryFolder folder;
  const FakeCompiler compiler;
  Cache cache(shared_cache(folder));
  const Kernel made = Jit(cache, compiler).get_or_compile(make_task("a"));
  Cache later(shared_cache(folder));
  Listener listener(later, compiler);
  const auto found = listener.value.find(made.digest);
  REQUIRE(found.has_value());
  CHECK(text_of(found->compiled) == cubin_of("a"));
  CHECK(found->layer == "disk");
  CHECK_FALSE(listener.value.find(stof::base::hash("none")).has_value());
  CHECK(listener.words == Words{" hit disk"});
}

TEST_CASE("source, target, kernel names and compiler make another kernel, line maps do not") {
  const TemporaryFolder folder;
  const FakeCompiler compiler;
  Cache cache(shared_cache(folder));
  Jit jit(cache, compiler);
  jit.get_or_compile(make_task("a"));
  CompileTask task = make_task("a");
  task.source.lines.files = {"other.jinja"};
  jit.get_or_compile(task);
  CHECK(compiler.count() == 1);
  task.name_expressions = {"scale<float>"};
  jit.get_or_compile(task);
  CHECK(compiler.count() == 2);
  task.target = stof::base::parse_gpu_target("sm_80");
  jit.get_or_compile(task);
  CHECK(compiler.count() == 3);
  jit.get_or_compile(make_task("b"));
  CHECK(compiler.count() == 4);
  const FakeCompiler newer({}, "fake 2");
  Jit(cache, newer).get_or_compile(make_task("a"));
  CHECK(newer.count() == 1);
}

TEST_CASE("a damaged entry is compiled again") {
  const TemporaryFolder folder;
  const FakeCompiler compiler;
  {
    Cache cache(shared_cache(folder));
    Jit(cache, compiler).get_or_compile(make_task("a"));
  }
  for (const auto& file : fs::recursive_directory_iterator(folder / "cache/v1/kernels")) {
    if (file.is_regular_file()) {
      fs::resize_file(file, file.file_size() / 2);
    }
  }
  CacheOptions options = shared_cache(folder);
  Words warnings;
  options.on_warning = [&](const std::string& text) { warnings.push_back(text); };
  Cache cache(std::move(options));
  const Kernel kernel = Jit(cache, compiler).get_or_compile(make_task("a"));
  CHECK(kernel.layer == "compiler");
  CHECK(text_of(kernel.compiled) == cubin_of("a"));
  CHECK(warnings.size() == 1);
  Cache later(shared_cache(folder));
  CHECK(Jit(later, compiler).get_or_compile(make_task("a")).layer == "disk");
}

TEST_CASE("an entry whose meta cannot be read is compiled again") {
  const TemporaryFolder folder;
  const FakeCompiler compiler;
  const stof::kernel::Key key = stof::kernel::make_kernel_key({.source = "a",
                                                               .headers = {},
                                                               .options = {"-arch=sm_90a"},
                                                               .name_expressions = {},
                                                               .architecture = "sm_90a",
                                                               .compiler = "fake 1"});
  Cache cache(shared_cache(folder));
  cache.add({stof::cache::EntryKind::Kernel, key, {.payload = "x", .meta = "{}"}});
  Jit jit(cache, compiler);
  CHECK(jit.get_or_compile(make_task("a")).layer == "compiler");
  CHECK(jit.get_or_compile(make_task("a")).layer == "memory");
}

TEST_CASE("what does not compile is tried once a process") {
  const TemporaryFolder folder;
  const FakeCompiler compiler(fail);
  Cache cache(shared_cache(folder));
  Listener listener(cache, compiler);
  for (int i = 0; i < 3; ++i) {
    CHECK_THROWS_WITH_AS(listener.value.get_or_compile(make_task("a")),
                         doctest::Contains("kernel for sm_90a"), CompileError);
  }
  CHECK(compiler.count() == 1);
  REQUIRE(listener.words.size() == 2);
  CHECK(listener.words[1].starts_with("a.jinja fail "));
  CHECK(listener.words[1].find("kernel for sm_90a") != std::string::npos);
  const FakeCompiler repaired;
  Cache later(shared_cache(folder));
  CHECK(Jit(later, repaired).get_or_compile(make_task("a")).layer == "compiler");
}

TEST_CASE("what the machine or the caller ended is tried again") {
  const TemporaryFolder folder;
  int round = 0;
  const FakeCompiler compiler([&](const std::string&, const std::stop_token&) {
    switch (round++) {
      case 0:
        throw CudaError(1, "no compiler");
      case 1:
        throw CancelledError("cancelled");
      default:
        return;
    }
  });
  Cache cache(shared_cache(folder));
  Jit jit(cache, compiler);
  CHECK_THROWS_WITH_AS(jit.get_or_compile(make_task("a")), "no compiler", CudaError);
  CHECK_THROWS_WITH_AS(jit.get_or_compile(make_task("a")), "cancelled", CancelledError);
  CHECK(jit.get_or_compile(make_task("a")).layer == "compiler");
}

TEST_CASE("without leave to compile a miss is an error, and a hit is a hit") {
  const TemporaryFolder folder;
  const FakeCompiler compiler;
  Cache cache(shared_cache(folder));
  const Kernel made = Jit(cache, compiler).get_or_compile(make_task("a"));
  Jit jit(cache, compiler, {.may_compile = false, .on_event = {}});
  CHECK(jit.get_or_compile(make_task("a")).digest == made.digest);
  CHECK_THROWS_WITH_AS(jit.get_or_compile(make_task("b")),
                       doctest::Contains("for sm_90a is not in the cache, and may not be compiled"),
                       CacheError);
  CHECK(compiler.count() == 1);
}

TEST_CASE("without a disk everything is in memory") {
  const FakeCompiler compiler;
  Cache cache{CacheOptions()};
  Jit jit(cache, compiler);
  CHECK(jit.get_or_compile(make_task("a")).layer == "compiler");
  CHECK(jit.get_or_compile(make_task("a")).layer == "memory");
}

TEST_CASE("a batch keeps its order, compiles what is missing once, and tells each failure") {
  const TemporaryFolder folder;
  const FakeCompiler compiler([](const std::string& source, const std::stop_token& stop) {
    if (source == "bad") {
      fail(source, stop);
    }
  });
  Cache cache(shared_cache(folder));
  Listener listener(cache, compiler);
  listener.value.get_or_compile(make_task("known"));
  listener.words.clear();
  std::vector<CompileTask> tasks;
  for (const char* source : {"a", "known", "bad", "b", "a"}) {
    tasks.push_back(make_task(source));
  }
  const std::vector<Outcome> outcomes = listener.value.get_or_compile(tasks);
  REQUIRE(outcomes.size() == tasks.size());
  for (const std::size_t i : {0, 1, 3, 4}) {
    REQUIRE(outcomes[i].kernel.has_value());
    CHECK(text_of(outcomes[i].kernel->compiled) == cubin_of(tasks[i].source.text));
    CHECK(outcomes[i].error == nullptr);
  }
  CHECK(outcomes[1].kernel->layer == "memory");
  CHECK_FALSE(outcomes[2].kernel.has_value());
  CHECK(error_of(outcomes[2]).find("kernel for sm_90a") != std::string::npos);
  CHECK(compiler.count() == 4);
  const std::set<std::string> words(listener.words.begin(), listener.words.end());
  CHECK(words.contains("known.jinja hit memory"));
  CHECK(words.contains("a.jinja begin 0/3"));
  CHECK(words.contains("bad.jinja begin 1/3"));
  CHECK(words.contains("b.jinja begin 2/3"));
  CHECK(listener.value.get_or_compile(std::span<const CompileTask>()).empty());
}

TEST_CASE("a batch compiles in parallel") {
  std::latch together(3);
  const FakeCompiler compiler(
      [&](const std::string&, const std::stop_token&) { together.arrive_and_wait(); });
  Cache cache{CacheOptions()};
  Jit jit(cache, compiler, {.thread_count = 3, .on_event = {}});
  const std::vector<CompileTask> tasks = {make_task("a"), make_task("b"), make_task("c")};
  for (const Outcome& outcome : jit.get_or_compile(tasks)) {
    CHECK(outcome.kernel.has_value());
  }
}

TEST_CASE("a batch that is stopped has an error for each task that was not done") {
  std::stop_source stop;
  const FakeCompiler compiler([&](const std::string&, const std::stop_token& token) {
    stop.request_stop();
    if (token.stop_requested()) {
      throw CancelledError("cancelled");
    }
  });
  Cache cache{CacheOptions()};
  Jit jit(cache, compiler, {.thread_count = 1, .on_event = {}});
  const std::vector<CompileTask> tasks = {make_task("a"), make_task("b")};
  for (const Outcome& outcome : jit.get_or_compile(tasks, stop.get_token())) {
    CHECK(error_of(outcome) == "cancelled");
  }
}
