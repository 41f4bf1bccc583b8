#include "jit/kernel_entry.hpp"

#include <string>

#include <doctest/doctest.h>

using stof::CompileMessage;
using stof::cache::Entry;
using stof::cache::EntryKind;
using stof::compile::CompiledKernel;
using stof::jit::from_entry;
using stof::jit::to_entry;
using stof::kernel::Key;

namespace {

CompileMessage message(CompileMessage::Severity severity) {
  CompileMessage message;
  message.severity = severity;
  message.code = "C7510";
  message.text = "Potential \"Performance\" Loss\n";
  message.file = "a.cu.jinja";
  message.line = 12;
  message.notes = {"instantiation of x", "at line 3"};
  return message;
}

CompiledKernel example() {
  CompiledKernel kernel;
  for (int i = 0; i < 1000; ++i) {
    kernel.cubin.push_back(static_cast<std::byte>(i));
  }
  kernel.functions = {{.name = "attention",
                       .is_entry = true,
                       .registers = 168,
                       .barriers = 3,
                       .shared_bytes = 230000,
                       .stack_bytes = 16,
                       .spill_store_bytes = 8,
                       .spill_load_bytes = 12},
                      {.name = "helper", .is_entry = false}};
  for (const auto severity : {CompileMessage::Severity::Info, CompileMessage::Severity::Warning,
                              CompileMessage::Severity::Error}) {
    kernel.messages.push_back(message(severity));
  }
  kernel.lowered_names = {"_Z5scaleIfEvv"};
  kernel.compile_ms = 231.25;
  return kernel;
}

}  // namespace

TEST_CASE("a kernel comes back from its entry as it was") {
  const auto back = from_entry(to_entry(Key("key"), example()));
  REQUIRE(back.has_value());
  CHECK(back->cubin == example().cubin);
  CHECK(back->functions == example().functions);
  CHECK(back->messages == example().messages);
  CHECK(back->lowered_names == example().lowered_names);
  CHECK(back->compile_ms == example().compile_ms);
}

TEST_CASE("a kernel of which nothing is known comes back too") {
  const auto back = from_entry(to_entry(Key("key"), {}));
  REQUIRE(back.has_value());
  CHECK(back->cubin.empty());
  CHECK(back->functions.empty());
}

TEST_CASE("a message that is no UTF-8 does no harm") {
  CompiledKernel kernel = example();
  kernel.messages[0].text = "\xff\xfe";
  CHECK(from_entry(to_entry(Key("key"), kernel)).has_value());
}

TEST_CASE("an entry whose meta is of another kind is no kernel") {
  const std::string good(to_entry(Key("key"), example()).meta());
  const auto is_kernel = [](const std::string& meta) {
    const Entry entry(EntryKind::Kernel, Key("key"), {.payload = "cubin", .meta = meta});
    return from_entry(entry).has_value();
  };
  CHECK(is_kernel(good));
  CHECK_FALSE(is_kernel(""));
  CHECK_FALSE(is_kernel("{}"));
  CHECK_FALSE(is_kernel("[1, 2]"));
  CHECK_FALSE(is_kernel(good.substr(0, good.size() / 2)));
  std::string bad = good;
  bad.replace(bad.find("168"), 3, "\"x\"");
  CHECK_FALSE(is_kernel(bad));
  CHECK_FALSE(is_kernel(std::string(100000, '[')));
}
